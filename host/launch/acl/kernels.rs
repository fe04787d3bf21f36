//! The five kernels with their argument lists.

use std::ffi::CStr;
use std::sync::Arc;

use super::AscendOptions;
use crate::Result;
use crate::acl::owned::{Args, Binary, RawStream};
use avsg_device::tiling::Tiling;

/// Bytes of the scalars that travel with every launch.
const TILING: usize = size_of::<Tiling>();

/// Kernels, ready to launch. Addresses in the order of each kernel's parameters; the scalars come
/// last.
#[derive(Debug)]
pub(super) struct Kernels {
    pub plan: Args,
    pub transfer: Args,
    pub step: Args,
    pub append: Args,
    pub reset: Args,
}

impl Kernels {
    pub fn load(options: &AscendOptions) -> Result<Self> {
        // One file may hold them all; then it is loaded once.
        let whole = options.kernels.is_file().then(|| options.file("")).transpose()?;
        let whole = whole.map(|file| Binary::load(&options.context, &file)).transpose()?;
        let load = |name: &CStr, addresses: usize| {
            let binary = match &whole {
                Some(binary) => Arc::clone(binary),
                None => Binary::load(&options.context, &options.file(&name.to_string_lossy())?)?,
            };
            Args::new(binary.function(name)?, addresses, TILING)
        };
        Ok(Self {
            plan: load(c"avsg_plan", 17)?,
            transfer: load(c"avsg_transfer", 11)?,
            step: load(c"avsg_step", 22)?,
            append: load(c"avsg_append", 9)?,
            reset: load(c"avsg_reset", 2)?,
        })
    }
}

/// Puts a kernel into a stream.
///
/// # Safety
/// As for [`Args::launch`].
pub(super) unsafe fn launch(
    kernel: &mut Args,
    addresses: &[u64],
    tiling: &Tiling,
    cores: usize,
    batch: bool,
    stream: RawStream,
) -> Result<()> {
    let words = tiling.words();
    let mut bytes = [0; TILING];
    for (to, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(words) {
        *to = word.to_ne_bytes();
    }
    // SAFETY: the contract.
    unsafe { kernel.launch(addresses, &bytes, cores, batch, stream) }
}
