//! Finding the runtime: a path, the system's library path, or a table of functions in this process.

use std::ffi::{CStr, OsStr, c_void};
use std::mem::ManuallyDrop;
use std::path::PathBuf;

use libloading::Library;

use super::{Acl, functions, sys};
use crate::{Error, Result};

/// Looks a function up by its name; null where there is none.
pub type Resolve = fn(&CStr) -> *mut c_void;

/// Where the runtime's functions are.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Source {
    /// `libacl_rt.so`, which newer CANN has, then `libascendcl.so`, by the system's library path.
    #[default]
    System,
    /// This file.
    Path(PathBuf),
    /// Functions of this process: the simulator's. Made by [`Source::process`].
    #[non_exhaustive]
    Process {
        /// What to call it in messages.
        name: &'static str,
        /// Must return null or a function with the signature that `acl.h` gives this name.
        resolve: Resolve,
    },
}

impl Source {
    /// Functions of this process.
    ///
    /// # Safety
    /// `resolve` returns null or a function with the signature that `acl.h` gives the name.
    pub unsafe fn process(name: &'static str, resolve: Resolve) -> Self {
        Self::Process { name, resolve }
    }
}

pub(super) fn open(source: &Source) -> Result<Acl> {
    match source {
        Source::System => from_files(&["libacl_rt.so", "libascendcl.so"].map(OsStr::new)),
        Source::Path(path) => from_files(&[path.as_os_str()]),
        Source::Process { name, resolve } => {
            // SAFETY: the promise of whoever made this source.
            let table = unsafe { functions::fill(resolve) };
            accept(table, (*name).to_owned(), None)
        }
    }
}

/// The first of these libraries that can be loaded.
fn from_files(names: &[&OsStr]) -> Result<Acl> {
    let mut tried = Vec::new();
    for name in names {
        // SAFETY: the runtime's libraries run initialisers of their own; that is what loading them
        // means, and the caller named the file or the system's library path found it.
        match unsafe { Library::new(*name) } {
            Ok(library) => {
                let find = |name: &CStr| {
                    // SAFETY: only the address is taken here.
                    let found = unsafe { library.get::<*mut c_void>(name.to_bytes_with_nul()) };
                    found.map_or(core::ptr::null_mut(), |symbol| *symbol)
                };
                // SAFETY: a library that has these names is the runtime, whose public headers give
                // them the signatures of `acl.h`.
                let table = unsafe { functions::fill(find) };
                return accept(table, name.to_string_lossy().into_owned(), Some(library));
            }
            // libloading's own text is short; the loader's words are in the source.
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

/// Refuses what is not a whole runtime.
fn accept(table: sys::Functions, name: String, library: Option<Library>) -> Result<Acl> {
    if let Some(lacks) = functions::lacking(&table) {
        return Err(Error::Unavailable {
            what: "the Ascend runtime",
            tried: format!("{name} (it lacks {lacks}; CANN 8.1 and newer have it)"),
            remedy: "install CANN 8.1 or newer",
        });
    }
    Ok(Acl { functions: table, name, library: library.map(ManuallyDrop::new) })
}
