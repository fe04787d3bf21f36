//! Compiles AscendC text against `linker/shim` and launches it on this machine.
//!
//! Test programs include this file by its path. Without a C++ compiler `has_cpp_compiler` returns
//! false and prints that the test is skipped.

#![expect(dead_code, reason = "each test program uses a part of this file")]

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::ffi::{CString, c_char, c_int, c_void};
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::{fmt, fs, process};

use avsg_sim::compiler;
use avsg_sim::cycles::{Cycles, Prices, Times};

use super::tier;

/// Returns whether there is a C++ compiler. Without one it prints that the test is skipped.
pub fn has_cpp_compiler() -> bool {
    let found = compiler::cpp().is_some();
    if !found {
        println!("skipped: no C++ compiler");
    }
    found
}

/// Returns the folder of `kernel_operator.h`.
pub fn include() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("shim")
}

/// Returns the compiler's flags. -g would take a third of the time, and the shim reports lines
/// itself. -O1 takes a third longer than -Og, and its kernels run no faster.
fn flags() -> [&'static str; 8] {
    let level = if tier::thorough() { "-O1" } else { "-Og" };
    ["-std=c++17", level, "-fPIC", "-shared", "-pthread", "-Wall", "-Werror", "-ldl"]
}

#[derive(Clone)]
pub struct Kernels(Arc<libloading::Library>);

impl Kernels {
    /// Selects the statement of a text of mutants that is left out; 0 selects none. `function` sets it.
    pub fn leave_out(&self, function: &str, number: c_int) {
        // SAFETY: a text of mutants defines the function with this signature.
        let set = unsafe { self.0.get::<extern "C" fn(c_int)>(function.as_bytes()) };
        set.expect("a file of mutants")(number);
    }
}

/// Returns a hash of the text, the shim, the flags and the compiler.
fn fingerprint(text: &str) -> u64 {
    static SHIM: OnceLock<u64> = OnceLock::new();
    let shim = SHIM.get_or_init(|| {
        let mut files: Vec<PathBuf> = [include(), include().join("shim")]
            .iter()
            .flat_map(|d| fs::read_dir(d).expect("the shim is in the repository"))
            .map(|e| e.expect("a readable directory").path())
            .filter(|p| p.is_file())
            .collect();
        files.sort();
        let mut h = DefaultHasher::new();
        for f in files {
            fs::read(f).expect("a readable header").hash(&mut h);
        }
        flags().hash(&mut h);
        let mut compiler = compiler::cpp().expect("a C++ compiler");
        let version = compiler.arg("--version").output().map(|o| o.stdout);
        version.unwrap_or_default().hash(&mut h);
        format!("{compiler:?}").hash(&mut h);
        h.finish()
    });
    let mut h = DefaultHasher::new();
    (shim, text).hash(&mut h);
    h.finish()
}

/// Compiles `text` to a library. The error is the output of the compiler.
fn build(text: &str, name: &str) -> Result<PathBuf, String> {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let library = dir.join(format!("{name}.so"));
    if library.exists() {
        return Ok(library);
    }
    // Another process may compile the same text, so each builds under a name of its own and
    // renames.
    let own = dir.join(format!("{name}-{}", process::id()));
    let (written, built) = (own.with_extension("tmp"), own.with_extension("so"));
    let source = dir.join(format!("{name}.cpp"));
    fs::write(&written, text).map_err(|e| e.to_string())?;
    fs::rename(&written, &source).map_err(|e| e.to_string())?;
    let out = compiler::cpp()
        .expect("a C++ compiler")
        .args(flags())
        .arg("-I")
        .arg(include())
        .arg(&source)
        .arg("-o")
        .arg(&built)
        .output()
        .map_err(|e| e.to_string())?;
    if !out.status.success() {
        return Err(String::from_utf8_lossy(&out.stderr).into_owned());
    }
    fs::rename(&built, &library).map_err(|e| e.to_string())?;
    Ok(library)
}

/// The path of a library, or the output of the compiler. It is set when the build has ended.
type Build = Arc<OnceLock<Result<PathBuf, String>>>;

/// Compiles `text` once per content and loads it. The error is the output of the compiler.
pub fn try_compile(text: &str) -> Result<Kernels, String> {
    // Several test threads may need the same text at the same time.
    static BUILDS: Mutex<BTreeMap<u64, Build>> = Mutex::new(BTreeMap::new());
    let print = fingerprint(text);
    let build_once = BUILDS
        .lock()
        .expect("no thread panics while it holds the lock")
        .entry(print)
        .or_default()
        .clone();
    let built = build_once.get_or_init(|| build(text, &format!("shim-{print:016x}")));
    let library = built.as_ref().map_err(Clone::clone)?;
    // SAFETY: the library was built from the shim, whose code at load time only fills a table and a
    // number.
    let loaded = unsafe { libloading::Library::new(library) };
    loaded
        .map(|library| Kernels(Arc::new(library)))
        .map_err(|e| format!("{}: {e:?}", library.display()))
}

/// Checks `text` without building a library. Returns the output of the compiler, or `None` if the
/// text compiles.
pub fn compile_errors(text: &str) -> Option<String> {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let source = dir.join(format!("shim-{:016x}-syntax.cpp", fingerprint(text)));
    fs::write(&source, text).expect("a writable target directory");
    let out = compiler::cpp()
        .expect("a C++ compiler")
        .args(["-std=c++17", "-fsyntax-only", "-I"])
        .arg(include())
        .arg(&source)
        .output()
        .expect("the compiler starts");
    (!out.status.success()).then(|| String::from_utf8_lossy(&out.stderr).into_owned())
}

/// Compiles `text`, which must compile, and loads it.
pub fn compile(text: &str) -> Kernels {
    match try_compile(text) {
        Ok(k) => k,
        Err(e) => panic!("the compiler refused the kernel:\n{e}"),
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
pub enum Kind {
    Device = 0,
    /// Registered host memory.
    Host = 1,
    /// Device memory that a kernel must not write.
    ReadOnly = 2,
}

#[repr(C)]
#[derive(Clone, Copy)]
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
    cycles: *const Cycles,
}

type Launcher = unsafe extern "C" fn(
    *const c_char,
    u32,
    *const *mut c_void,
    u32,
    *const Options,
    *mut c_char,
    usize,
) -> c_int;

/// The error of a launch.
#[derive(Clone, PartialEq, Eq)]
pub struct Failure {
    /// 1: a rule was broken, 2: the launch was invalid, 3: the kernel hung.
    pub code: i32,
    /// `rule: op at file:line: what [core n]`.
    pub text: String,
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.text, self.code)
    }
}

/// Types without padding or invalid bit patterns, which kernels read and write.
pub trait Plain: Copy {}
impl Plain for u8 {}
impl Plain for i8 {}
impl Plain for u16 {}
impl Plain for i16 {}
impl Plain for u32 {}
impl Plain for i32 {}
impl Plain for u64 {}
impl Plain for i64 {}
impl Plain for f32 {}

/// A launch: arguments in the order of the kernel's parameters, and the memory that it may access.
pub struct Launch<'a> {
    name: &'a str,
    blocks: u32,
    cores: u32,
    seed: u64,
    mode: Mode,
    fault_block: i32,
    args: Vec<*mut c_void>,
    regions: Vec<Region>,
    memory: PhantomData<&'a mut ()>,
}

impl<'a> Launch<'a> {
    /// Returns a launch of one block on 48 cores, in program order.
    pub fn new(name: &'a str) -> Self {
        Self {
            name,
            blocks: 1,
            cores: 48,
            seed: 1,
            mode: Mode::InOrder,
            fault_block: -1,
            args: Vec::new(),
            regions: Vec::new(),
            memory: PhantomData,
        }
    }

    /// Sets the number of blocks.
    pub fn blocks(mut self, n: u32) -> Self {
        self.blocks = n;
        self
    }

    /// Sets the number of physical cores.
    pub fn cores(mut self, n: u32) -> Self {
        self.cores = n;
        self
    }

    /// Sets the order, and the seed of the order and of the contents of uninitialised memory.
    pub fn mode(mut self, mode: Mode, seed: u64) -> Self {
        (self.mode, self.seed) = (mode, seed);
        self
    }

    /// Raises an exception in this block.
    pub fn fault(mut self, block: i32) -> Self {
        self.fault_block = block;
        self
    }

    /// Passes device memory as the next argument.
    pub fn device<T: Plain>(self, memory: &'a mut [T]) -> Self {
        let at = memory.as_mut_ptr().cast();
        self.region(memory, Kind::Device).raw(at)
    }

    /// Passes registered host memory as the next argument.
    pub fn host<T: Plain>(self, memory: &'a mut [T]) -> Self {
        let at = memory.as_mut_ptr().cast();
        self.region(memory, Kind::Host).raw(at)
    }

    /// Passes memory that the kernel only reads as the next argument.
    pub fn input<T: Plain>(mut self, memory: &'a [T]) -> Self {
        let at = memory.as_ptr().cast_mut().cast();
        self.register(at, size_of_val(memory), Kind::ReadOnly);
        self.raw(at)
    }

    /// Passes an address that is null or not registered as the next argument. The shim refuses
    /// every access to it through a tensor.
    pub fn raw(mut self, at: *mut c_void) -> Self {
        self.args.push(at);
        self
    }

    /// Registers memory that the kernel reaches by an address in other memory.
    pub fn region<T: Plain>(mut self, memory: &'a mut [T], kind: Kind) -> Self {
        self.register(memory.as_mut_ptr().cast(), size_of_val(memory), kind);
        self
    }

    fn register(&mut self, base: *mut c_void, bytes: usize, kind: Kind) {
        self.regions.push(Region { base, len: bytes as u64, kind: kind as u32 });
    }

    /// Runs the kernel. Returns the bytes of unified buffer that it used, which is its highest byte
    /// plus one.
    pub fn run(self, kernels: &Kernels) -> Result<u32, Failure> {
        self.launch(kernels, std::ptr::null())
    }

    /// Runs the kernel and returns its times under each of the prices.
    pub fn run_timed(self, kernels: &Kernels, prices: &[Prices]) -> Result<Vec<Times>, Failure> {
        let mut times = vec![Times::default(); prices.len()];
        let cycles = Cycles::new(prices, &mut times);
        self.launch(kernels, &raw const cycles)?;
        Ok(times)
    }

    fn launch(self, kernels: &Kernels, cycles: *const Cycles) -> Result<u32, Failure> {
        let mut peak = 0;
        let options = Options {
            size: size_of::<Options>() as u32,
            cores: self.cores,
            seed: self.seed,
            mode: self.mode as u32,
            regions: self.regions.len() as u32,
            region: self.regions.as_ptr(),
            fault_block: self.fault_block,
            peak_ub: &raw mut peak,
            cycles,
        };
        let name = CString::new(self.name).expect("a kernel's name has no zero byte");
        let mut error = vec![0u8; 4096];
        // SAFETY: the header that every kernel file includes defines `avsg_shim_launch` with this
        // signature.
        let launch = unsafe { kernels.0.get::<Launcher>(b"avsg_shim_launch\0") }
            .expect("the shim's header exports the launcher");
        // SAFETY: all pointers outlive the call, because `self` borrows the memory and the rest is
        // on this stack. Kernels access memory through tensors, which stay within the regions.
        let code = unsafe {
            launch(
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
        let end = error.iter().position(|&b| b == 0).unwrap_or(error.len());
        Err(Failure { code, text: String::from_utf8_lossy(&error[..end]).into_owned() })
    }
}
