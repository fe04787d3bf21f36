//! The driver of `libcuda.c`, compiled once, of which one test has exclusive use.

#[path = "../../../../linker/tests/cuda/gpu.rs"]
#[expect(dead_code, reason = "the driver launches the kernels")]
mod gpu;

use std::ffi::{CString, c_char, c_int};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::{fs, process};

use anyhow::Result;
use avsg_sim::shim::Kernels;
use libloading::Library;

use super::super::driver::Driver;
use super::super::pack::Image;
use super::super::sizes::Sizes;
use super::super::texts::{ARCHITECTURES, PROBES, texts};
use gpu::{Gpu, library};

/// What the driver does.
#[derive(Clone, Copy, Debug)]
pub struct Mode {
    /// The function that fails, and its code.
    pub failing: &'static str,
    pub code: c_int,
    /// Whether kernels do nothing.
    pub dry: bool,
    /// The major number of the compute capability.
    pub capability: c_int,
}

impl Default for Mode {
    fn default() -> Self {
        Self { failing: "", code: 0, dry: false, capability: 9 }
    }
}

/// The driver while a test uses it.
pub struct Fake {
    library: &'static Library,
    pub path: &'static Path,
    _alone: MutexGuard<'static, ()>,
}

impl Fake {
    /// Starts the driver anew. Without a C compiler it returns `None`, and says that the test is skipped.
    pub fn start(mode: Mode) -> Option<Self> {
        static ALONE: Mutex<()> = Mutex::new(());
        static LOADED: OnceLock<Option<(Library, PathBuf)>> = OnceLock::new();
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((library, path)) = LOADED.get_or_init(load) else {
            println!("skipped: no C compiler");
            return None;
        };
        type Start = unsafe extern "C" fn(*const c_char, c_int, c_int, c_int);
        let name = CString::new(mode.failing).unwrap();
        // SAFETY: the driver has this function, and copies the name.
        unsafe {
            let start = library.get::<Start>(b"fake_start").unwrap();
            start(name.as_ptr(), mode.code, c_int::from(mode.dry), mode.capability);
        }
        Some(Self { library, path, _alone: alone })
    }

    /// Opens the driver.
    pub fn driver(&self) -> Driver {
        Driver::open(self.path).unwrap()
    }

    /// Returns the number of allocations, handles and contexts that are not released.
    pub fn live(&self) -> c_int {
        type Live = unsafe extern "C" fn() -> c_int;
        // SAFETY: the driver has this function.
        unsafe { self.library.get::<Live>(b"fake_live").unwrap()() }
    }
}

/// Compiles the driver unless this machine has it, and loads it.
fn load() -> Option<(Library, PathBuf)> {
    const SOURCE: &str = include_str!("libcuda.c");
    let mut compiler = avsg_sim::compiler::c()?;
    let mut hasher = DefaultHasher::new();
    SOURCE.hash(&mut hasher);
    let folder = avsg_sim::cache_folder().unwrap();
    let path = folder.join(format!("libcuda-{:016x}.so", hasher.finish()));
    if !path.exists() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/gpu/tests/libcuda.c");
        // The temporary name is unique to this process, as another one may compile the same file.
        let temporary = path.with_extension(format!("{}.tmp", process::id()));
        compiler.args(["-Werror", "-O1", "-fPIC", "-shared", "-o"]).arg(&temporary).arg(source);
        let output = compiler.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        fs::rename(&temporary, &path).unwrap();
    }
    // SAFETY: the library has no initialisers.
    let library = unsafe { Library::new(&path) }.unwrap();
    Some((library, path))
}

/// Starts the driver anew, and returns it with images of the kernels for it, by the number of the architecture. Without
/// a C++ compiler it returns `None`, and says that the test is skipped.
pub fn start(
    mode: Mode,
    sizes: &Sizes,
) -> Option<(Fake, impl Fn(u32) -> Result<Vec<Image>> + use<>)> {
    let fake = Fake::start(mode)?;
    avsg_sim::compiler::cpp()?;
    let sizes = sizes.clone();
    let images = move |sm| {
        let found = ARCHITECTURES.into_iter().find(|architecture| architecture.sm == sm);
        let architecture = found.unwrap();
        let gpu = if architecture.bulk { Gpu::Bulk } else { Gpu::Loads };
        let image = |text: super::super::texts::Text| {
            // The last two are those of an architecture that copies in bulk.
            let probes = ["loads", "loads_ahead", "table", "nothing", "bulk", "table_bulk"];
            let probes = &probes[..if architecture.bulk { 6 } else { 4 }];
            let names = match text.name.as_str() {
                PROBES => probes.iter().map(|name| format!("avsg_probe_{name}")).collect(),
                _ => ["avsg_step", "avsg_plan", "avsg_comparator"].map(String::from).to_vec(),
            };
            let kernels: Vec<_> = names.iter().map(|name| (&name[..], sizes.threads)).collect();
            let kernels = library(&text.text, &kernels, gpu).unwrap();
            let mut code = b"avsgshim".to_vec();
            code.extend(launcher(kernels).to_ne_bytes());
            Image { name: text.name, shared_bytes: text.shared_bytes, code }
        };
        Ok(texts(&sizes, architecture, false)?.into_iter().map(image).collect())
    };
    Some((fake, images))
}

/// Returns the address of the function that launches kernels. Their library stays loaded.
fn launcher(kernels: Kernels) -> usize {
    let kernels = Box::leak(Box::new(kernels));
    // SAFETY: the symbol is only taken as an address.
    let launch = unsafe { kernels.library().get::<*const ()>(b"avsg_shim_launch") }.unwrap();
    // SAFETY: the shim defines the function; its address is that of the symbol.
    unsafe { launch.into_raw() }.as_raw_ptr() as usize
}
