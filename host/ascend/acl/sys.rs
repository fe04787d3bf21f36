//! The types and the values of the Ascend Computing Language runtime that this library uses, typed from the
//! runtime's public documentation, CANN 8.1 to 9.1. `functions.rs` has the functions.
//!
//! C enumerations are the 32-bit integers that they are on x86-64 and aarch64. Handles are pointers that are never
//! followed here.

use std::ffi::{c_int, c_void};

pub type aclrtContext = *mut c_void;
pub type aclrtStream = *mut c_void;
pub type aclrtEvent = *mut c_void;
pub type aclrtBinHandle = *mut c_void;
pub type aclrtFuncHandle = *mut c_void;
pub type aclrtArgsHandle = *mut c_void;
pub type aclrtParamHandle = *mut c_void;
pub type aclmdlRI = *mut c_void;

// Codes.
pub const ACL_SUCCESS: c_int = 0;
pub const ACL_ERROR_REPEAT_INITIALIZE: c_int = 100_002;
pub const ACL_ERROR_LINK_STUB: c_int = 100_039;
pub const ACL_ERROR_RT_INVALID_DEVICEID: c_int = 107_001;
pub const ACL_ERROR_RT_CONTEXT_NULL: c_int = 107_002;
pub const ACL_ERROR_RT_STREAM_CONTEXT: c_int = 107_003;
pub const ACL_ERROR_RT_STREAM_CAPTURE_MODE_NOT_SUPPORT: c_int = 107_030;
pub const ACL_ERROR_RT_FEATURE_NOT_SUPPORT: c_int = 207_000;
pub const ACL_ERROR_RT_MEMORY_ALLOCATION: c_int = 207_001;
pub const ACL_ERROR_RT_STREAM_SYNC_TIMEOUT: c_int = 507_046;

// Values of arguments.
pub const ACL_MEM_MALLOC_HUGE_FIRST: c_int = 0;
pub const ACL_MEMCPY_HOST_TO_DEVICE: c_int = 1;
pub const ACL_MEMCPY_DEVICE_TO_HOST: c_int = 2;
pub const ACL_MEMCPY_DEVICE_TO_DEVICE: c_int = 3;
pub const ACL_HBM_MEM: c_int = 1;
pub const ACL_EVENT_TIME_LINE: c_int = 8;
pub const ACL_HOST_REGISTER_MAPPED: c_int = 0;
pub const ACL_DEVICE_INFO_VECTOR_CORE_NUM: c_int = 1;
pub const ACL_RT_DEV_RES_VECTOR_CORE: c_int = 1;
pub const ACL_RT_BINARY_LOAD_OPT_MAGIC: c_int = 2;
pub const ACL_RT_BINARY_MAGIC_ELF_VECTOR_CORE: u32 = 0x4141_5246;
pub const ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE: c_int = 1;
pub const ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL: c_int = 1;
pub const ACL_MODEL_RI_CAPTURE_STATUS_NONE: c_int = 0;

#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct aclrtLaunchKernelAttr {
    pub id: u32,
    /// A union of small numbers, little-endian, in 16 bytes.
    pub value: [u32; 4],
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
    /// A union of small numbers, little-endian, in 16 bytes.
    pub value: [u32; 4],
}

#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct aclrtBinaryLoadOptions {
    pub options: *mut aclrtBinaryLoadOption,
    pub numOpt: usize,
}

// These are the sizes that a C compiler gives the structs of the public headers on 64-bit machines.
const _: () = assert!(
    size_of::<aclrtLaunchKernelAttr>() == 20
        && size_of::<aclrtLaunchKernelCfg>() == 16
        && size_of::<aclrtBinaryLoadOption>() == 20
        && size_of::<aclrtBinaryLoadOptions>() == 16
);
