//! The runtime's functions: their names, the table of them, and its sources: a file, the system's
//! library path, or functions of this process.

use std::ffi::{CStr, OsStr, c_void};
use std::mem::ManuallyDrop;
use std::path::PathBuf;

use libloading::Library;

use super::Acl;
use super::sys::{self, Functions};
use crate::{Error, Result};

// These are the sizes that a C compiler gives the structs of the public headers on 64-bit machines.
const _: () = assert!(
    size_of::<sys::aclrtLaunchKernelAttr>() == 20
        && size_of::<sys::aclrtLaunchKernelCfg>() == 16
        && size_of::<sys::aclrtBinaryLoadOption>() == 20
        && size_of::<sys::aclrtBinaryLoadOptions>() == 16
);

/// Defines both lists of names, and the functions that fill and check a table.
macro_rules! functions {
    (required { $($required:ident)* } optional { $($optional:ident)* }) => {
        /// Names of the functions that every engine needs; CANN 8.1, the oldest supported version,
        /// has them all.
        pub const REQUIRED: &[&str] = &[$(stringify!($required),)*];
        /// Names of the functions that an engine does without, or that only the caller's events and
        /// captures and the reports about a device need. A call of an absent one is an error.
        pub const OPTIONAL: &[&str] = &[$(stringify!($optional),)*];

        /// Looks up every function by name; absent ones are `None`.
        ///
        /// # Safety
        /// For every name, `find` returns null or a function with the signature that `acl.h` gives
        /// the name.
        unsafe fn fill(find: impl Fn(&CStr) -> *mut c_void) -> Functions {
            // SAFETY: `find` returns null or a function of its member's type (`# Safety`); a null pointer
            // is `None`, because both are one pointer wide.
            unsafe {
                Functions {
                    $($required: pointer(&find, concat!(stringify!($required), "\0")),)*
                    $($optional: pointer(&find, concat!(stringify!($optional), "\0")),)*
                }
            }
        }

        /// Returns the names of the optional functions that a table lacks.
        pub(super) fn absent(table: &Functions) -> impl Iterator<Item = &'static str> {
            let all = [$((table.$optional.is_none(), stringify!($optional))),*];
            all.into_iter().filter_map(|(absent, name)| absent.then_some(name))
        }

        /// Returns the name of the first required function that a table lacks.
        fn missing(table: &Functions) -> Option<&'static str> {
            $(if table.$required.is_none() { return Some(stringify!($required)); })*
            None
        }
    };
}

functions! {
    required {
        aclInit
        aclrtGetDeviceCount
        aclrtSetDevice
        aclrtResetDevice
        aclGetDeviceCapability
        aclrtSynchronizeDevice
        aclrtSetCurrentContext
        aclrtGetCurrentContext
        aclrtCreateStream
        aclrtDestroyStream
        aclrtSynchronizeStreamWithTimeout
        aclrtMalloc
        aclrtFree
        aclrtMallocHost
        aclrtFreeHost
        aclrtMemcpy
        aclrtMemcpyAsync
        aclrtMemset
        aclrtHostRegister
        aclrtHostUnregister
        aclrtBinaryLoadFromFile
        aclrtBinaryGetFunction
        aclrtBinaryUnLoad
        aclrtKernelArgsInit
        aclrtKernelArgsAppend
        aclrtKernelArgsAppendPlaceHolder
        aclrtKernelArgsGetPlaceHolderBuffer
        aclrtKernelArgsParaUpdate
        aclrtKernelArgsFinalize
        aclrtLaunchKernelWithConfig
    }
    optional {
        aclGetRecentErrMsg
        aclrtGetSocName
        aclrtGetMemInfo
        aclrtSynchronizeDeviceWithTimeout
        aclrtDestroyStreamForce
        aclrtGetStreamResLimit
        aclrtCreateEventExWithFlag
        aclrtDestroyEvent
        aclrtRecordEvent
        aclrtEventElapsedTime
        aclrtBinaryLoadFromData
        aclmdlRICaptureBegin
        aclmdlRICaptureEnd
        aclmdlRICaptureGetInfo
        aclmdlRIExecuteAsync
        aclmdlRIDestroy
    }
}

/// Looks up one function by name.
///
/// # Safety
/// `F` is `Option` of a function pointer, and `find` returns null or such a function.
unsafe fn pointer<F>(find: &impl Fn(&CStr) -> *mut c_void, name: &'static str) -> F {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    let name = CStr::from_bytes_with_nul(name.as_bytes()).unwrap_or_default();
    let address = find(name);
    // SAFETY: the pointer is null or a function of the pointer type in `F` (`# Safety`), and the sizes
    // are equal by the assertion.
    unsafe { core::mem::transmute_copy(&address) }
}

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
        /// Returns null or a function with the signature that `acl.h` gives the name.
        resolve: Resolve,
    },
}

impl Source {
    /// Returns a source of functions of this process.
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
            // SAFETY: `Source::process` requires that the functions have the signatures of `acl.h`.
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
                // them the signatures of `acl.h`.
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
fn accept(table: Functions, name: String, library: Option<Library>) -> Result<Acl> {
    if let Some(name_missing) = missing(&table) {
        return Err(Error::Unavailable {
            what: "the Ascend runtime",
            tried: format!("{name} (it lacks {name_missing}; CANN 8.1 and newer have it)"),
            remedy: "install CANN 8.1 or newer",
        });
    }
    Ok(Acl { functions: table, name, library: library.map(ManuallyDrop::new) })
}
