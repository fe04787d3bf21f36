//! Compiles AscendC text against `linker/shim` and launches it on this machine.
//!
//! Included by path from the test files that need it; nothing here knows any kernel. Without a C++
//! compiler `gxx` is false, and tests say "skipped: no C++ compiler".

#![expect(dead_code, reason = "every test file includes this and uses a part of it")]

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::ffi::{CString, c_char, c_int, c_void};
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::{fmt, fs, process};

use avsg_sim::compiler;

use super::tier;

/// Whether there is a C++ compiler; says so if not.
pub fn gxx() -> bool {
    let found = compiler::cpp().is_some();
    if !found {
        println!("skipped: no C++ compiler");
    }
    found
}

/// Where `kernel_operator.h` lies.
pub fn include() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("shim")
}

/// Without -g: it would take a third of the time, and the shim names lines itself. -O1 takes a third
/// more than -Og, and its kernels run as long.
fn flags() -> [&'static str; 8] {
    let level = if tier::thorough() { "-O1" } else { "-Og" };
    ["-std=c++17", level, "-fPIC", "-shared", "-pthread", "-Wall", "-Werror", "-ldl"]
}

/// A compiled kernel file.
#[derive(Clone)]
pub struct Kernels(Arc<libloading::Library>);

impl Kernels {
    /// Says which statement of a file of mutants does not run; 0 is none.
    pub fn leave_out(&self, number: c_int) {
        // SAFETY: the file of mutants defines it with this signature.
        let set = unsafe { self.0.get::<extern "C" fn(c_int)>(b"avsg_leave_out\0") };
        set.expect("a file of mutants")(number);
    }
}

/// A number that changes with the text, the shim, the flags and the compiler.
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

/// Builds the library of `text`; the error is what the compiler said.
fn build(text: &str, name: &str) -> Result<PathBuf, String> {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let library = dir.join(format!("{name}.so"));
    if library.exists() {
        return Ok(library);
    }
    // Other processes may be at the same text: build under a name of our own, then rename.
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

type Built = Arc<OnceLock<Result<PathBuf, String>>>;

/// Compiles `text` (once per content) and loads it; the error is what the compiler said.
pub fn try_compile(text: &str) -> Result<Kernels, String> {
    // Tests are threads, and several want the same text at once.
    static BUILDS: Mutex<BTreeMap<u64, Built>> = Mutex::new(BTreeMap::new());
    let print = fingerprint(text);
    let mine = BUILDS.lock().expect("no test dies holding it").entry(print).or_default().clone();
    let built = mine.get_or_init(|| build(text, &format!("shim-{print:016x}")));
    let library = built.as_ref().map_err(Clone::clone)?;
    // SAFETY: the library was built from the shim, whose load-time code is one table and one number.
    let loaded = unsafe { libloading::Library::new(library) };
    loaded
        .map(|library| Kernels(Arc::new(library)))
        .map_err(|e| format!("{}: {e:?}", library.display()))
}

/// What the compiler says to `text`, without building anything; `None` if it has no complaint.
pub fn complaint(text: &str) -> Option<String> {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let source = dir.join(format!("shim-{:016x}-syntax.cpp", fingerprint(text)));
    fs::write(&source, text).expect("a writable target directory");
    let out = compiler::cpp()
        .expect("a C++ compiler")
        .args(["-std=c++17", "-fsyntax-only", "-I"])
        .arg(include())
        .arg(&source)
        .output()
        .expect("it started before");
    (!out.status.success()).then(|| String::from_utf8_lossy(&out.stderr).into_owned())
}

/// The same, for text that must compile.
pub fn compile(text: &str) -> Kernels {
    match try_compile(text) {
        Ok(k) => k,
        Err(e) => panic!("the compiler refused the kernel:\n{e}"),
    }
}

/// In which order instructions run, and whether rules are enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Program order, every rule enforced.
    InOrder = 0,
    /// A seeded order that only the kernel's own synchronisation restricts, every rule enforced.
    Adversarial = 1,
    /// The same order with hazards, undefined data and overflow let through: what would really happen.
    Unchecked = 2,
}

/// Who may do what with a piece of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Device memory.
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
    cycles: *mut u64,
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

/// A launch that did not end well.
#[derive(Clone, PartialEq, Eq)]
pub struct Failure {
    /// 1: a rule was broken, 2: a bad launch, 3: a hang.
    pub code: i32,
    /// `rule: op at file:line: what [core n]`.
    pub text: String,
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.text, self.code)
    }
}

/// Anything that is bytes all through: what kernels read and write.
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

/// One launch: arguments in the order of the kernel's parameters, and the memory it may touch.
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
    /// One block on 48 cores, in order.
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

    /// How many blocks.
    pub fn blocks(mut self, n: u32) -> Self {
        self.blocks = n;
        self
    }

    /// How many physical cores.
    pub fn cores(mut self, n: u32) -> Self {
        self.cores = n;
        self
    }

    /// The order, and what uninitialised memory holds.
    pub fn mode(mut self, mode: Mode, seed: u64) -> Self {
        (self.mode, self.seed) = (mode, seed);
        self
    }

    /// Raises an exception in this block.
    pub fn fault(mut self, block: i32) -> Self {
        self.fault_block = block;
        self
    }

    /// An argument: device memory.
    pub fn device<T: Plain>(self, memory: &'a mut [T]) -> Self {
        let at = memory.as_mut_ptr().cast();
        self.region(memory, Kind::Device).raw(at)
    }

    /// An argument: registered host memory.
    pub fn host<T: Plain>(self, memory: &'a mut [T]) -> Self {
        let at = memory.as_mut_ptr().cast();
        self.region(memory, Kind::Host).raw(at)
    }

    /// Passes memory that the kernel only reads as the next argument.
    pub fn input<T: Plain>(mut self, memory: &'a [T]) -> Self {
        let at = memory.as_ptr().cast_mut().cast();
        self.add(at, size_of_val(memory), Kind::ReadOnly);
        self.raw(at)
    }

    /// An argument that stands for no memory: null, or an address nobody registered. The shim refuses
    /// every access to it that goes through a tensor.
    pub fn raw(mut self, at: *mut c_void) -> Self {
        self.args.push(at);
        self
    }

    /// Memory that the kernel finds by an address in other memory.
    pub fn region<T: Plain>(mut self, memory: &'a mut [T], kind: Kind) -> Self {
        self.add(memory.as_mut_ptr().cast(), size_of_val(memory), kind);
        self
    }

    fn add(&mut self, base: *mut c_void, bytes: usize, kind: Kind) {
        self.regions.push(Region { base, len: bytes as u64, kind: kind as u32 });
    }

    /// Runs it. The value is the highest UB byte used, plus one.
    pub fn run(self, kernels: &Kernels) -> Result<u32, Failure> {
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
            cycles: std::ptr::null_mut(),
        };
        let name = CString::new(self.name).expect("a kernel's name has no zero byte");
        let mut error = vec![0u8; 4096];
        // SAFETY: the header that every kernel file includes defines it with this signature.
        let launch = unsafe { kernels.0.get::<Launcher>(b"avsg_shim_launch\0") }
            .expect("the shim's header exports the launcher");
        // SAFETY: all pointers outlive the call: `self` holds the borrows of the memory, the rest is on
        // this stack. Kernels reach memory through tensors, which stay within the regions.
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
