//! The kernels of an engine without a folder: objects that are embedded in this library with the feature
//! `kernels`, and on the simulated device text of any geometry.

use std::borrow::Cow;

use avsg_device::kernels::KernelName;
use avsg_device::params::Params;
#[cfg(feature = "kernels")]
use avsg_device::params::{Frequency, Lifetime, Table};

#[cfg(feature = "ascend-sim")]
use super::simulated;
use crate::{Error, Result, invalid};

/// One element per kernel, in the order of [`KernelName::ALL`].
pub(super) type PerKernel<T> = [T; KernelName::ALL.len()];

/// The embedded kernels of one geometry; the build script writes these values.
struct Embedded {
    params: Params,
    /// Objects for the device, if the build found CANN.
    objects: Option<PerKernel<&'static [u8]>>,
}

#[cfg(feature = "kernels")]
static EMBEDDED: &[Embedded] = include!(concat!(env!("OUT_DIR"), "/embedded.rs"));
#[cfg(not(feature = "kernels"))]
static EMBEDDED: &[Embedded] = &[];

/// Returns the kernels of a geometry: AscendC for the simulator, the same text for each kernel, and
/// objects for a device.
///
/// # Errors
/// If the kernels are not in this library, or a vector core cannot run the geometry.
pub(super) fn code(params: &Params, simulated: bool) -> Result<PerKernel<Cow<'static, [u8]>>> {
    let embedded = EMBEDDED.iter().find(|embedded| is_compatible(params, &embedded.params));
    match embedded {
        #[cfg(feature = "ascend-sim")]
        _ if simulated => {
            // An embedded geometry runs the kernels for its most tokens, as on a device.
            let text = simulated::text(embedded.map_or(params, |embedded| &embedded.params))?;
            Ok(std::array::from_fn(|_| text.as_bytes().to_vec().into()))
        }
        Some(Embedded { objects: Some(objects), .. }) if !simulated => {
            Ok(objects.map(Cow::Borrowed))
        }
        _ => Err(not_embedded(params, embedded.is_some())),
    }
}

/// Returns whether an engine with `params` can use kernels that were made for `kernels`. Everything
/// that shapes a kernel must be equal. N_q may be less, because a kernel uses it only as the most
/// rows of a request (`linker/tests/bridge.rs`).
fn is_compatible(params: &Params, kernels: &Params) -> bool {
    params.tokens <= kernels.tokens && *params == Params { tokens: params.tokens, ..*kernels }
}

fn not_embedded(params: &Params, known_geometry: bool) -> Error {
    let known: Vec<_> = EMBEDDED.iter().map(|known| format!("[{}]", known.params)).collect();
    let known = known.join(", ");
    let limit = if known.is_empty() {
        "this library was built without the feature `kernels`, so it has no geometry's kernels"
            .into()
    } else if known_geometry {
        format!("this library has no objects for {known}: CANN was not found or failed")
    } else {
        format!("this library has only the kernels of {known} and of fewer tokens")
    };
    invalid!("geometry" is params, but "{limit}";
        "write its kernels with `avsg emit`, build them, and pass their folder")
}

#[cfg(all(test, feature = "kernels", feature = "ascend-sim"))]
mod tests {
    use super::*;

    #[test]
    fn the_simulator_runs_the_text_of_an_embedded_geometry_for_fewer_tokens() {
        assert!(!EMBEDDED.is_empty());
        for embedded in EMBEDDED {
            let text = simulated::text(&embedded.params).unwrap();
            for tokens in 1..=embedded.params.tokens {
                let code = code(&Params { tokens, ..embedded.params }, true).unwrap();
                assert!(code.iter().all(|kernel| **kernel == *text.as_bytes()));
            }
            for other in [
                Params { k: 1024, ..embedded.params },
                Params { retries: 3, ..embedded.params },
                Params { page: 64, ..embedded.params },
                Params { lifetime: Lifetime::Constant(16), ..embedded.params },
            ] {
                assert!(!is_compatible(&other, &embedded.params), "{other}");
            }
        }
        let small = Params::wide(16, 1, 128);
        let text = simulated::text(&small).unwrap();
        assert_eq!(*code(&small, true).unwrap()[0], *text.as_bytes());
    }
}
