//! Kernel files: C++ for the shim, libraries made of it, or a list of the test's own kernels.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fmt, fs, thread};

use libloading::Library;

use crate::compile::{compile, keep};
use crate::fault::{Outcome, invalid};
use crate::kernel::{Kernel, KernelFault};

/// A file of these bytes stands for the kernels that the session holds.
pub(crate) const NATIVE: &[u8] = b"avsg-sim: kernels of the session\n";

/// What a kernel's code is.
#[derive(Clone, Debug)]
pub(crate) enum Code {
    Native(Kernel),
    Shim(Arc<Shim>),
}

impl Code {
    pub fn sync_all(&self) -> bool {
        match self {
            Self::Native(kernel) => kernel.sync_all,
            Self::Shim(shim) => shim.sync_all,
        }
    }

    pub fn launch(
        &self,
        setting: &Setting<'_>,
        args: &[u64],
        regions: &[(u64, usize, bool)],
    ) -> Result<(), KernelFault> {
        match self {
            Self::Native(kernel) => {
                kernel.launch(setting.blocks, args, regions, setting.fault_block)
            }
            Self::Shim(shim) => shim.launch(setting, args, regions),
        }
    }
}

/// A loaded file.
#[derive(Clone, Debug)]
pub(crate) enum Binary {
    Native,
    Shim(Arc<Shim>),
}

impl Binary {
    pub fn load(path: &Path) -> Outcome<Self> {
        if !path.is_absolute() {
            return invalid(format!("{}: a kernel's path is absolute", path.display()));
        }
        if fs::read(path).is_ok_and(|bytes| bytes == NATIVE) {
            return Ok(Self::Native);
        }
        let library = if path.extension().is_some_and(|e| e == "so") {
            Ok(path.to_owned())
        } else {
            compile(path, &shim_folder())
        };
        Self::shim(library.and_then(|library| Shim::load(&library, path)))
    }

    /// C++ that needs no file beside it but the shim's.
    pub fn from_data(text: &[u8]) -> Outcome<Self> {
        if text == NATIVE {
            return Ok(Self::Native);
        }
        let source = keep(text);
        let library = source.and_then(|source| Ok((compile(&source, &shim_folder())?, source)));
        Self::shim(library.and_then(|(library, source)| Shim::load(&library, &source)))
    }

    fn shim(loaded: Result<Shim, String>) -> Outcome<Self> {
        loaded.map_or_else(invalid, |shim| Ok(Self::Shim(Arc::new(shim))))
    }
}

/// Compiles texts, as many at once as there are: loading them then takes no time. What does not compile is said
/// by the load.
pub fn compile_ahead(texts: &[impl AsRef<[u8]> + Sync]) {
    thread::scope(|scope| {
        for text in texts {
            scope.spawn(|| keep(text.as_ref()).and_then(|source| compile(&source, &shim_folder())));
        }
    });
}

/// The shim's headers: `AVSG_SHIM`, or where this crate was built.
fn shim_folder() -> PathBuf {
    env::var_os("AVSG_SHIM")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../linker/shim"), PathBuf::from)
}

#[repr(C)]
struct Region {
    base: *const c_void,
    len: u64,
    kind: u32,
}

#[repr(C)]
struct ShimOptions {
    size: u32,
    cores: u32,
    seed: u64,
    mode: u32,
    regions: u32,
    region: *const Region,
    fault_block: i32,
    peak_ub: *mut u32,
    cycles: *mut u64,
}

type LaunchFn = unsafe extern "C" fn(
    kernel: *const c_char,
    blocks: u32,
    args: *const *mut c_void,
    count: u32,
    options: *const ShimOptions,
    error: *mut c_char,
    error_len: usize,
) -> c_int;

/// A kernel compiled against the shim.
pub(crate) struct Shim {
    library: Library,
    launch: LaunchFn,
    pub sync_all: bool,
}

impl fmt::Debug for Shim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shim").field("sync_all", &self.sync_all).finish_non_exhaustive()
    }
}

/// A launch's circumstances.
pub(crate) struct Setting<'a> {
    pub name: &'a str,
    pub blocks: u32,
    pub cores: u32,
    pub adversarial: bool,
    pub seed: u64,
    pub fault_block: Option<u32>,
}

impl Shim {
    fn load(library: &Path, source: &Path) -> Result<Self, String> {
        // SAFETY: the file was compiled from a kernel and the shim, or its caller says so; neither
        // has initialisers that touch anything of ours.
        let library = unsafe { Library::new(library) }.map_err(|e| format!("{e}"))?;
        // SAFETY: the shim defines the launcher with this signature.
        let launch = unsafe { library.get::<LaunchFn>(c"avsg_shim_launch".to_bytes_with_nul()) };
        let launch = *launch.map_err(|_| "the file has no launcher of the shim".to_owned())?;
        // Which kernels wait for each other, the ELF of a real one tells. Here it is their type, without
        // which the shim refuses SyncAll.
        let waits = |text: String| text.contains("KERNEL_TYPE_MIX_AIV_1_0");
        let sync_all = fs::read_to_string(source).is_ok_and(waits);
        Ok(Self { library, launch, sync_all })
    }

    pub fn has(&self, name: &CStr) -> bool {
        // SAFETY: only the address is asked for.
        unsafe { self.library.get::<*mut c_void>(name.to_bytes_with_nul()) }.is_ok()
    }

    fn launch(
        &self,
        setting: &Setting<'_>,
        args: &[u64],
        regions: &[(u64, usize, bool)],
    ) -> Result<(), KernelFault> {
        let regions: Vec<Region> = regions
            .iter()
            .map(|&(at, len, host)| Region {
                base: at as *const c_void,
                len: len as u64,
                kind: u32::from(host),
            })
            .collect();
        let options = ShimOptions {
            size: size_of::<ShimOptions>() as u32,
            cores: setting.cores,
            seed: setting.seed,
            mode: u32::from(setting.adversarial),
            regions: regions.len() as u32,
            region: regions.as_ptr(),
            fault_block: setting.fault_block.map_or(-1, |block| block as i32),
            peak_ub: core::ptr::null_mut(),
            cycles: core::ptr::null_mut(),
        };
        let args: Vec<*mut c_void> = args.iter().map(|&arg| arg as *mut c_void).collect();
        let name = CString::new(setting.name).unwrap_or_default();
        let mut error = [0u8; 2048];
        // SAFETY: every pointer is valid for the call, and the regions are open; what the kernel
        // touches besides is what the shim exists to refuse.
        let code = unsafe {
            (self.launch)(
                name.as_ptr(),
                setting.blocks,
                args.as_ptr(),
                args.len() as u32,
                &options,
                error.as_mut_ptr().cast(),
                error.len(),
            )
        };
        let text = CStr::from_bytes_until_nul(&error).unwrap_or_default();
        let text = text.to_string_lossy().into_owned();
        match code {
            0 => Ok(()),
            3 => Err(KernelFault::Hang(text)),
            _ => Err(KernelFault::Exception(text)),
        }
    }
}
