//! Where the runtime's functions come from: a file, the system's library path, or this process.

use std::ffi::{CStr, OsStr, c_void};
use std::mem::ManuallyDrop;
use std::path::PathBuf;

use libloading::Library;

use super::result::{Acl, Functions, Need, fill};
use crate::{Error, Result};

/// A function that looks up a function by name and returns null if there is none.
pub type Resolve = fn(&CStr) -> *mut c_void;

/// The source of the runtime's functions.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Source {
    /// `libacl_rt.so`, which newer versions of CANN have, or else `libascendcl.so`, on the system's
    /// library path.
    #[default]
    System,
    /// The library at this path.
    Path(PathBuf),
    /// Functions of this process, such as the simulator's; made by [`Source::process`].
    #[non_exhaustive]
    Process {
        /// The name of the source in messages.
        name: &'static str,
        /// Returns null or a function with the signature that the runtime gives the name.
        resolve: Resolve,
    },
}

impl Source {
    /// Returns a source of functions of this process.
    ///
    /// # Safety
    /// `resolve` returns null or a function with the signature that the runtime gives the name.
    pub unsafe fn process(name: &'static str, resolve: Resolve) -> Self {
        Self::Process { name, resolve }
    }
}

pub(super) fn open(source: &Source) -> Result<Acl> {
    match source {
        Source::System => from_files(&["libacl_rt.so", "libascendcl.so"].map(OsStr::new)),
        Source::Path(path) => from_files(&[path.as_os_str()]),
        Source::Process { name, resolve } => {
            // SAFETY: `Source::process` requires that the functions have the runtime's signatures.
            let table = unsafe { fill(resolve) };
            accept(table, (*name).to_owned(), None)
        }
    }
}

/// Loads the first of these libraries that can be loaded.
fn from_files(names: &[&OsStr]) -> Result<Acl> {
    let mut tried = Vec::new();
    for name in names {
        // SAFETY: loading runs the library's initialisers. The caller named the file, or it is the
        // runtime on the system's library path.
        match unsafe { Library::new(*name) } {
            Ok(library) => {
                let find = |name: &CStr| {
                    // SAFETY: the symbol is used as an address only.
                    let symbol = unsafe { library.get::<*mut c_void>(name.to_bytes_with_nul()) };
                    symbol.map_or(core::ptr::null_mut(), |symbol| *symbol)
                };
                // SAFETY: a library that has these names is the runtime, whose public headers give
                // them these signatures.
                let table = unsafe { fill(find) };
                return accept(table, name.to_string_lossy().into_owned(), Some(library));
            }
            // The message of the system's loader is in the error's source.
            Err(error) => {
                let cause = std::error::Error::source(&error).map(|s| format!(": {s}"));
                tried.push(format!("{} ({error}{})", name.display(), cause.unwrap_or_default()));
            }
        }
    }
    Err(Error::Unavailable {
        what: "the Ascend runtime",
        tried: tried.join(", "),
        remedy: "source CANN's set_env.sh, or pass the path of libascendcl.so",
    })
}

/// Makes an [`Acl`] from a table, if it has every required function.
fn accept(functions: Functions, name: String, library: Option<Library>) -> Result<Acl> {
    let acl = Acl { functions, name, library: library.map(ManuallyDrop::new) };
    let Some(lacks) = acl.lacks(Need::Required).next() else { return Ok(acl) };
    Err(Error::Unavailable {
        what: "the Ascend runtime",
        tried: format!("{} (it lacks {lacks}; CANN 8.1 and newer have it)", acl.name),
        remedy: "install CANN 8.1 or newer",
    })
}
