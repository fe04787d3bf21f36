//! Devices: counted, bound to this thread, asked for their sizes.

use super::super::{Acl, sys};
use super::call;
use crate::Result;

/// Devices of this process.
pub fn count(acl: &Acl) -> Result<usize> {
    let mut n = 0;
    call!(acl, aclrtGetDeviceCount(&mut n))?;
    Ok(n as usize)
}

/// Makes a device's shared context this thread's. Each call wants one [`reset`].
pub fn set(acl: &Acl, device: i32) -> Result<()> {
    call!(acl, aclrtSetDevice(device))
}

/// Undoes one [`set`]; the last one releases what the process holds of the device.
pub fn reset(acl: &Acl, device: i32) -> Result<()> {
    call!(acl, aclrtResetDevice(device))
}

/// Vector cores. On this chip the question for AI cores counts cubes.
pub fn vector_cores(acl: &Acl, device: i32) -> Result<usize> {
    let mut n = 0;
    let device = device.unsigned_abs();
    call!(acl, aclGetDeviceCapability(device, sys::ACL_DEVICE_INFO_VECTOR_CORE_NUM, &mut n))?;
    Ok(usize::try_from(n).unwrap_or(0))
}

/// Free and total bytes of the current device's memory.
pub fn memory(acl: &Acl) -> Result<(usize, usize)> {
    let (mut free, mut total) = (0, 0);
    call!(acl, aclrtGetMemInfo(sys::ACL_HBM_MEM, &mut free, &mut total))?;
    Ok((free, total))
}

/// Waits for all streams of the current context, for so many milliseconds where the runtime can.
pub fn synchronize(acl: &Acl, timeout_ms: i32) -> Result<()> {
    if acl.functions.aclrtSynchronizeDeviceWithTimeout.is_some() {
        return call!(acl, aclrtSynchronizeDeviceWithTimeout(timeout_ms));
    }
    call!(acl, aclrtSynchronizeDevice())
}
