//! The kernels inside this library: those of the default geometries, with the feature `kernels`, and on the
//! simulated device those of every geometry.

use std::borrow::Cow;

use avsg_device::kernels::KernelName;
use avsg_device::params::Params;
#[cfg(feature = "kernels")]
use avsg_device::params::{Frequency, Lifetime, Table};

#[cfg(feature = "ascend-sim")]
use super::simulated;
use crate::{Error, Result};

/// Something for each kernel, in the order of [`KernelName::ALL`].
pub(super) type Each<T> = [T; KernelName::ALL.len()];

/// The kernels of a geometry, as the build script made them.
struct Embedded {
    params: Params,
    /// AscendC, which the simulator compiles.
    texts: Each<&'static str>,
    /// What CANN's compiler made of it, where there was one.
    objects: Option<Each<&'static [u8]>>,
}

#[cfg(feature = "kernels")]
static EMBEDDED: &[Embedded] = include!(concat!(env!("OUT_DIR"), "/embedded.rs"));
#[cfg(not(feature = "kernels"))]
static EMBEDDED: &[Embedded] = &[];

/// The code of a geometry's kernels: for the simulator as text, for a device as objects.
///
/// # Errors
/// If they are not in this library, or a vector core cannot run the geometry.
pub(super) fn code(params: &Params, simulated: bool) -> Result<Each<Cow<'static, [u8]>>> {
    let found = EMBEDDED.iter().find(|embedded| fits(params, &embedded.params));
    match found {
        Some(Embedded { texts, .. }) if simulated => {
            Ok(texts.map(|text| Cow::Borrowed(text.as_bytes())))
        }
        Some(Embedded { objects: Some(objects), .. }) if !simulated => {
            Ok(objects.map(Cow::Borrowed))
        }
        #[cfg(feature = "ascend-sim")]
        None if simulated => Ok(simulated::texts(params)?.map(|text| text.into_bytes().into())),
        _ => Err(absent(params, found.is_some())),
    }
}

/// Whether kernels of one geometry serve an engine of another. All that shapes a kernel is the same; N_q may
/// be less, because a kernel knows it only as the most rows of a request (`linker/tests/bridge.rs`).
fn fits(params: &Params, kernels: &Params) -> bool {
    params.tokens <= kernels.tokens && *params == Params { tokens: params.tokens, ..*kernels }
}

fn absent(params: &Params, as_text: bool) -> Error {
    let known: Vec<_> = EMBEDDED.iter().map(|known| format!("[{}]", known.params)).collect();
    let known = known.join(", ");
    let limit = if known.is_empty() {
        "this library was built without the feature `kernels`, so it has no geometry's kernels"
            .into()
    } else if as_text {
        format!("CANN's compiler was not there, or refused it, when this library embedded {known}")
    } else {
        format!("this library has only the kernels of {known} and of fewer tokens")
    };
    let remedy = "write its kernels with `avsg emit`, compile them, and name their folder";
    Error::invalid("geometry", params, limit, remedy)
}

#[cfg(all(test, feature = "kernels", feature = "ascend-sim"))]
mod tests {
    use super::*;

    #[test]
    fn the_simulator_runs_what_is_embedded_and_emits_the_rest() {
        assert!(!EMBEDDED.is_empty());
        for embedded in EMBEDDED {
            for tokens in 1..=embedded.params.tokens {
                let code = code(&Params { tokens, ..embedded.params }, true).unwrap();
                assert!(code.iter().all(|kernel| matches!(kernel, Cow::Borrowed(_))));
            }
            // The same text as is emitted for any other geometry.
            let texts = simulated::texts(&embedded.params).unwrap();
            assert!(texts.iter().zip(&embedded.texts).all(|(made, text)| made == text));
            for other in [
                Params { k: 1024, ..embedded.params },
                Params { retries: 3, ..embedded.params },
                Params { page: 64, ..embedded.params },
                Params { lifetime: Lifetime::Constant(16), ..embedded.params },
            ] {
                assert!(!fits(&other, &embedded.params), "{other}");
            }
        }
        let small = code(&Params::wide(16, 1, 128), true).unwrap();
        assert!(small.iter().all(|kernel| matches!(kernel, Cow::Owned(_))));
    }
}
