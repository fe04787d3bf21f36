//! The types and the values of the runtime: those that the host has, and those that only the simulator needs.

use std::ffi::c_int;

#[path = "../../../host/ascend/acl/sys.rs"]
mod host;

pub use host::*;

pub const ACL_ERROR_INVALID_PARAM: c_int = 100_000;
pub const ACL_ERROR_RT_PARAM_INVALID: c_int = 107_000;
pub const ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID: c_int = 107_006;
pub const ACL_ERROR_RT_STREAM_NOT_CAPTURED: c_int = 107_024;
pub const ACL_ERROR_RT_STREAM_CAPTURED: c_int = 107_025;
pub const ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD: c_int = 107_038;
pub const ACL_ERROR_RT_VECTOR_CORE_TIMEOUT: c_int = 507_034;
pub const ACL_ERROR_RT_VECTOR_CORE_EXCEPTION: c_int = 507_035;
pub const ACL_ERROR_RT_DRV_INTERNAL_ERROR: c_int = 507_899;
pub const ACL_ERROR_RT_HOST_MEMORY_ALREADY_REGISTERED: c_int = 507_910;
pub const ACL_ERROR_RT_HOST_MEMORY_NOT_REGISTERED: c_int = 507_911;
pub const ACL_MEMCPY_HOST_TO_HOST: c_int = 0;
pub const ACL_DEVICE_INFO_AI_CORE_NUM: c_int = 0;
pub const ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT: c_int = 7;
pub const ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT_US: c_int = 8;
pub const ACL_MODEL_RI_CAPTURE_MODE_GLOBAL: c_int = 0;
pub const ACL_MODEL_RI_CAPTURE_MODE_RELAXED: c_int = 2;
pub const ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE: c_int = 1;
