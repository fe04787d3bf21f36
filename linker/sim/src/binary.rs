//! Kernel binaries: C++ for the shim, a library compiled from it, or the closures of the session.

use std::ffi::{CStr, c_void};
use std::path::Path;
use std::sync::Arc;
use std::{fs, thread};

use crate::compile::{compile, store_source};
use crate::fault::{Outcome, invalid};
use crate::kernel::{ClosureKernel, KernelFault};
use crate::shim::{CompiledKernels, Mode, RegionKind, ShimLaunch};

/// Contents of a kernel file that selects the closures registered in the session.
pub(crate) const CLOSURE_FILE: &[u8] = b"avsg-sim: kernels of the session\n";

/// The code of a kernel.
#[derive(Clone, Debug)]
pub(crate) enum Code {
    Closure(ClosureKernel),
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

    /// Runs a kernel.
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
        let bytes = fs::read(path).unwrap_or_default();
        if bytes == CLOSURE_FILE {
            return Ok(Self::Closure);
        }
        if let Some(text) = text_of_object(&bytes) {
            return Self::from_data(text);
        }
        let is_library = path.extension().is_some_and(|e| e == "so");
        let library = if is_library { Ok(path.to_owned()) } else { compile(path, &[]) };
        Self::shim(library.and_then(|library| Shim::load(&library, path)))
    }

    /// Loads C++ text that includes no headers but those of the shim.
    pub fn from_data(text: &[u8]) -> Outcome<Self> {
        if text == CLOSURE_FILE {
            return Ok(Self::Closure);
        }
        let source = store_source(text_of_object(text).unwrap_or(text));
        let library = source.and_then(|source| Ok((compile(&source, &[])?, source)));
        Self::shim(library.and_then(|(library, source)| Shim::load(&library, &source)))
    }

    fn shim(loaded: Result<Shim, String>) -> Outcome<Self> {
        loaded.map_or_else(invalid, |shim| Ok(Self::Shim(Arc::new(shim))))
    }
}

/// Returns the text in an object of the tests' stand-in for CANN's compiler.
fn text_of_object(object: &[u8]) -> Option<&[u8]> {
    const BEGIN: &[u8] = b"// the text of the kernel for ";
    let found = object
        .starts_with(b"\x7fELF")
        .then(|| object.windows(BEGIN.len()).position(|b| b == BEGIN));
    object[found??..].split(|&byte| byte == 0).next()
}

/// Compiles kernel texts in parallel, so that loading them later takes no time. Compile errors are
/// reported when a text is loaded.
pub fn compile_ahead(texts: &[impl AsRef<[u8]> + Sync]) {
    thread::scope(|scope| {
        for text in texts {
            scope.spawn(|| store_source(text.as_ref()).and_then(|source| compile(&source, &[])));
        }
    });
}

/// A library of kernels, and the text that was compiled; it is empty if the library was given.
#[derive(Debug)]
pub(crate) struct Shim {
    kernels: CompiledKernels,
    text: String,
}

/// Parameters of a launch.
pub(crate) struct LaunchConfig<'a> {
    pub name: &'a str,
    pub blocks: u32,
    pub cores: u32,
    pub adversarial: bool,
    pub seed: u64,
    pub fault_block: Option<u32>,
}

impl Shim {
    fn load(library: &Path, source: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(source).unwrap_or_default();
        Ok(Self { kernels: CompiledKernels::load(library)?, text })
    }

    /// Returns a kernel of the library; `None` if there is none of that name.
    pub fn kernel(self: &Arc<Self>, name: &CStr) -> Option<Code> {
        let library = self.kernels.library();
        // SAFETY: the symbol is not used; only its presence is tested.
        let symbol = unsafe { library.get::<*mut c_void>(name.to_bytes_with_nul()) };
        let sync_all = || waits_for_all(&self.text, &name.to_string_lossy());
        symbol.is_ok().then(|| Code::Shim(Arc::clone(self), sync_all()))
    }

    /// Launches a kernel. The pages of all regions are accessible during the call.
    fn launch(
        &self,
        config: &LaunchConfig<'_>,
        args: &[u64],
        regions: &[(u64, usize, bool)],
    ) -> Result<(), KernelFault> {
        let mode = if config.adversarial { Mode::Adversarial } else { Mode::InOrder };
        let launch = ShimLaunch::new(config.name).blocks(config.blocks).cores(config.cores);
        let launch = launch.mode(mode, config.seed).fault(config.fault_block);
        let launch = args.iter().fold(launch, |launch, &arg| launch.raw(arg as *mut c_void));
        let launch = regions.iter().fold(launch, |launch, &(at, len, host)| {
            launch.register(
                at as *mut c_void,
                len,
                if host { RegionKind::Host } else { RegionKind::Device },
            )
        });
        launch.run(&self.kernels).map(drop).map_err(|failure| match failure.code {
            3 => KernelFault::Hang(failure.text),
            _ => KernelFault::Exception(failure.text),
        })
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
mod tests;
