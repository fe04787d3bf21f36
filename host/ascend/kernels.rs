//! The kernels of an engine, loaded, each with the argument list of its launches.

use std::sync::Arc;

use avsg_device::kernels::KernelName;
use avsg_device::tiling::Tiling;

use super::acl::owned::{Args, Binary, RawStream};
use super::options::AscendOptions;
use crate::Result;

/// Bytes of the scalars that travel with every launch.
const TILING: usize = size_of::<Tiling>();

/// Kernels, ready to launch.
#[derive(Debug)]
pub(super) struct Kernels([Args; KernelName::ALL.len()]);

impl Kernels {
    pub fn load(options: &AscendOptions) -> Result<Self> {
        // One file may hold them all; then it is loaded once.
        let whole = options.kernels.is_file().then(|| options.file("")).transpose()?;
        let whole = whole.map(|file| Binary::load(&options.context, &file)).transpose()?;
        let load = |kernel: KernelName| {
            let name = kernel.entry();
            let binary = match &whole {
                Some(binary) => Arc::clone(binary),
                None => Binary::load(&options.context, &options.file(&name.to_string_lossy())?)?,
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
