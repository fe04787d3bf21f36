//! Which functions there are, and how a table of them is filled.

use std::ffi::{CStr, c_void};

use super::sys::{self, Functions};

// What a C compiler makes of the structs in public headers, on 64-bit machines.
const _: () = assert!(
    size_of::<sys::aclrtLaunchKernelAttr>() == 20
        && size_of::<sys::aclrtLaunchKernelCfg>() == 16
        && size_of::<sys::aclrtMemcpyBatchAttr>() == 32
        && size_of::<sys::aclrtBinaryLoadOption>() == 20
        && size_of::<sys::aclrtBinaryLoadOptions>() == 16
);

/// Names both lists and the function that fills a table by them.
macro_rules! functions {
    (required { $($required:ident)* } optional { $($optional:ident)* }) => {
        /// What CANN 8.1, the oldest that is supported, has and the engine needs.
        pub const REQUIRED: &[&str] = &[$(stringify!($required),)*];
        /// What came later, or only some uses need.
        pub const OPTIONAL: &[&str] = &[$(stringify!($optional),)*];

        /// Looks every function up by name; absent ones stay empty.
        ///
        /// # Safety
        /// What `find` returns for a name is null or a function of that name's type in `acl.h`.
        pub(super) unsafe fn fill(find: impl Fn(&CStr) -> *mut c_void) -> Functions {
            let mut table = Functions::default();
            $(
                // SAFETY: the contract; a null pointer is `None`, as both are one pointer wide.
                table.$required = unsafe { pointer(&find, concat!(stringify!($required), "\0")) };
            )*
            $(
                // SAFETY: as above.
                table.$optional = unsafe { pointer(&find, concat!(stringify!($optional), "\0")) };
            )*
            table
        }

        /// The first required function that a table lacks.
        pub(super) fn lacking(table: &Functions) -> Option<&'static str> {
            $(if table.$required.is_none() { return Some(stringify!($required)); })*
            None
        }
    };
}

functions! {
    required {
        aclInit
        aclGetRecentErrMsg
        aclrtGetSocName
        aclrtGetDeviceCount
        aclrtSetDevice
        aclrtResetDevice
        aclGetDeviceCapability
        aclrtGetMemInfo
        aclrtSynchronizeDevice
        aclrtSetCurrentContext
        aclrtGetCurrentContext
        aclrtCreateStream
        aclrtDestroyStream
        aclrtSynchronizeStream
        aclrtSynchronizeStreamWithTimeout
        aclrtStreamQuery
        aclrtStreamWaitEvent
        aclrtDestroyEvent
        aclrtRecordEvent
        aclrtSynchronizeEvent
        aclrtEventElapsedTime
        aclrtMalloc
        aclrtFree
        aclrtMallocHost
        aclrtFreeHost
        aclrtMemcpy
        aclrtMemcpyAsync
        aclrtMemset
        aclrtMemsetAsync
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
        aclrtResetDeviceForce
        aclrtGetDeviceInfo
        aclrtSynchronizeDeviceWithTimeout
        aclrtCreateContext
        aclrtDestroyContext
        aclrtCreateStreamWithConfig
        aclrtDestroyStreamForce
        aclrtSetStreamFailureMode
        aclrtGetStreamResLimit
        aclrtCreateEvent
        aclrtCreateEventExWithFlag
        aclrtMemcpyBatchAsync
        aclrtHostRegisterV2
        aclrtHostGetDevicePointer
        aclrtBinaryLoadFromData
        aclmdlRICaptureBegin
        aclmdlRICaptureEnd
        aclmdlRICaptureGetInfo
        aclmdlRIExecuteAsync
        aclmdlRIDestroy
    }
}

/// One function.
///
/// # Safety
/// `F` is `Option` of a function pointer, and `find` returns null or such a function.
unsafe fn pointer<F>(find: &impl Fn(&CStr) -> *mut c_void, name: &'static str) -> F {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    let name = CStr::from_bytes_with_nul(name.as_bytes()).unwrap_or_default();
    let found = find(name);
    // SAFETY: the contract, and the sizes are equal by the assertion.
    unsafe { core::mem::transmute_copy(&found) }
}
