//! Finds and runs the Ascend compiler. Objects of kernels need it, and their texts do not.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A compiler for dav-c220 vector cores, with its folders of headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolchain {
    /// The path of `bisheng` or `ccec`.
    pub compiler: PathBuf,
    /// The folders of its headers.
    pub includes: Vec<PathBuf>,
}

/// The reason why a kernel has no object.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No compiler was found; contains the paths that were tried.
    #[error("no Ascend compiler; tried {0}; set ASCEND_HOME_PATH to the CANN toolkit")]
    Missing(String),
    /// The compiler rejected a kernel, or did not start.
    #[error("{0}")]
    Failed(String),
}

const FOLDERS: [&str; 4] =
    ["bin", "compiler/ccec_compiler/bin", "tools/ccec_compiler/bin", "compiler/bishengir/bin"];
const INCLUDES: [&str; 5] =
    ["include", "compiler/tikcpp/tikcfw", "asc/include", "asc/include/basic_api", "asc/impl"];

const FLAGS: &str = "-c -O3 -std=c++17 -x cce --cce-aicore-lang --cce-aicore-arch=dav-c220-vec \
    --cce-aicore-only --cce-auto-sync=off -mllvm -cce-aicore-stack-size=0x8000 \
    -mllvm -cce-aicore-function-stack-size=0x8000 -mllvm -cce-aicore-record-overflow=true \
    -mllvm -cce-aicore-addr-transform -mllvm -cce-aicore-dcci-insert-for-scalar=false";

impl Toolchain {
    /// Looks for a compiler with [`Self::find_in`] in ASCEND_HOME_PATH and PATH.
    ///
    /// # Errors
    /// If there is none.
    pub fn find() -> Result<Self, Error> {
        let home = env::var_os("ASCEND_HOME_PATH").filter(|home| !home.is_empty());
        Self::find_in(home.as_deref().map(Path::new), env::var_os("PATH").as_deref())
    }

    /// Looks for a compiler below `home`, and then in the folders of `path`.
    ///
    /// # Errors
    /// If there is none: contains the paths that were tried.
    pub fn find_in(home: Option<&Path>, path: Option<&OsStr>) -> Result<Self, Error> {
        let below = FOLDERS.iter().filter_map(|folder| home.map(|home| home.join(folder)));
        let folders = below.chain(path.into_iter().flat_map(env::split_paths));
        let tried: Vec<_> = folders.flat_map(|f| [f.join("bisheng"), f.join("ccec")]).collect();
        let Some(compiler) = tried.iter().find(|file| file.is_file()).cloned() else {
            let tried: Vec<_> = tried.iter().map(|file| file.display().to_string()).collect();
            return Err(Error::Missing(tried.join(", ")));
        };
        let all = INCLUDES.iter().filter_map(|i| home.map(|home| home.join(i)));
        Ok(Self { compiler, includes: all.filter(|folder| folder.is_dir()).collect() })
    }

    /// Compiles a kernel to an object for vector cores.
    ///
    /// # Errors
    /// If the compiler cannot be started, or rejects the kernel: contains its messages.
    pub fn compile(&self, source: &Path, object: &Path) -> Result<(), Error> {
        let mut run = Command::new(&self.compiler);
        run.args(FLAGS.split_whitespace());
        for folder in &self.includes {
            run.arg("-I").arg(folder);
        }
        let done = run.arg(source).arg("-o").arg(object).output();
        let (compiler, source) = (self.compiler.display(), source.display());
        let done = done.map_err(|e| Error::Failed(format!("starting {compiler}: {e}")))?;
        let said = String::from_utf8_lossy(&done.stderr);
        let refused = || Error::Failed(format!("{compiler} refused {source}:\n{said}"));
        if done.status.success() { Ok(()) } else { Err(refused()) }
    }
}
