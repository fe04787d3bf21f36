//! Kernels: binaries, their functions, arguments, launches.

use std::ffi::{CStr, c_void};

use super::super::{Acl, sys};
use super::call;
use crate::Result;

/// Loads a kernel file for the current context's device. The path is absolute.
pub fn load(acl: &Acl, path: &CStr) -> Result<sys::aclrtBinHandle> {
    let mut binary = core::ptr::null_mut();
    // No option: their number may be 0, the struct itself must be there.
    let mut options = sys::aclrtBinaryLoadOptions { options: core::ptr::null_mut(), numOpt: 0 };
    call!(acl, aclrtBinaryLoadFromFile(path.as_ptr(), &mut options, &mut binary))?;
    Ok(binary)
}

/// Loads a kernel for vector cores that lies in memory, which is only read during the call.
pub fn load_data(acl: &Acl, code: &[u8]) -> Result<sys::aclrtBinHandle> {
    let mut binary = core::ptr::null_mut();
    // A file beside an object may say which cores it is for; here the caller does.
    let value = [sys::ACL_RT_BINARY_MAGIC_ELF_VECTOR_CORE, 0, 0, 0];
    let mut magic = sys::aclrtBinaryLoadOption { type_: sys::ACL_RT_BINARY_LOAD_OPT_MAGIC, value };
    let options = sys::aclrtBinaryLoadOptions { options: &mut magic, numOpt: 1 };
    call!(acl, aclrtBinaryLoadFromData(code.as_ptr().cast(), code.len(), &options, &mut binary))?;
    Ok(binary)
}

/// Whether the runtime has [`load_data`].
pub fn loads_data(acl: &Acl) -> bool {
    acl.functions.aclrtBinaryLoadFromData.is_some()
}

/// Unloads it.
///
/// # Safety
/// The binary is alive, the context is the one that loaded it, and no launch of it is under way.
pub unsafe fn unload(acl: &Acl, binary: sys::aclrtBinHandle) -> Result<()> {
    call!(acl, aclrtBinaryUnLoad(binary))
}

/// A function of a binary.
///
/// # Safety
/// The binary is alive, and stays so while the function is used.
pub unsafe fn function(
    acl: &Acl,
    binary: sys::aclrtBinHandle,
    name: &CStr,
) -> Result<sys::aclrtFuncHandle> {
    let mut function = core::ptr::null_mut();
    call!(acl, aclrtBinaryGetFunction(binary, name.as_ptr(), &mut function))?;
    Ok(function)
}

/// Begins a list of arguments.
///
/// # Safety
/// The function is alive.
pub unsafe fn args(acl: &Acl, function: sys::aclrtFuncHandle) -> Result<sys::aclrtArgsHandle> {
    let mut args = core::ptr::null_mut();
    call!(acl, aclrtKernelArgsInit(function, &mut args))?;
    Ok(args)
}

/// Appends an address.
///
/// # Safety
/// The list is alive.
pub unsafe fn append(
    acl: &Acl,
    args: sys::aclrtArgsHandle,
    address: u64,
) -> Result<sys::aclrtParamHandle> {
    let mut param = core::ptr::null_mut();
    let value = core::ptr::from_ref(&address).cast_mut().cast();
    call!(acl, aclrtKernelArgsAppend(args, value, size_of::<u64>(), &mut param))?;
    Ok(param)
}

/// Appends a buffer that travels with the arguments.
///
/// # Safety
/// The list is alive.
pub unsafe fn append_buffer(
    acl: &Acl,
    args: sys::aclrtArgsHandle,
) -> Result<sys::aclrtParamHandle> {
    let mut param = core::ptr::null_mut();
    call!(acl, aclrtKernelArgsAppendPlaceHolder(args, &mut param))?;
    Ok(param)
}

/// Where the contents of such a buffer are to be written, after everything is appended.
///
/// # Safety
/// The list and the parameter are alive.
pub unsafe fn buffer(
    acl: &Acl,
    args: sys::aclrtArgsHandle,
    param: sys::aclrtParamHandle,
    bytes: usize,
) -> Result<*mut c_void> {
    let mut at = core::ptr::null_mut();
    call!(acl, aclrtKernelArgsGetPlaceHolderBuffer(args, param, bytes, &mut at))?;
    Ok(at)
}

/// Gives an address another value; [`finish`] has to follow.
///
/// # Safety
/// The list and the parameter are alive.
pub unsafe fn update(
    acl: &Acl,
    args: sys::aclrtArgsHandle,
    param: sys::aclrtParamHandle,
    address: u64,
) -> Result<()> {
    let value = core::ptr::from_ref(&address).cast_mut().cast();
    call!(acl, aclrtKernelArgsParaUpdate(args, param, value, size_of::<u64>()))
}

/// Makes a list ready for launches.
///
/// # Safety
/// The list is alive.
pub unsafe fn finish(acl: &Acl, args: sys::aclrtArgsHandle) -> Result<()> {
    call!(acl, aclrtKernelArgsFinalize(args))
}

/// Puts a kernel into a stream. `batch` starts it only when all its cores are idle, which kernels
/// with SyncAll need beside other streams. Arguments are copied at once.
///
/// # Safety
/// Everything is alive, and the addresses among the arguments stay valid until the kernel is done.
pub unsafe fn launch(
    acl: &Acl,
    function: sys::aclrtFuncHandle,
    blocks: u32,
    stream: sys::aclrtStream,
    batch: bool,
    args: sys::aclrtArgsHandle,
) -> Result<()> {
    let mode = sys::ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE;
    let value = [u32::from(batch), 0, 0, 0];
    let mut attribute = sys::aclrtLaunchKernelAttr { id: mode.unsigned_abs(), value };
    let mut config = sys::aclrtLaunchKernelCfg { attrs: &mut attribute, numAttrs: 1 };
    let reserved = core::ptr::null_mut();
    call!(acl, aclrtLaunchKernelWithConfig(function, blocks, stream, &mut config, args, reserved))
}
