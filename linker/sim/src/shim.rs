//! Kernels that are compiled against the shim (`linker/sim/shim`), and their launches without a runtime.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use libloading::Library;

use crate::compile::{compile, store_source};

/// A library of kernels that were compiled against the shim.
#[derive(Clone, Debug)]
pub struct CompiledKernels {
    library: Arc<Library>,
    launch: LaunchFn,
}

impl CompiledKernels {
    /// Compiles C++ text that includes no headers but those of the shim, unless this machine has its
    /// library. `flags` are added to those of every library.
    ///
    /// # Errors
    /// If there is no C++ compiler, or the text does not compile: a sentence, or the compiler's words.
    pub fn compile(text: &str, flags: &[&str]) -> Result<Self, String> {
        Self::load(&compile(&store_source(text.as_bytes())?, flags)?)
    }

    pub(crate) fn load(library: &Path) -> Result<Self, String> {
        // SAFETY: the file was compiled from a kernel and the shim, whose initialisers access only
        // their own variables. For a `.so` the caller of `aclrtBinaryLoadFromFile` guarantees the
        // same.
        let library = unsafe { Library::new(library) }.map_err(|e| e.to_string())?;
        // SAFETY: the shim defines the launcher with this signature.
        let launch = unsafe { library.get::<LaunchFn>(c"avsg_shim_launch".to_bytes_with_nul()) };
        let launch = *launch.map_err(|_| {
            "the file has no function avsg_shim_launch; compile it against linker/sim/shim"
                .to_owned()
        })?;
        Ok(Self { library: Arc::new(library), launch })
    }

    /// Returns the loaded library, which has the entry points as symbols.
    pub fn library(&self) -> &Library {
        &self.library
    }
}

/// The order in which instructions run, and whether rules are enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Program order, with every rule enforced.
    InOrder = 0,
    /// A seeded order that only the kernel's own synchronisation restricts, with every rule
    /// enforced.
    Adversarial = 1,
    /// A seeded order in which hazards, undefined data and overflow are permitted, as on the
    /// device.
    Unchecked = 2,
}

/// The kind of a memory region, which decides whether kernels may write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionKind {
    /// Device memory.
    Device = 0,
    /// Registered host memory.
    Host = 1,
    /// Device memory that a kernel must not write.
    ReadOnly = 2,
}

/// The failure of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFailure {
    /// 1: a rule was broken, 2: the launch was invalid, 3: the kernel hung.
    pub code: i32,
    /// `rule: op at file:line: what [core n]`.
    pub text: String,
}

/// Types without padding or invalid bit patterns, which kernels read and write.
pub trait Plain: Copy {}
impl Plain for u8 {}
impl Plain for u16 {}
impl Plain for i32 {}
impl Plain for u64 {}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Region {
    base: *const c_void,
    len: u64,
    kind: u32,
}

#[repr(C)]
struct Options {
    size: u32,
    cores: u32,
    seed: u64,
    mode: u32,
    regions: u32,
    region: *const Region,
    fault_block: i32,
    peak_ub: *mut u32,
    entry: *mut c_void,
}

type LaunchFn = unsafe extern "C" fn(
    kernel: *const c_char,
    blocks: u32,
    args: *const *mut c_void,
    count: u32,
    options: *const Options,
    error: *mut c_char,
    error_len: usize,
) -> c_int;

/// A launch: arguments in the order of the kernel's parameters, and the memory that it may access.
#[derive(Debug)]
pub struct ShimLaunch<'a> {
    name: &'a str,
    blocks: u32,
    cores: u32,
    seed: u64,
    mode: Mode,
    fault_block: Option<u32>,
    /// The arguments so far.
    pub args: Vec<*mut c_void>,
    regions: Vec<Region>,
    memory: PhantomData<&'a mut ()>,
}

impl<'a> ShimLaunch<'a> {
    /// Returns a launch of one block on 48 cores, in program order.
    pub fn new(name: &'a str) -> Self {
        Self {
            name,
            blocks: 1,
            cores: 48,
            seed: 1,
            mode: Mode::InOrder,
            fault_block: None,
            args: Vec::new(),
            regions: Vec::new(),
            memory: PhantomData,
        }
    }

    /// Sets the number of blocks.
    #[must_use]
    pub fn blocks(self, blocks: u32) -> Self {
        Self { blocks, ..self }
    }

    /// Sets the number of physical cores.
    #[must_use]
    pub fn cores(self, cores: u32) -> Self {
        Self { cores, ..self }
    }

    /// Sets the order, and the seed of the order and of the contents of uninitialised memory.
    #[must_use]
    pub fn mode(self, mode: Mode, seed: u64) -> Self {
        Self { mode, seed, ..self }
    }

    /// Sets the block that raises an exception.
    #[must_use]
    pub fn fault(self, fault_block: Option<u32>) -> Self {
        Self { fault_block, ..self }
    }

    /// Passes device memory as the next argument.
    #[must_use]
    pub fn device<T: Plain>(self, memory: &'a mut [T]) -> Self {
        let at = memory.as_mut_ptr().cast();
        self.region(memory, RegionKind::Device).raw(at)
    }

    /// Passes memory that the kernel only reads as the next argument.
    #[must_use]
    pub fn input<T: Plain>(self, memory: &'a [T]) -> Self {
        let at = memory.as_ptr().cast_mut().cast();
        self.register(at, size_of_val(memory), RegionKind::ReadOnly).raw(at)
    }

    /// Passes an address as the next argument. The shim refuses every access through a tensor to
    /// memory that is not registered.
    #[must_use]
    pub fn raw(mut self, at: *mut c_void) -> Self {
        self.args.push(at);
        self
    }

    /// Registers memory that the kernel reaches by an address in other memory.
    #[must_use]
    pub fn region<T: Plain>(self, memory: &'a mut [T], kind: RegionKind) -> Self {
        self.register(memory.as_mut_ptr().cast(), size_of_val(memory), kind)
    }

    pub(crate) fn register(mut self, base: *mut c_void, bytes: usize, kind: RegionKind) -> Self {
        self.regions.push(Region { base, len: bytes as u64, kind: kind as u32 });
        self
    }

    /// Runs the kernel. Returns the bytes of unified buffer that it used, which is its highest byte
    /// plus one.
    ///
    /// # Errors
    /// If the kernel breaks a rule of the shim, or the launch is invalid.
    pub fn run(self, kernels: &CompiledKernels) -> Result<u32, RunFailure> {
        let mut peak = 0;
        let name = CString::new(self.name).unwrap_or_default();
        // SAFETY: the symbol is only compared with null here; the shim calls it as a kernel.
        let entry = unsafe { kernels.library.get::<*mut c_void>(name.as_bytes_with_nul()) };
        let options = Options {
            size: size_of::<Options>() as u32,
            cores: self.cores,
            seed: self.seed,
            mode: self.mode as u32,
            regions: self.regions.len() as u32,
            region: self.regions.as_ptr(),
            fault_block: self.fault_block.map_or(-1, |block| block as i32),
            peak_ub: &raw mut peak,
            entry: entry.map_or(ptr::null_mut(), |symbol| *symbol),
        };
        let mut error = [0u8; 4096];
        // SAFETY: all pointers outlive the call, because `self` borrows the memory and the rest is
        // on this stack. Kernels access memory through tensors, which stay within the regions.
        let code = unsafe {
            (kernels.launch)(
                name.as_ptr(),
                self.blocks,
                self.args.as_ptr(),
                self.args.len() as u32,
                &raw const options,
                error.as_mut_ptr().cast(),
                error.len(),
            )
        };
        if code == 0 {
            return Ok(peak);
        }
        let text = CStr::from_bytes_until_nul(&error).unwrap_or_default();
        Err(RunFailure { code, text: text.to_string_lossy().into_owned() })
    }
}
