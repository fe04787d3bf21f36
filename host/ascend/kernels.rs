//! The loaded kernels of an engine, each with the argument list of its launches.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use avsg_device::kernels::KernelName;
use avsg_device::params::Params;
use avsg_device::tiling::Tiling;

use super::acl::{Args, Binary};
use super::embedded::{self, PerKernel};
use super::options::AscendOptions;
use crate::device_arrays::RawStream;
use crate::{Error, Result};

/// Bytes of the tiling data, the scalars of every launch.
const TILING: usize = size_of::<Tiling>();

#[derive(Debug)]
pub(super) struct Kernels(PerKernel<Args>);

enum KernelSource<'a> {
    /// One binary with all kernels.
    File(Arc<Binary>),
    /// A folder with one file per kernel.
    Folder(&'a Path),
    /// Code that is embedded in this library.
    Memory(PerKernel<Cow<'static, [u8]>>),
}

impl Kernels {
    /// Loads the kernels that the options name, or the embedded ones of this geometry.
    pub fn load(options: &AscendOptions, params: &Params) -> Result<Self> {
        let context = &options.context;
        let source = match options.kernels.as_deref() {
            Some(file) if file.is_file() => {
                KernelSource::File(Binary::load(context, &absolute(file)?)?)
            }
            Some(folder) => KernelSource::Folder(folder),
            None => KernelSource::Memory(embedded::code(params, context.acl().simulated())?),
        };
        #[cfg(feature = "ascend-sim")]
        if let KernelSource::Memory(code) = &source
            && context.acl().simulated()
        {
            avsg_sim::compile_ahead(code);
        }
        let load = |kernel: KernelName| {
            let name = kernel.entry();
            let binary = match &source {
                KernelSource::File(binary) => Arc::clone(binary),
                KernelSource::Folder(folder) => {
                    let simulated = context.acl().simulated();
                    Binary::load(context, &file_in(folder, &name.to_string_lossy(), simulated)?)?
                }
                KernelSource::Memory(code) => Binary::from_data(context, &code[kernel as usize])?,
            };
            // The last argument is the workspace.
            Args::new(binary.function(name)?, kernel.args().len() + 1, TILING)
        };
        let [plan, transfer, step, append, reset] = KernelName::ALL.map(load);
        Ok(Self([plan?, transfer?, step?, append?, reset?]))
    }

    /// Puts a kernel into a stream. `addresses` are its parameters, then the workspace.
    ///
    /// # Safety
    /// As for [`Args::launch`].
    pub unsafe fn launch(
        &mut self,
        kernel: KernelName,
        addresses: &[u64],
        tiling: &Tiling,
        cores: usize,
        stream: RawStream,
    ) -> Result<()> {
        let mut bytes = [0; TILING];
        for (to, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(tiling.words()) {
            *to = word.to_ne_bytes();
        }
        // In batch mode the kernel starts only when all its cores are idle, which SyncAll needs.
        let batch = kernel == KernelName::Step;
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        unsafe { self.0[kernel as usize].launch(addresses, &bytes, cores, batch, stream) }
    }
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|source| Error::Os {
        call: "getcwd",
        what: path.display().to_string(),
        source,
        remedy: "pass an absolute path",
    })
}

/// Returns the file of a kernel: an object where the folder's CMake project puts it or beside the
/// text, or the text. The simulator takes the text first.
fn file_in(folder: &Path, name: &str, simulated: bool) -> Result<PathBuf> {
    let built = format!("fatbin/{name}/{name}.o");
    let mut files = [built, format!("{name}.o"), format!("{name}.cpp")].map(|f| folder.join(f));
    if simulated {
        files.reverse();
    }
    match files.iter().find(|file| file.is_file()) {
        Some(file) => absolute(file),
        None => Err(Error::Unavailable {
            what: "a kernel",
            tried: files.map(|file| file.display().to_string()).join(", "),
            remedy: "write the kernels of this geometry into that folder with `avsg emit`, and build them",
        }),
    }
}
