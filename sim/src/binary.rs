//! Kernel binaries: C++ for the shim, a library compiled from it, or the closures of the session.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fmt, fs, thread};

use libloading::Library;

use crate::compile::{compile, store_source};
use crate::cycles::Cycles;
use crate::fault::{Outcome, invalid};
use crate::kernel::{Kernel, KernelFault};

/// Contents of a kernel file that selects the closures registered in the session.
pub(crate) const CLOSURE_FILE: &[u8] = b"avsg-sim: kernels of the session\n";

/// The code of a kernel.
#[derive(Clone, Debug)]
pub(crate) enum Code {
    Closure(Kernel),
    /// A kernel of a library, and whether its blocks wait for each other.
    Shim(Arc<Shim>, bool),
}

impl Code {
    pub fn sync_all(&self) -> bool {
        match self {
            Self::Closure(kernel) => kernel.sync_all,
            Self::Shim(_, sync_all) => *sync_all,
        }
    }

    pub fn launch(
        &self,
        config: &LaunchConfig<'_>,
        args: &[u64],
        regions: &[(u64, usize, bool)],
    ) -> Result<(), KernelFault> {
        match self {
            Self::Closure(kernel) => {
                kernel.launch(config.blocks, args, regions, config.fault_block)
            }
            Self::Shim(shim, _) => shim.launch(config, args, regions),
        }
    }
}

/// A loaded kernel binary.
#[derive(Clone, Debug)]
pub(crate) enum Binary {
    Closure,
    Shim(Arc<Shim>),
}

impl Binary {
    pub fn load(path: &Path) -> Outcome<Self> {
        if !path.is_absolute() {
            return invalid(format!("kernel file {}: pass an absolute path", path.display()));
        }
        if fs::read(path).is_ok_and(|bytes| bytes == CLOSURE_FILE) {
            return Ok(Self::Closure);
        }
        let library = if path.extension().is_some_and(|e| e == "so") {
            Ok(path.to_owned())
        } else {
            compile(path, &shim_folder())
        };
        Self::shim(library.and_then(|library| Shim::load(&library, path)))
    }

    /// Loads C++ text that includes no headers but those of the shim.
    pub fn from_data(text: &[u8]) -> Outcome<Self> {
        if text == CLOSURE_FILE {
            return Ok(Self::Closure);
        }
        let source = store_source(text);
        let library = source.and_then(|source| Ok((compile(&source, &shim_folder())?, source)));
        Self::shim(library.and_then(|(library, source)| Shim::load(&library, &source)))
    }

    fn shim(loaded: Result<Shim, String>) -> Outcome<Self> {
        loaded.map_or_else(invalid, |shim| Ok(Self::Shim(Arc::new(shim))))
    }
}

/// Compiles kernel texts in parallel, so that loading them later takes no time. Compile errors are
/// reported when a text is loaded.
pub fn compile_ahead(texts: &[impl AsRef<[u8]> + Sync]) {
    thread::scope(|scope| {
        for text in texts {
            scope.spawn(|| {
                store_source(text.as_ref()).and_then(|source| compile(&source, &shim_folder()))
            });
        }
    });
}

/// Returns the folder of the shim's headers: `AVSG_SHIM`, or the one in the source tree of this
/// crate.
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
    cycles: *const Cycles,
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

/// A library of kernels compiled against the shim.
pub(crate) struct Shim {
    library: Library,
    launch: LaunchFn,
    /// The text that was compiled; empty if the library was given.
    text: String,
}

impl fmt::Debug for Shim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shim").finish_non_exhaustive()
    }
}

/// Parameters of a launch.
pub(crate) struct LaunchConfig<'a> {
    pub name: &'a str,
    pub blocks: u32,
    pub cores: u32,
    pub adversarial: bool,
    pub seed: u64,
    pub fault_block: Option<u32>,
    pub cycles: *const Cycles,
}

impl Shim {
    fn load(library: &Path, source: &Path) -> Result<Self, String> {
        // SAFETY: the file was compiled from a kernel and the shim, whose initialisers access only
        // their own variables. For a `.so` the caller of `aclrtBinaryLoadFromFile` guarantees the
        // same.
        let library = unsafe { Library::new(library) }.map_err(|e| format!("{e}"))?;
        // SAFETY: the shim defines the launcher with this signature.
        let launch = unsafe { library.get::<LaunchFn>(c"avsg_shim_launch".to_bytes_with_nul()) };
        let launch = *launch.map_err(|_| {
            "the file has no function avsg_shim_launch; compile it against linker/shim".to_owned()
        })?;
        Ok(Self { library, launch, text: fs::read_to_string(source).unwrap_or_default() })
    }

    /// Returns a kernel of the library; `None` if there is none of that name.
    pub fn kernel(self: &Arc<Self>, name: &CStr) -> Option<Code> {
        // SAFETY: the symbol is not used; only its presence is tested.
        let symbol = unsafe { self.library.get::<*mut c_void>(name.to_bytes_with_nul()) };
        let sync_all = || waits_for_all(&self.text, &name.to_string_lossy());
        symbol.is_ok().then(|| Code::Shim(Arc::clone(self), sync_all()))
    }

    pub fn launch(
        &self,
        config: &LaunchConfig<'_>,
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
            cores: config.cores,
            seed: config.seed,
            mode: u32::from(config.adversarial),
            regions: regions.len() as u32,
            region: regions.as_ptr(),
            fault_block: config.fault_block.map_or(-1, |block| block as i32),
            peak_ub: core::ptr::null_mut(),
            cycles: config.cycles,
        };
        let args: Vec<*mut c_void> = args.iter().map(|&arg| arg as *mut c_void).collect();
        let name = CString::new(config.name).unwrap_or_default();
        let mut error = [0u8; 2048];
        // SAFETY: every pointer is valid during the call, and the pages of all regions are
        // accessible. The shim refuses accesses of the kernel outside of the regions.
        let code = unsafe {
            (self.launch)(
                name.as_ptr(),
                config.blocks,
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

/// Returns whether the blocks of a kernel wait for each other. The ELF file of a real kernel tells it.
/// Here the kernel type tells it: the first one behind the kernel's name, or else the first one of the
/// text. The shim refuses SyncAll without that type.
fn waits_for_all(text: &str, kernel: &str) -> bool {
    let first_type = |text: &str| Some(text.find(TYPE)? + TYPE.len());
    let own = text.find(&format!(" void {kernel}(")).unwrap_or(0);
    let ty = first_type(&text[own..]).map(|at| own + at).or_else(|| first_type(text));
    ty.is_some_and(|at| text[at..].starts_with("KERNEL_TYPE_MIX_AIV_1_0"))
}

const TYPE: &str = "KERNEL_TASK_TYPE_DEFAULT(";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kernel_of_a_text_has_the_type_behind_its_name_or_the_only_one() {
        let kernel = |name, ty: &str| format!("extern \"C\" void {name}(int)\n{{\n    {ty}\n}}\n");
        let (vector, mix) =
            (format!("{TYPE}KERNEL_TYPE_AIV_ONLY);"), format!("{TYPE}KERNEL_TYPE_MIX_AIV_1_0);"));
        let text =
            [kernel("plan", &vector), kernel("step", &mix), kernel("append", &vector)].concat();
        let waiting = |text: &str| ["plan", "step", "append"].map(|name| waits_for_all(text, name));
        assert_eq!(waiting(&text), [false, true, false]);
        let untyped = ["plan", "step", "append"].map(|name| kernel(name, "")).concat();
        assert_eq!(waiting(&format!("{mix}\n{untyped}")), [true; 3], "a type for the whole file");
        assert_eq!(waiting(&format!("{vector}\n{untyped}")), [false; 3]);
        assert_eq!(waiting(""), [false; 3]);
    }
}
