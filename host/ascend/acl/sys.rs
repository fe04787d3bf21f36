// Generated from acl.h by `BLESS=1 cargo test --test alone acl_sys`; do not edit.
//
// C enumerations are the 32-bit integers that they are on x86-64 and aarch64. Handles are pointers that are never
// followed here. Sizes of structs are compared with a C compiler's in result.rs.

pub type aclrtContext = *mut ::core::ffi::c_void;
pub type aclrtStream = *mut ::core::ffi::c_void;
pub type aclrtEvent = *mut ::core::ffi::c_void;
pub type aclrtBinHandle = *mut ::core::ffi::c_void;
pub type aclrtFuncHandle = *mut ::core::ffi::c_void;
pub type aclrtArgsHandle = *mut ::core::ffi::c_void;
pub type aclrtParamHandle = *mut ::core::ffi::c_void;
pub type aclmdlRI = *mut ::core::ffi::c_void;
pub const ACL_SUCCESS: ::core::ffi::c_int = 0;
pub const ACL_ERROR_REPEAT_INITIALIZE: ::core::ffi::c_int = 100002;
pub const ACL_ERROR_LINK_STUB: ::core::ffi::c_int = 100039;
pub const ACL_ERROR_RT_INVALID_DEVICEID: ::core::ffi::c_int = 107001;
pub const ACL_ERROR_RT_CONTEXT_NULL: ::core::ffi::c_int = 107002;
pub const ACL_ERROR_RT_STREAM_CONTEXT: ::core::ffi::c_int = 107003;
pub const ACL_ERROR_RT_STREAM_CAPTURE_MODE_NOT_SUPPORT: ::core::ffi::c_int = 107030;
pub const ACL_ERROR_RT_FEATURE_NOT_SUPPORT: ::core::ffi::c_int = 207000;
pub const ACL_ERROR_RT_MEMORY_ALLOCATION: ::core::ffi::c_int = 207001;
pub const ACL_ERROR_RT_STREAM_SYNC_TIMEOUT: ::core::ffi::c_int = 507046;
pub const ACL_MEM_MALLOC_HUGE_FIRST: ::core::ffi::c_int = 0;
pub const ACL_MEMCPY_HOST_TO_DEVICE: ::core::ffi::c_int = 1;
pub const ACL_MEMCPY_DEVICE_TO_HOST: ::core::ffi::c_int = 2;
pub const ACL_MEMCPY_DEVICE_TO_DEVICE: ::core::ffi::c_int = 3;
pub const ACL_HBM_MEM: ::core::ffi::c_int = 1;
pub const ACL_EVENT_TIME_LINE: ::core::ffi::c_int = 8;
pub const ACL_HOST_REGISTER_MAPPED: ::core::ffi::c_int = 0;
pub const ACL_DEVICE_INFO_VECTOR_CORE_NUM: ::core::ffi::c_int = 1;
pub const ACL_RT_DEV_RES_VECTOR_CORE: ::core::ffi::c_int = 1;
pub const ACL_RT_BINARY_LOAD_OPT_MAGIC: ::core::ffi::c_int = 2;
pub const ACL_RT_BINARY_MAGIC_ELF_VECTOR_CORE: u32 = 1094799942;
pub const ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE: ::core::ffi::c_int = 1;
pub const ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL: ::core::ffi::c_int = 1;
pub const ACL_MODEL_RI_CAPTURE_STATUS_NONE: ::core::ffi::c_int = 0;
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
