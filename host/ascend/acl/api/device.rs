//! Devices: their number, sizes, and use by a thread.

use super::super::{Acl, sys};
use super::call;
use crate::Result;

/// Returns the number of devices that this process can use.
pub fn count(acl: &Acl) -> Result<usize> {
    let mut n = 0;
    call!(acl, aclrtGetDeviceCount(&mut n))?;
    Ok(n as usize)
}

/// Makes a device's default context the current one of this thread. Every call needs a matching
/// [`reset`].
pub fn set(acl: &Acl, device: i32) -> Result<()> {
    call!(acl, aclrtSetDevice(device))
}

/// Undoes one [`set`]. The last one releases the process's resources on the device.
pub fn reset(acl: &Acl, device: i32) -> Result<()> {
    call!(acl, aclrtResetDevice(device))
}

/// Returns the number of vector cores. On the 910B the number of AI cores counts cube cores.
pub fn vector_cores(acl: &Acl, device: i32) -> Result<usize> {
    let mut n = 0;
    let device = device.unsigned_abs();
    call!(acl, aclGetDeviceCapability(device, sys::ACL_DEVICE_INFO_VECTOR_CORE_NUM, &mut n))?;
    Ok(usize::try_from(n).unwrap_or(0))
}

/// Returns the free and the total bytes of the current device's memory.
pub fn memory(acl: &Acl) -> Result<(usize, usize)> {
    let (mut free, mut total) = (0, 0);
    call!(acl, aclrtGetMemInfo(sys::ACL_HBM_MEM, &mut free, &mut total))?;
    Ok((free, total))
}

/// Waits for all streams of the current context: at most `timeout_ms` milliseconds if the runtime
/// has `aclrtSynchronizeDeviceWithTimeout`, otherwise without a limit.
pub fn synchronize(acl: &Acl, timeout_ms: i32) -> Result<()> {
    if acl.functions.aclrtSynchronizeDeviceWithTimeout.is_some() {
        return call!(acl, aclrtSynchronizeDeviceWithTimeout(timeout_ms));
    }
    call!(acl, aclrtSynchronizeDevice())
}
