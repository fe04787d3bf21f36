//! The kernels of an engine, loaded, each with the argument list of its launches.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use avsg_device::kernels::KernelName;
use avsg_device::params::Params;
use avsg_device::tiling::Tiling;

use super::acl::owned::{Args, Binary, RawStream};
use super::embedded::{self, Each};
use super::options::AscendOptions;
use crate::{Error, Result};

/// Bytes of the scalars that travel with every launch.
const TILING: usize = size_of::<Tiling>();

/// Kernels, ready to launch.
#[derive(Debug)]
pub(super) struct Kernels(Each<Args>);

/// Where kernels come from.
enum Place<'a> {
    /// One file that holds them all.
    File(Arc<Binary>),
    /// A folder with a file for each.
    Folder(&'a Path),
    /// This library.
    Memory(Each<Cow<'static, [u8]>>),
}

impl Kernels {
    /// Loads the kernels that the options name, or those of this geometry that are embedded.
    pub fn load(options: &AscendOptions, params: &Params) -> Result<Self> {
        let context = &options.context;
        let place = match options.kernels.as_deref() {
            Some(file) if file.is_file() => Place::File(Binary::load(context, &absolute(file)?)?),
            Some(folder) => Place::Folder(folder),
            None => Place::Memory(embedded::code(params, context.acl().simulated())?),
        };
        #[cfg(feature = "ascend-sim")]
        if let Place::Memory(code) = &place
            && context.acl().simulated()
        {
            avsg_sim::compile_ahead(code);
        }
        let load = |kernel: KernelName| {
            let name = kernel.entry();
            let binary = match &place {
                Place::File(binary) => Arc::clone(binary),
                Place::Folder(folder) => {
                    Binary::load(context, &file_in(folder, &name.to_string_lossy())?)?
                }
                Place::Memory(code) => Binary::from_data(context, &code[kernel as usize])?,
            };
            // Behind the parameters comes a workspace.
            Args::new(binary.function(name)?, kernel.args().len() + 1, TILING)
        };
        let [plan, transfer, step, append, reset] = KernelName::ALL.map(load);
        Ok(Self([plan?, transfer?, step?, append?, reset?]))
    }

    /// Puts a kernel into a stream. The addresses are its parameters and the workspace.
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
        // In batch mode all cores start together, which SyncAll needs.
        let batch = kernel == KernelName::Step;
        // SAFETY: the contract.
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

/// The file of a kernel.
fn file_in(folder: &Path, name: &str) -> Result<PathBuf> {
    let found = ["o", "cpp"].map(|end| folder.join(format!("{name}.{end}")));
    match found.iter().find(|file| file.is_file()) {
        Some(file) => absolute(file),
        None => Err(Error::Unavailable {
            what: "a kernel",
            tried: found.map(|file| file.display().to_string()).join(", "),
            remedy: "compile the kernels of this geometry (avsg emit) into that folder",
        }),
    }
}
