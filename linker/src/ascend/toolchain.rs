//! Builds kernels to objects with the CMake functions of CANN. Objects need CANN, and texts do not.
//!
//! There is one way to build, for the program, for a build script and for a folder that the program
//! wrote: [`project`] is its CMake project, and [`Toolchain::build`] runs it. The operator project
//! goes through the same package of CANN. Both read the kernel type of a source file, which a
//! direct run of the compiler ignores.

use std::env::{self, consts::ARCH};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::ascend::cann;
use crate::ascend::object::check_type;

/// CANN's folder, its CMake functions, and CMake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolchain {
    /// CANN's folder.
    pub home: PathBuf,
    /// The folder of `ascendc.cmake`.
    pub modules: PathBuf,
    /// The program CMake.
    pub cmake: PathBuf,
}

/// The reason why a kernel has no object.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// CANN or CMake was not found; contains what was missing and the paths that were tried.
    #[error("no {0}; tried {1}; {2}")]
    Missing(&'static str, String, &'static str),
    /// CANN rejected a kernel, a program did not start, or an object is unusable.
    #[error("{0}")]
    Failed(String),
}

/// The folders of `ascendc.cmake` below the folder of CANN for an architecture, in versions 8.5 to 9.1.
fn module_folders(arch: &str) -> [String; 3] {
    let folder = "tikcpp/ascendc_kernel_cmake";
    [format!("compiler/{folder}"), format!("{arch}-linux/{folder}"), format!("tools/{folder}")]
}

/// Returns the CMake project that builds kernels. Kernel `k` is in the file `k.cpp` beside the
/// project, and its object is at [`object`]. `soc` is the name of a chip in any case.
pub fn project(kernels: &[&str], soc: &str) -> String {
    // Another machine than this one may build the project, so CMake fills in the architecture.
    let modules = module_folders("${CMAKE_HOST_SYSTEM_PROCESSOR}")
        .map(|folder| format!("  $ENV{{ASCEND_HOME_PATH}}/{folder}\n"));
    let kernel = |name: &&str| {
        format!(
            "ascendc_fatbin_library({name} {name}.cpp)\n\
             ascendc_include_directories({name} PRIVATE ${{CMAKE_CURRENT_SOURCE_DIR}})\n\
             ascendc_compile_options({name} PRIVATE --cce-auto-sync=off)\n"
        )
    };
    let kernels: String = kernels.iter().map(kernel).collect();
    include_str!("toolchain/CMakeLists.txt.in")
        .replace("@SOC@", &soc.to_lowercase())
        .replace("@MODULES@", &modules.concat())
        .replace("@KERNELS@\n", &kernels)
}

/// Returns the path of a kernel's object below the folder of its project.
pub fn object(folder: &Path, kernel: &str) -> PathBuf {
    folder.join("fatbin").join(kernel).join(format!("{kernel}.o"))
}

impl Toolchain {
    /// Looks for CANN with [`Self::find_in`] in ASCEND_HOME_PATH, and for CMake in PATH.
    ///
    /// # Errors
    /// If one of them is missing.
    pub fn find() -> Result<Self, Error> {
        Self::find_in(cann::home().as_deref(), env::var_os("PATH").as_deref())
    }

    /// Looks for CANN's CMake functions below `home`, and for CMake in the folders of `path`.
    ///
    /// # Errors
    /// If one of them is missing: contains the paths that were tried.
    pub fn find_in(home: Option<&Path>, path: Option<&OsStr>) -> Result<Self, Error> {
        let text = |files: &[PathBuf]| {
            let files: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
            if files.is_empty() { "no folder".into() } else { files.join(", ") }
        };
        let known = module_folders(ARCH);
        let files =
            known.iter().filter_map(|folder| Some(home?.join(folder).join("ascendc.cmake")));
        let files: Vec<_> = files.collect();
        let found = files.iter().find(|file| file.is_file()).and_then(|file| file.parent());
        let (Some(home), Some(modules)) = (home, found) else {
            let remedy = "set ASCEND_HOME_PATH to the folder of CANN 8.5 or newer";
            return Err(Error::Missing("CANN with ascendc.cmake", text(&files), remedy));
        };
        let folders = path.into_iter().flat_map(env::split_paths);
        let programs: Vec<_> = folders.map(|folder| folder.join("cmake")).collect();
        let Some(cmake) = programs.iter().find(|file| file.is_file()).cloned() else {
            return Err(Error::Missing("cmake", text(&programs), "install CMake 3.16 or newer"));
        };
        Ok(Self { home: home.into(), modules: modules.into(), cmake })
    }

    /// Writes the [`project`] of kernels into their folder, and builds their objects.
    ///
    /// # Errors
    /// If a file cannot be written, a program cannot be started, CANN rejects a kernel (contains
    /// its messages), or an object lacks the type of a kernel.
    pub fn build(&self, folder: &Path, kernels: &[&str], soc: &str) -> Result<(), Error> {
        let list = folder.join("CMakeLists.txt");
        let failed = |what: &Path, error| Error::Failed(format!("{}: {error}", what.display()));
        fs::write(&list, project(kernels, soc)).map_err(|error| failed(&list, error))?;
        for &kernel in kernels {
            // CMake would keep the object of an earlier text if this build fails.
            let _ = fs::remove_file(object(folder, kernel));
        }
        let build = folder.join("build");
        let modules = format!("-DASCENDC_CMAKE_DIR={}", self.modules.display());
        let soc = format!("-DSOC_VERSION={}", soc.to_lowercase());
        let configure = [OsStr::new("-S"), folder.as_os_str(), OsStr::new("-B"), build.as_os_str()];
        self.run(&configure, &[&modules, &soc])?;
        self.run(&[OsStr::new("--build"), build.as_os_str()], &[])?;
        kernels.iter().try_for_each(|kernel| check_object(folder, kernel))
    }

    fn run(&self, args: &[&OsStr], definitions: &[&str]) -> Result<(), Error> {
        let cmake = self.cmake.display();
        let mut run = Command::new(&self.cmake);
        run.args(args).args(definitions).env("ASCEND_HOME_PATH", &self.home);
        let done = run.output().map_err(|e| Error::Failed(format!("starting {cmake}: {e}")))?;
        if done.status.success() {
            return Ok(());
        }
        // Compilers that CMake starts write to either stream.
        let said = [&done.stdout, &done.stderr].map(|said| String::from_utf8_lossy(said));
        Err(Error::Failed(format!("{cmake} refused the kernels:\n{}{}", said[0], said[1])))
    }
}

/// Returns the names of the entry points in a source.
fn entries(text: &str) -> impl Iterator<Item = &str> {
    let declared = text.lines().filter(|line| line.starts_with("extern \"C\" __global__"));
    declared.filter_map(|line| line.split_once(" void ")?.1.split('(').next())
}

/// Returns an error if the object of a kernel was not built, or does not state the type of each of
/// its entry points.
fn check_object(folder: &Path, kernel: &str) -> Result<(), Error> {
    let object = object(folder, kernel);
    let read =
        |path: &Path| fs::read(path).map_err(|e| Error::Failed(format!("{}: {e}", path.display())));
    let (source, code) = (read(&folder.join(format!("{kernel}.cpp")))?, read(&object)?);
    let source = String::from_utf8_lossy(&source);
    let sync_all = source.contains("KERNEL_TYPE_MIX_AIV_1_0");
    let refused = |why| {
        let object = object.display();
        Error::Failed(format!("{object} {why}: build it with CANN 8.5 or newer"))
    };
    entries(&source).try_for_each(|entry| check_type(&code, entry, sync_all).map_err(refused))
}
