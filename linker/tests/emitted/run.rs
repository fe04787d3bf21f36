//! Compiles emitted kernels against the shim and launches them on memory of the test.

#![allow(dead_code, reason = "every test uses its own part")]

use std::cell::UnsafeCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fs;
use std::path::Path;
use std::process::Command;

#[repr(C)]
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

type Launch = unsafe extern "C" fn(
    *const c_char,
    u32,
    *const *mut c_void,
    u32,
    *const Options,
    *mut c_char,
    usize,
) -> c_int;

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;
}

/// Device memory, registered host memory, or memory that a kernel may only read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Device,
    Host,
    ReadOnly,
}

/// An array that a kernel sees. Cells, because a launch writes through pointers.
pub struct Array {
    words: Box<[UnsafeCell<u64>]>,
    bytes: usize,
    kind: Kind,
}

impl Array {
    pub fn bytes(from: &[u8], kind: Kind) -> Self {
        let word = |eight: &[u8]| {
            let mut all = [0; 8];
            all[..eight.len()].copy_from_slice(eight);
            UnsafeCell::new(u64::from_le_bytes(all))
        };
        Self { words: from.chunks(8).map(word).collect(), bytes: from.len(), kind }
    }

    pub fn ints(from: &[i32], kind: Kind) -> Self {
        Self::bytes(&from.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<_>>(), kind)
    }

    /// What it holds. Not during a launch.
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: the cells hold at least so many initialised bytes, and no launch runs: `run` returns
        // when all cores have.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), self.bytes) }
    }

    pub fn to_ints(&self) -> Vec<i32> {
        let word = |four: &[u8]| i32::from_le_bytes(four.try_into().expect("four bytes"));
        self.as_bytes().chunks_exact(4).map(word).collect()
    }

    pub fn address(&self) -> u64 {
        self.words.as_ptr() as u64
    }

    fn region(&self) -> Region {
        let kind = match self.kind {
            Kind::Device => 0,
            Kind::Host => 1,
            Kind::ReadOnly => 2,
        };
        Region { base: self.words.as_ptr().cast(), len: self.bytes as u64, kind }
    }
}

/// How a kernel is launched.
#[derive(Clone, Copy)]
pub struct How {
    pub cores: u32,
    /// 0 in order; 1 in an adversarial order; 2 the same without checks.
    pub mode: u32,
    pub seed: u64,
}

/// A compiled kernel.
pub struct Library {
    launch: Launch,
}

impl Library {
    /// Compiles a text; `None` without a C++ compiler, which is said.
    ///
    /// # Panics
    /// If the compiler refuses it.
    pub fn compile(name: &str, text: &str) -> Option<Self> {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("emitted");
        fs::create_dir_all(&dir).expect("a scratch folder");
        let source = dir.join(format!("{name}.cpp"));
        let library = dir.join(format!("{name}.so"));
        fs::write(&source, text).expect("the source is written");
        let shim = concat!(env!("CARGO_MANIFEST_DIR"), "/shim");
        let mut run = Command::new("g++");
        run.args([
            "-std=c++17",
            "-O1",
            "-g",
            "-Wall",
            "-Wextra",
            "-Wno-unused-parameter",
            "-Werror",
        ]);
        run.args(["-fPIC", "-shared", "-pthread", "-I", shim]);
        run.arg(&source).arg("-o").arg(&library);
        let Ok(done) = run.output() else {
            println!("skipped: no g++ here");
            return None;
        };
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{}:\n{said}", source.display());
        let path = CString::new(library.to_str().expect("UTF-8")).expect("no NUL");
        // SAFETY: the library was just written by the compiler; 2 is RTLD_NOW. It is never closed, so
        // the symbol lives as long as the process, and its type is the shim's.
        let launch = unsafe {
            let open = dlopen(path.as_ptr(), 2);
            assert!(!open.is_null(), "{:?}", CStr::from_ptr(dlerror()));
            let symbol = dlsym(open, c"avsg_shim_launch".as_ptr());
            assert!(!symbol.is_null(), "the shim exports its launcher");
            std::mem::transmute::<*mut c_void, Launch>(symbol)
        };
        Some(Self { launch })
    }

    /// Runs a kernel on as many blocks as cores. `args` are `None` for null, or positions in `arrays`;
    /// `more` is memory that a kernel reaches by pointers. Returns the highest byte of UB that it
    /// touched.
    pub fn run(
        &self,
        kernel: &str,
        args: &[Option<&Array>],
        more: &[&Array],
        how: How,
    ) -> Result<u32, String> {
        let regions: Vec<_> =
            args.iter().flatten().chain(more).map(|array| array.region()).collect();
        let pointer = |array: &Option<&Array>| {
            array.map_or(std::ptr::null_mut(), |a| a.words.as_ptr() as *mut c_void)
        };
        let pointers: Vec<_> = args.iter().map(pointer).collect();
        let name = CString::new(kernel).expect("no NUL");
        let mut peak = 0u32;
        let options = Options {
            size: size_of::<Options>() as u32,
            cores: how.cores,
            seed: how.seed,
            mode: how.mode,
            regions: regions.len() as u32,
            region: regions.as_ptr(),
            fault_block: -1,
            peak_ub: &mut peak,
            cycles: std::ptr::null_mut(),
        };
        let mut error = vec![0u8; 4096];
        // SAFETY: pointers and lengths describe the arrays, which outlive the call; nobody else reads
        // or writes them meanwhile, and the shim checks every access against the regions.
        let status = unsafe {
            (self.launch)(
                name.as_ptr(),
                how.cores,
                pointers.as_ptr(),
                pointers.len() as u32,
                &options,
                error.as_mut_ptr().cast(),
                error.len(),
            )
        };
        if status == 0 {
            return Ok(peak);
        }
        let text = CStr::from_bytes_until_nul(&error).map_or("".into(), CStr::to_string_lossy);
        Err(format!("{kernel}: {status}: {text}"))
    }
}
