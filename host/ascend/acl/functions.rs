//! The names of the runtime's functions, and the code that fills a table of them.

use std::ffi::{CStr, c_void};

use super::sys::{self, Functions};

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
        pub(super) unsafe fn fill(find: impl Fn(&CStr) -> *mut c_void) -> Functions {
            let mut table = Functions::default();
            $(
                // SAFETY: by the contract of `fill` the pointer is null or has this member's type;
                // a null pointer is `None`, because both are one pointer wide.
                table.$required = unsafe { pointer(&find, concat!(stringify!($required), "\0")) };
            )*
            $(
                // SAFETY: as for the required functions.
                table.$optional = unsafe { pointer(&find, concat!(stringify!($optional), "\0")) };
            )*
            table
        }

        /// Returns the names of the optional functions that a table lacks.
        pub(super) fn absent(table: &Functions) -> impl Iterator<Item = &'static str> {
            let all = [$((table.$optional.is_none(), stringify!($optional))),*];
            all.into_iter().filter_map(|(absent, name)| absent.then_some(name))
        }

        /// Returns the name of the first required function that a table lacks.
        pub(super) fn missing(table: &Functions) -> Option<&'static str> {
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
        aclrtStreamWaitEvent
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
    // SAFETY: by the contract the pointer is null or a function of type `F`, and the sizes are
    // equal by the assertion.
    unsafe { core::mem::transmute_copy(&address) }
}
