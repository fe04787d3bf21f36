// Generated from acl.h by `BLESS=1 cargo test --test alone acl_sys`; do not edit.
//
// SAFETY. What is unsafe here rests on these facts:
// - A function type is a promise about a library that no compiler checks. Names, arguments and their order
//   were typed into acl.h from the runtime's public documentation, CANN 8.1 to 9.1. C enumerations are
//   passed as the 32-bit integers that they are on x86-64 and aarch64; handles are pointers that are never
//   followed here. Sizes of structs are compared with a C compiler's in result.rs.
// - `result::fill` gives each member the address of the symbol that bears its name, or leaves it empty,
//   and a library that lacks a required one is refused as a whole.
// - What a call is given is in the SAFETY comment at the call.

pub type aclError = ::core::ffi::c_int;
pub type aclrtContext = *mut ::core::ffi::c_void;
pub type aclrtStream = *mut ::core::ffi::c_void;
pub type aclrtEvent = *mut ::core::ffi::c_void;
pub type aclrtBinHandle = *mut ::core::ffi::c_void;
pub type aclrtFuncHandle = *mut ::core::ffi::c_void;
pub type aclrtArgsHandle = *mut ::core::ffi::c_void;
pub type aclrtParamHandle = *mut ::core::ffi::c_void;
pub type aclmdlRI = *mut ::core::ffi::c_void;
pub const ACL_SUCCESS: ::core::ffi::c_int = 0;
pub const ACL_ERROR_INVALID_PARAM: ::core::ffi::c_int = 100000;
pub const ACL_ERROR_REPEAT_INITIALIZE: ::core::ffi::c_int = 100002;
pub const ACL_ERROR_LINK_STUB: ::core::ffi::c_int = 100039;
pub const ACL_ERROR_RT_PARAM_INVALID: ::core::ffi::c_int = 107000;
pub const ACL_ERROR_RT_INVALID_DEVICEID: ::core::ffi::c_int = 107001;
pub const ACL_ERROR_RT_CONTEXT_NULL: ::core::ffi::c_int = 107002;
pub const ACL_ERROR_RT_STREAM_CONTEXT: ::core::ffi::c_int = 107003;
pub const ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID: ::core::ffi::c_int = 107006;
pub const ACL_ERROR_RT_STREAM_NOT_CAPTURED: ::core::ffi::c_int = 107024;
pub const ACL_ERROR_RT_STREAM_CAPTURED: ::core::ffi::c_int = 107025;
pub const ACL_ERROR_RT_STREAM_CAPTURE_MODE_NOT_SUPPORT: ::core::ffi::c_int = 107030;
pub const ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD: ::core::ffi::c_int = 107038;
pub const ACL_ERROR_RT_FEATURE_NOT_SUPPORT: ::core::ffi::c_int = 207000;
pub const ACL_ERROR_RT_MEMORY_ALLOCATION: ::core::ffi::c_int = 207001;
pub const ACL_ERROR_RT_VECTOR_CORE_TIMEOUT: ::core::ffi::c_int = 507034;
pub const ACL_ERROR_RT_VECTOR_CORE_EXCEPTION: ::core::ffi::c_int = 507035;
pub const ACL_ERROR_RT_STREAM_SYNC_TIMEOUT: ::core::ffi::c_int = 507046;
pub const ACL_ERROR_RT_EVENT_SYNC_TIMEOUT: ::core::ffi::c_int = 507047;
pub const ACL_ERROR_RT_DRV_INTERNAL_ERROR: ::core::ffi::c_int = 507899;
pub const ACL_ERROR_RT_HOST_MEMORY_ALREADY_REGISTERED: ::core::ffi::c_int = 507910;
pub const ACL_ERROR_RT_HOST_MEMORY_NOT_REGISTERED: ::core::ffi::c_int = 507911;
pub const ACL_MEM_MALLOC_HUGE_FIRST: ::core::ffi::c_int = 0;
pub const ACL_MEMCPY_HOST_TO_HOST: ::core::ffi::c_int = 0;
pub const ACL_MEMCPY_HOST_TO_DEVICE: ::core::ffi::c_int = 1;
pub const ACL_MEMCPY_DEVICE_TO_HOST: ::core::ffi::c_int = 2;
pub const ACL_MEMCPY_DEVICE_TO_DEVICE: ::core::ffi::c_int = 3;
pub const ACL_HBM_MEM: ::core::ffi::c_int = 1;
pub const ACL_EVENT_TIME_LINE: ::core::ffi::c_int = 8;
pub const ACL_HOST_REGISTER_MAPPED: ::core::ffi::c_int = 0;
pub const ACL_DEVICE_INFO_AI_CORE_NUM: ::core::ffi::c_int = 0;
pub const ACL_DEVICE_INFO_VECTOR_CORE_NUM: ::core::ffi::c_int = 1;
pub const ACL_RT_DEV_RES_VECTOR_CORE: ::core::ffi::c_int = 1;
pub const ACL_RT_BINARY_LOAD_OPT_MAGIC: ::core::ffi::c_int = 2;
pub const ACL_RT_BINARY_MAGIC_ELF_VECTOR_CORE: u32 = 1094799942;
pub const ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE: ::core::ffi::c_int = 1;
pub const ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT: ::core::ffi::c_int = 7;
pub const ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT_US: ::core::ffi::c_int = 8;
pub const ACL_MODEL_RI_CAPTURE_MODE_GLOBAL: ::core::ffi::c_int = 0;
pub const ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL: ::core::ffi::c_int = 1;
pub const ACL_MODEL_RI_CAPTURE_MODE_RELAXED: ::core::ffi::c_int = 2;
pub const ACL_MODEL_RI_CAPTURE_STATUS_NONE: ::core::ffi::c_int = 0;
pub const ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE: ::core::ffi::c_int = 1;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct aclrtLaunchKernelAttr {
    pub id: u32,
    pub value: [u32; 4usize],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct aclrtLaunchKernelCfg {
    pub attrs: *mut aclrtLaunchKernelAttr,
    pub numAttrs: usize,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct aclrtBinaryLoadOption {
    pub type_: i32,
    pub value: [u32; 4usize],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct aclrtBinaryLoadOptions {
    pub options: *mut aclrtBinaryLoadOption,
    pub numOpt: usize,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct Functions {
    pub aclInit: ::core::option::Option<
        unsafe extern "C" fn(configPath: *const ::core::ffi::c_char) -> aclError,
    >,
    pub aclGetRecentErrMsg:
        ::core::option::Option<unsafe extern "C" fn() -> *const ::core::ffi::c_char>,
    pub aclrtGetSocName:
        ::core::option::Option<unsafe extern "C" fn() -> *const ::core::ffi::c_char>,
    pub aclrtGetDeviceCount:
        ::core::option::Option<unsafe extern "C" fn(count: *mut u32) -> aclError>,
    pub aclrtSetDevice: ::core::option::Option<unsafe extern "C" fn(deviceId: i32) -> aclError>,
    pub aclrtResetDevice: ::core::option::Option<unsafe extern "C" fn(deviceId: i32) -> aclError>,
    pub aclGetDeviceCapability: ::core::option::Option<
        unsafe extern "C" fn(deviceId: u32, deviceInfo: i32, value: *mut i64) -> aclError,
    >,
    pub aclrtGetMemInfo: ::core::option::Option<
        unsafe extern "C" fn(attr: i32, free: *mut usize, total: *mut usize) -> aclError,
    >,
    pub aclrtSynchronizeDevice: ::core::option::Option<unsafe extern "C" fn() -> aclError>,
    pub aclrtSynchronizeDeviceWithTimeout:
        ::core::option::Option<unsafe extern "C" fn(timeout: i32) -> aclError>,
    pub aclrtSetCurrentContext:
        ::core::option::Option<unsafe extern "C" fn(context: aclrtContext) -> aclError>,
    pub aclrtGetCurrentContext:
        ::core::option::Option<unsafe extern "C" fn(context: *mut aclrtContext) -> aclError>,
    pub aclrtCreateStream:
        ::core::option::Option<unsafe extern "C" fn(stream: *mut aclrtStream) -> aclError>,
    pub aclrtDestroyStream:
        ::core::option::Option<unsafe extern "C" fn(stream: aclrtStream) -> aclError>,
    pub aclrtDestroyStreamForce:
        ::core::option::Option<unsafe extern "C" fn(stream: aclrtStream) -> aclError>,
    pub aclrtSynchronizeStreamWithTimeout:
        ::core::option::Option<unsafe extern "C" fn(stream: aclrtStream, timeout: i32) -> aclError>,
    pub aclrtGetStreamResLimit: ::core::option::Option<
        unsafe extern "C" fn(stream: aclrtStream, type_: i32, value: *mut u32) -> aclError,
    >,
    pub aclrtCreateEventExWithFlag:
        ::core::option::Option<unsafe extern "C" fn(event: *mut aclrtEvent, flag: u32) -> aclError>,
    pub aclrtDestroyEvent:
        ::core::option::Option<unsafe extern "C" fn(event: aclrtEvent) -> aclError>,
    pub aclrtRecordEvent: ::core::option::Option<
        unsafe extern "C" fn(event: aclrtEvent, stream: aclrtStream) -> aclError,
    >,
    pub aclrtEventElapsedTime: ::core::option::Option<
        unsafe extern "C" fn(ms: *mut f32, start: aclrtEvent, end: aclrtEvent) -> aclError,
    >,
    pub aclrtMalloc: ::core::option::Option<
        unsafe extern "C" fn(
            devPtr: *mut *mut ::core::ffi::c_void,
            size: usize,
            policy: i32,
        ) -> aclError,
    >,
    pub aclrtFree:
        ::core::option::Option<unsafe extern "C" fn(devPtr: *mut ::core::ffi::c_void) -> aclError>,
    pub aclrtMallocHost: ::core::option::Option<
        unsafe extern "C" fn(hostPtr: *mut *mut ::core::ffi::c_void, size: usize) -> aclError,
    >,
    pub aclrtFreeHost:
        ::core::option::Option<unsafe extern "C" fn(hostPtr: *mut ::core::ffi::c_void) -> aclError>,
    pub aclrtMemcpy: ::core::option::Option<
        unsafe extern "C" fn(
            dst: *mut ::core::ffi::c_void,
            destMax: usize,
            src: *const ::core::ffi::c_void,
            count: usize,
            kind: i32,
        ) -> aclError,
    >,
    pub aclrtMemcpyAsync: ::core::option::Option<
        unsafe extern "C" fn(
            dst: *mut ::core::ffi::c_void,
            destMax: usize,
            src: *const ::core::ffi::c_void,
            count: usize,
            kind: i32,
            stream: aclrtStream,
        ) -> aclError,
    >,
    pub aclrtMemset: ::core::option::Option<
        unsafe extern "C" fn(
            devPtr: *mut ::core::ffi::c_void,
            maxCount: usize,
            value: i32,
            count: usize,
        ) -> aclError,
    >,
    pub aclrtHostRegister: ::core::option::Option<
        unsafe extern "C" fn(
            ptr: *mut ::core::ffi::c_void,
            size: u64,
            type_: i32,
            devPtr: *mut *mut ::core::ffi::c_void,
        ) -> aclError,
    >,
    pub aclrtHostUnregister:
        ::core::option::Option<unsafe extern "C" fn(ptr: *mut ::core::ffi::c_void) -> aclError>,
    pub aclrtBinaryLoadFromFile: ::core::option::Option<
        unsafe extern "C" fn(
            path: *const ::core::ffi::c_char,
            options: *mut aclrtBinaryLoadOptions,
            binHandle: *mut aclrtBinHandle,
        ) -> aclError,
    >,
    pub aclrtBinaryLoadFromData: ::core::option::Option<
        unsafe extern "C" fn(
            data: *const ::core::ffi::c_void,
            length: usize,
            options: *const aclrtBinaryLoadOptions,
            binHandle: *mut aclrtBinHandle,
        ) -> aclError,
    >,
    pub aclrtBinaryGetFunction: ::core::option::Option<
        unsafe extern "C" fn(
            binHandle: aclrtBinHandle,
            kernelName: *const ::core::ffi::c_char,
            funcHandle: *mut aclrtFuncHandle,
        ) -> aclError,
    >,
    pub aclrtBinaryUnLoad:
        ::core::option::Option<unsafe extern "C" fn(binHandle: aclrtBinHandle) -> aclError>,
    pub aclrtKernelArgsInit: ::core::option::Option<
        unsafe extern "C" fn(
            funcHandle: aclrtFuncHandle,
            argsHandle: *mut aclrtArgsHandle,
        ) -> aclError,
    >,
    pub aclrtKernelArgsAppend: ::core::option::Option<
        unsafe extern "C" fn(
            argsHandle: aclrtArgsHandle,
            param: *mut ::core::ffi::c_void,
            paramSize: usize,
            paramHandle: *mut aclrtParamHandle,
        ) -> aclError,
    >,
    pub aclrtKernelArgsAppendPlaceHolder: ::core::option::Option<
        unsafe extern "C" fn(
            argsHandle: aclrtArgsHandle,
            paramHandle: *mut aclrtParamHandle,
        ) -> aclError,
    >,
    pub aclrtKernelArgsGetPlaceHolderBuffer: ::core::option::Option<
        unsafe extern "C" fn(
            argsHandle: aclrtArgsHandle,
            paramHandle: aclrtParamHandle,
            dataSize: usize,
            bufferAddr: *mut *mut ::core::ffi::c_void,
        ) -> aclError,
    >,
    pub aclrtKernelArgsParaUpdate: ::core::option::Option<
        unsafe extern "C" fn(
            argsHandle: aclrtArgsHandle,
            paramHandle: aclrtParamHandle,
            param: *mut ::core::ffi::c_void,
            paramSize: usize,
        ) -> aclError,
    >,
    pub aclrtKernelArgsFinalize:
        ::core::option::Option<unsafe extern "C" fn(argsHandle: aclrtArgsHandle) -> aclError>,
    pub aclrtLaunchKernelWithConfig: ::core::option::Option<
        unsafe extern "C" fn(
            funcHandle: aclrtFuncHandle,
            blockDim: u32,
            stream: aclrtStream,
            cfg: *mut aclrtLaunchKernelCfg,
            argsHandle: aclrtArgsHandle,
            reserve: *mut ::core::ffi::c_void,
        ) -> aclError,
    >,
    pub aclmdlRICaptureBegin:
        ::core::option::Option<unsafe extern "C" fn(stream: aclrtStream, mode: i32) -> aclError>,
    pub aclmdlRICaptureEnd: ::core::option::Option<
        unsafe extern "C" fn(stream: aclrtStream, modelRI: *mut aclmdlRI) -> aclError,
    >,
    pub aclmdlRICaptureGetInfo: ::core::option::Option<
        unsafe extern "C" fn(
            stream: aclrtStream,
            status: *mut i32,
            modelRI: *mut aclmdlRI,
        ) -> aclError,
    >,
    pub aclmdlRIExecuteAsync: ::core::option::Option<
        unsafe extern "C" fn(modelRI: aclmdlRI, stream: aclrtStream) -> aclError,
    >,
    pub aclmdlRIDestroy:
        ::core::option::Option<unsafe extern "C" fn(modelRI: aclmdlRI) -> aclError>,
}
