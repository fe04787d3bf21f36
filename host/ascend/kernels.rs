//! The loaded kernels of an engine, each with the argument list of its launches. Without a file or a
//! folder they are objects that are embedded in this library with the feature `kernels`, and on the
//! simulated device text of any geometry.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use avsg_device::kernels::KernelName;
use avsg_device::params::Params;
#[cfg(feature = "kernels")]
use avsg_device::params::{Lifetime, Table};
use avsg_device::tiling::Tiling;

use super::acl::{Args, Binary};
use super::options::AscendOptions;
#[cfg(feature = "ascend-sim")]
use super::simulated;
use crate::{Error, Result, invalid};

/// Bytes of the tiling data, the scalars of every launch.
pub(super) const TILING: usize = size_of::<Tiling>();

/// One element per kernel, in the order of [`KernelName::ALL`].
pub(super) type PerKernel<T> = [T; KernelName::ALL.len()];

/// Loads the kernels that the options name, or the embedded ones of this geometry.
pub(super) fn load(options: &AscendOptions, params: &Params) -> Result<PerKernel<Args>> {
    let (context, simulated) = (&options.context, options.context.acl().simulated());
    // One file has all kernels, and a folder one file per kernel.
    let binary: Box<dyn Fn(KernelName) -> Result<Arc<Binary>>> = match &options.kernels {
        Some(file) if file.is_file() => {
            let binary = Binary::load(context, file)?;
            Box::new(move |_| Ok(Arc::clone(&binary)))
        }
        Some(folder) => Box::new(move |kernel| {
            let name = kernel.entry().to_string_lossy();
            Binary::load(context, &file_in(folder, &name, simulated)?)
        }),
        None => {
            let code = embedded_code(params, simulated)?;
            #[cfg(feature = "ascend-sim")]
            if simulated {
                avsg_sim::compile_ahead(&code);
            }
            Box::new(move |kernel| Binary::from_data(context, &code[kernel as usize]))
        }
    };
    // The last argument is the workspace.
    let load = |kernel: KernelName| {
        Args::new(binary(kernel)?, kernel.entry(), kernel.args().len() + 1, TILING)
    };
    let [plan, transfer, step, append, reset] = KernelName::ALL.map(load);
    Ok([plan?, transfer?, step?, append?, reset?])
}

/// Returns the file of a kernel: an object where the folder's CMake project puts it or beside the
/// text, or the text. The simulator takes the text first.
fn file_in(folder: &Path, name: &str, simulated: bool) -> Result<PathBuf> {
    let built = format!("fatbin/{name}/{name}.o");
    let mut files = [built, format!("{name}.o"), format!("{name}.cpp")].map(|f| folder.join(f));
    if simulated {
        files.reverse();
    }
    files.iter().find(|file| file.is_file()).cloned().ok_or_else(|| Error::Unavailable {
        what: "a kernel",
        tried: files.map(|file| file.display().to_string()).join(", "),
        remedy: "write the kernels of this geometry into that folder with `avsg emit`, and build them",
    })
}

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
fn embedded_code(params: &Params, simulated: bool) -> Result<PerKernel<Cow<'static, [u8]>>> {
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
        _ => {
            let known: Vec<_> =
                EMBEDDED.iter().map(|known| format!("[{}]", known.params)).collect();
            let known = known.join(", ");
            let limit = if known.is_empty() {
                "this library was built without the feature `kernels`, so it has no geometry's kernels"
            .into()
            } else if embedded.is_some() {
                format!("this library has no objects for {known}: CANN was not found or failed")
            } else {
                format!("this library has only the kernels of {known} and of fewer tokens")
            };
            Err(invalid!("geometry" is params, but "{limit}";
        "write its kernels with `avsg emit`, build them, and pass their folder"))
        }
    }
}

/// Returns whether an engine with `params` can use kernels that were made for `kernels`. Everything
/// that shapes a kernel must be equal. N_q may be less, because a kernel uses it only as the most
/// rows of a request (`linker/tests/tape/bridge.rs`).
fn is_compatible(params: &Params, kernels: &Params) -> bool {
    params.tokens <= kernels.tokens && *params == Params { tokens: params.tokens, ..*kernels }
}

#[cfg(all(test, feature = "kernels", feature = "ascend-sim"))]
mod tests;
