//! Kernels: binaries, functions, argument lists and launches.

use std::ffi::{CStr, c_void};

use super::super::{Acl, sys};
use super::call;
use crate::Result;

/// Loads a kernel binary from a file for the current context's device. `path` must be absolute.
pub fn load(acl: &Acl, path: &CStr) -> Result<sys::aclrtBinHandle> {
    let mut binary = core::ptr::null_mut();
    // The runtime refuses options without an entry; null selects the defaults.
    let options = core::ptr::null_mut();
    call!(acl, aclrtBinaryLoadFromFile(path.as_ptr(), options, &mut binary))?;
    Ok(binary)
}

/// Loads a kernel binary for vector cores from memory, which is read during the call only.
pub fn load_data(acl: &Acl, code: &[u8]) -> Result<sys::aclrtBinHandle> {
    let mut binary = core::ptr::null_mut();
    // Data has no file beside it that tells the kind of cores, so the magic option does.
    let value = [sys::ACL_RT_BINARY_MAGIC_ELF_VECTOR_CORE, 0, 0, 0];
    let mut magic = sys::aclrtBinaryLoadOption { type_: sys::ACL_RT_BINARY_LOAD_OPT_MAGIC, value };
    let options = sys::aclrtBinaryLoadOptions { options: &mut magic, numOpt: 1 };
    call!(acl, aclrtBinaryLoadFromData(code.as_ptr().cast(), code.len(), &options, &mut binary))?;
    Ok(binary)
}

/// Returns whether the runtime has the function of [`load_data`].
pub fn can_load_data(acl: &Acl) -> bool {
    acl.functions.aclrtBinaryLoadFromData.is_some()
}

/// Unloads a binary.
///
/// # Safety
/// `binary` must be live and is not used afterwards, the current context must be the one that
/// loaded it, and no launch of its kernels may be in progress.
pub unsafe fn unload(acl: &Acl, binary: sys::aclrtBinHandle) -> Result<()> {
    call!(acl, aclrtBinaryUnLoad(binary))
}

/// Returns a kernel function of a binary.
///
/// # Safety
/// `binary` must be live and stay loaded while the function is used.
pub unsafe fn function(
    acl: &Acl,
    binary: sys::aclrtBinHandle,
    name: &CStr,
) -> Result<sys::aclrtFuncHandle> {
    let mut function = core::ptr::null_mut();
    call!(acl, aclrtBinaryGetFunction(binary, name.as_ptr(), &mut function))?;
    Ok(function)
}

/// Creates an argument list for a kernel function.
///
/// # Safety
/// The binary of `function` must be loaded.
pub unsafe fn args(acl: &Acl, function: sys::aclrtFuncHandle) -> Result<sys::aclrtArgsHandle> {
    let mut args = core::ptr::null_mut();
    call!(acl, aclrtKernelArgsInit(function, &mut args))?;
    Ok(args)
}

/// Appends an address to an argument list.
///
/// # Safety
/// `args` must be a live argument list.
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

/// Appends a placeholder for a buffer that is copied together with the arguments.
///
/// # Safety
/// `args` must be a live argument list.
pub unsafe fn append_buffer(
    acl: &Acl,
    args: sys::aclrtArgsHandle,
) -> Result<sys::aclrtParamHandle> {
    let mut param = core::ptr::null_mut();
    call!(acl, aclrtKernelArgsAppendPlaceHolder(args, &mut param))?;
    Ok(param)
}

/// Returns the address where the contents of a placeholder's buffer must be written. All arguments
/// must have been appended.
///
/// # Safety
/// `args` must be a live argument list and `param` one of its parameters.
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

/// Changes the value of an address argument; [`finish`] must follow.
///
/// # Safety
/// `args` must be a live argument list and `param` one of its parameters.
pub unsafe fn update(
    acl: &Acl,
    args: sys::aclrtArgsHandle,
    param: sys::aclrtParamHandle,
    address: u64,
) -> Result<()> {
    let value = core::ptr::from_ref(&address).cast_mut().cast();
    call!(acl, aclrtKernelArgsParaUpdate(args, param, value, size_of::<u64>()))
}

/// Finalizes an argument list for launches.
///
/// # Safety
/// `args` must be a live argument list.
pub unsafe fn finish(acl: &Acl, args: sys::aclrtArgsHandle) -> Result<()> {
    call!(acl, aclrtKernelArgsFinalize(args))
}

/// Puts a kernel into a stream. With `batch` the kernel starts only when all its cores are idle,
/// which kernels with SyncAll need while other streams run kernels. The arguments are copied during
/// the call.
///
/// # Safety
/// All handles must be live, and the addresses among the arguments must be valid until the kernel
/// is done.
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
