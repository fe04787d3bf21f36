//! The functions of the runtime, under their own names.
//!
//! The list below is the only list of their signatures: this crate defines functions from it, the
//! shared library exports them, and [`symbol`] finds them by name.
//!
//! # Safety
//! Each pointer that a function gets is null or valid for what the real function reads and writes through
//! it. Handles and device addresses may have any value, because they are looked up.

mod argument;
mod context;
mod event;
mod kernel;
mod memory_calls;
mod process;
mod stream;

use std::ffi::{CStr, c_void};

/// Calls a macro with the list of all functions that return a code.
#[macro_export]
macro_rules! for_each_function {
    ($with:ident) => {
        $with! {
            process {
                aclInit(config: *const c_char);
                aclrtGetDeviceCount(count: *mut u32);
                aclrtSetDevice(device: i32);
                aclrtResetDevice(device: i32);
                aclGetDeviceCapability(device: u32, info: i32, value: *mut i64);
                aclrtGetMemInfo(attr: i32, free: *mut usize, total: *mut usize);
                aclrtSynchronizeDevice();
                aclrtSynchronizeDeviceWithTimeout(timeout: i32);
            }
            context {
                aclrtSetCurrentContext(context: *mut c_void);
                aclrtGetCurrentContext(context: *mut *mut c_void);
            }
            stream {
                aclrtCreateStream(stream: *mut *mut c_void);
                aclrtDestroyStream(stream: *mut c_void);
                aclrtDestroyStreamForce(stream: *mut c_void);
                aclrtSynchronizeStream(stream: *mut c_void);
                aclrtSynchronizeStreamWithTimeout(stream: *mut c_void, timeout: i32);
                aclrtGetStreamResLimit(stream: *mut c_void, kind: i32, value: *mut u32);
                aclrtSetStreamResLimit(stream: *mut c_void, kind: i32, value: u32);
                aclmdlRICaptureBegin(stream: *mut c_void, mode: i32);
                aclmdlRICaptureEnd(stream: *mut c_void, graph: *mut *mut c_void);
                aclmdlRICaptureGetInfo(
                    stream: *mut c_void, status: *mut i32, graph: *mut *mut c_void
                );
                aclmdlRIExecuteAsync(graph: *mut c_void, stream: *mut c_void);
                aclmdlRIDestroy(graph: *mut c_void);
            }
            event {
                aclrtCreateEventExWithFlag(event: *mut *mut c_void, flag: u32);
                aclrtDestroyEvent(event: *mut c_void);
                aclrtRecordEvent(event: *mut c_void, stream: *mut c_void);
                aclrtEventElapsedTime(ms: *mut f32, start: *mut c_void, end: *mut c_void);
            }
            memory_calls {
                aclrtMalloc(at: *mut *mut c_void, bytes: usize, policy: i32);
                aclrtFree(at: *mut c_void);
                aclrtMallocHost(at: *mut *mut c_void, bytes: usize);
                aclrtFreeHost(at: *mut c_void);
                aclrtMemcpy(to: *mut c_void, max: usize, from: *const c_void, bytes: usize, kind: i32);
                aclrtMemcpyAsync(to: *mut c_void, max: usize, from: *const c_void, bytes: usize, kind: i32, stream: *mut c_void);
                aclrtMemset(at: *mut c_void, max: usize, value: i32, bytes: usize);
                aclrtHostRegister(at: *mut c_void, bytes: u64, kind: i32, device: *mut *mut c_void);
                aclrtHostUnregister(at: *mut c_void);
            }
            kernel {
                aclrtBinaryLoadFromFile(path: *const c_char, options: *mut aclrtBinaryLoadOptions, binary: *mut *mut c_void);
                aclrtBinaryLoadFromData(data: *const c_void, length: usize, options: *const aclrtBinaryLoadOptions, binary: *mut *mut c_void);
                aclrtBinaryGetFunction(binary: *mut c_void, name: *const c_char, function: *mut *mut c_void);
                aclrtBinaryUnLoad(binary: *mut c_void);
                aclrtKernelArgsInit(function: *mut c_void, args: *mut *mut c_void);
                aclrtKernelArgsAppend(args: *mut c_void, param: *mut c_void, bytes: usize, handle: *mut *mut c_void);
                aclrtKernelArgsAppendPlaceHolder(args: *mut c_void, handle: *mut *mut c_void);
                aclrtKernelArgsGetPlaceHolderBuffer(args: *mut c_void, handle: *mut c_void, bytes: usize, buffer: *mut *mut c_void);
                aclrtKernelArgsParaUpdate(args: *mut c_void, handle: *mut c_void, param: *mut c_void, bytes: usize);
                aclrtKernelArgsFinalize(args: *mut c_void);
                aclrtLaunchKernelWithConfig(function: *mut c_void, blocks: u32, stream: *mut c_void, config: *mut aclrtLaunchKernelCfg, args: *mut c_void, reserved: *mut c_void);
            }
        }
    };
}

macro_rules! define {
    ($($group:ident { $($name:ident($($arg:ident: $ty:ty),*);)* })*) => {
        /// Every function, with the runtime's own name and signature and its C calling convention.
        #[expect(non_snake_case, reason = "the runtime's own names")]
        pub mod functions {
            use std::ffi::{c_char, c_int, c_void};

            use super::argument::Argument;
            use crate::call::{call, message};
            use crate::sys::{aclrtBinaryLoadOptions, aclrtLaunchKernelCfg};

            $($(
                /// Behaves as the function of `libascendcl` with this name.
                ///
                /// # Safety
                /// Each pointer is null or valid for what the real function reads and writes
                /// through it.
                pub unsafe extern "C" fn $name($($arg: $ty),*) -> c_int {
                    // SAFETY: each pointer is null or valid for what the real function does (`# Safety`).
                    $(let $arg = unsafe { Argument::received($arg) };)*
                    call(stringify!($name), |machine| super::$group::$name(machine, $($arg),*))
                }
            )*)*

            /// Returns the message of this thread's last call if it failed, else null. The pointer
            /// is valid until the thread's next call.
            pub extern "C" fn aclGetRecentErrMsg() -> *const c_char {
                message()
            }

            /// Returns the name of the simulated chip.
            pub extern "C" fn aclrtGetSocName() -> *const c_char {
                c"Ascend910B3".as_ptr()
            }
        }

        /// Returns the address of a function by its name, as a dynamic loader does.
        pub fn symbol(name: &str) -> Option<*const c_void> {
            match name {
                $($(stringify!($name) => Some(functions::$name as *const c_void),)*)*
                "aclGetRecentErrMsg" => Some(functions::aclGetRecentErrMsg as *const c_void),
                "aclrtGetSocName" => Some(functions::aclrtGetSocName as *const c_void),
                _ => None,
            }
        }
    };
}

for_each_function!(define);

/// Returns the address of a function by its name, or null if there is none.
pub fn resolve(name: &CStr) -> *mut c_void {
    name.to_str().ok().and_then(symbol).map_or(core::ptr::null_mut(), <*const c_void>::cast_mut)
}
