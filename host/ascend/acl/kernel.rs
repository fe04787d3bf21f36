//! Kernels and their argument lists.

use std::ffi::{CStr, CString};
use std::path::Path;
use std::ptr::null_mut;
use std::sync::Arc;

use super::private_file::PrivateFile;
use super::{Context, call, sys};
use crate::device_arrays::RawStream;
use crate::{Result, ensure, invalid};

/// A loaded kernel binary.
#[derive(Debug)]
pub struct Binary {
    context: Arc<Context>,
    handle: sys::aclrtBinHandle,
}

// SAFETY: the handle belongs to the context, not to a thread; threads that use it make the context
// current.
unsafe impl Send for Binary {}
// SAFETY: as for Send; looking up a function does not change the binary.
unsafe impl Sync for Binary {}

impl Binary {
    /// Loads a kernel binary from a file.
    ///
    /// # Errors
    /// If the path is not absolute, or the runtime refuses the file.
    pub fn load(context: &Arc<Context>, path: &Path) -> Result<Arc<Self>> {
        ensure!(path.is_absolute(), "kernel file" is path.display(), but
            "the runtime takes absolute paths"; "pass an absolute path");
        let text = path.to_str().and_then(|path| CString::new(path).ok());
        let text = text.ok_or_else(|| {
            invalid!("kernel file" is path.display(), but "its name must be text without NUL";
                "pass an absolute path")
        })?;
        let _current = context.bind()?;
        // The runtime refuses options without an entry; null selects the defaults.
        let (options, mut handle) = (null_mut(), null_mut());
        // SAFETY: `text` ends with NUL, and the function writes a handle to `handle`.
        unsafe {
            call!(context.acl(), aclrtBinaryLoadFromFile(text.as_ptr(), options, &mut handle))?
        };
        Ok(Arc::new(Self { context: Arc::clone(context), handle }))
    }

    /// Loads a kernel binary for vector cores from memory. Runtimes older than CANN 8.5 load only
    /// files, so they get a temporary file.
    ///
    /// # Errors
    /// If the runtime refuses the binary, or the temporary file cannot be written.
    pub fn from_data(context: &Arc<Context>, code: &[u8]) -> Result<Arc<Self>> {
        if context.acl().functions.aclrtBinaryLoadFromData.is_none() {
            let file = PrivateFile::new(code)?;
            return Self::load(context, file.path());
        }
        let _current = context.bind()?;
        // Data has no file beside it that tells the kind of cores, so the magic option does.
        let value = [sys::ACL_RT_BINARY_MAGIC_ELF_VECTOR_CORE, 0, 0, 0];
        let type_ = sys::ACL_RT_BINARY_LOAD_OPT_MAGIC;
        let mut magic = sys::aclrtBinaryLoadOption { type_, value };
        let options = sys::aclrtBinaryLoadOptions { options: &mut magic, numOpt: 1 };
        let (at, bytes, mut handle) = (code.as_ptr().cast(), code.len(), null_mut());
        // SAFETY: the function reads `code` and the options during the call only, and writes a
        // handle to `handle`.
        unsafe { call!(context.acl(), aclrtBinaryLoadFromData(at, bytes, &options, &mut handle))? };
        Ok(Arc::new(Self { context: Arc::clone(context), handle }))
    }

    /// Returns the kernel with this name.
    ///
    /// # Errors
    /// If the binary has no such kernel.
    pub fn function(self: &Arc<Self>, name: &CStr) -> Result<Function> {
        let (_current, acl) = (self.context.bind()?, self.context.acl());
        let (name, mut handle) = (name.as_ptr(), null_mut());
        // SAFETY: this value owns the binary, `name` ends with NUL, and the function writes a
        // handle to `handle`.
        unsafe { call!(acl, aclrtBinaryGetFunction(self.handle, name, &mut handle))? };
        Ok(Function { binary: Arc::clone(self), handle })
    }
}

impl Drop for Binary {
    fn drop(&mut self) {
        // SAFETY: functions hold references to the binary, so none is left; a caller that launched
        // a kernel has waited for it (`Args::launch`).
        self.context.release(|acl| unsafe { call!(acl, aclrtBinaryUnLoad(self.handle)) });
    }
}

/// A kernel function of a binary.
#[derive(Debug)]
pub struct Function {
    binary: Arc<Binary>,
    handle: sys::aclrtFuncHandle,
}

// SAFETY: the handle is used under the same rules as that of its binary.
unsafe impl Send for Function {}
// SAFETY: the handle is used under the same rules as that of its binary.
unsafe impl Sync for Function {}

/// A kernel with its argument list: addresses, then one small buffer that is copied with them. The
/// list is made once. A launch changes the addresses, and the runtime copies the list.
#[derive(Debug)]
pub struct Args {
    function: Function,
    handle: sys::aclrtArgsHandle,
    params: Box<[sys::aclrtParamHandle]>,
    values: Box<[u64]>,
    buffer: *mut u8,
    bytes: usize,
}

// SAFETY: the handles belong to the context, not to a thread, and only this value uses the
// runtime's buffer.
unsafe impl Send for Args {}
// SAFETY: no method of `&Args` uses the handles or the buffer.
unsafe impl Sync for Args {}

impl Args {
    /// Creates an argument list of `addresses` addresses and a buffer of `bytes` bytes, all zero.
    pub fn new(function: Function, addresses: usize, bytes: usize) -> Result<Self> {
        let context = Arc::clone(&function.binary.context);
        let (_current, acl) = (context.bind()?, context.acl());
        let mut handle = null_mut();
        // SAFETY: the function holds its binary, so it is loaded; a handle is written to `handle`.
        unsafe { call!(acl, aclrtKernelArgsInit(function.handle, &mut handle))? };
        let append = |_| {
            let (mut param, mut address) = (null_mut(), 0u64);
            let at = (&raw mut address).cast();
            // SAFETY: the list was created above; the function reads `address` and writes a handle
            // to `param`.
            unsafe { call!(acl, aclrtKernelArgsAppend(handle, at, size_of::<u64>(), &mut param))? };
            Ok(param)
        };
        let params = (0..addresses).map(append).collect::<Result<Box<[_]>>>()?;
        let (mut placeholder, mut buffer) = (null_mut(), null_mut());
        // SAFETY: the list was created above, `placeholder` is its last parameter, and the functions
        // write to `placeholder` and `buffer`. The runtime returns a buffer of `bytes` bytes.
        unsafe {
            call!(acl, aclrtKernelArgsAppendPlaceHolder(handle, &mut placeholder))?;
            let to = &mut buffer;
            call!(acl, aclrtKernelArgsGetPlaceHolderBuffer(handle, placeholder, bytes, to))?;
            buffer.write_bytes(0, bytes);
            call!(acl, aclrtKernelArgsFinalize(handle))?;
        }
        let values = vec![0; addresses].into();
        Ok(Self { function, handle, params, values, buffer: buffer.cast(), bytes })
    }

    /// Puts the kernel into a stream with these arguments, on `blocks` vector cores. With `batch`
    /// it starts only when all its cores are idle, which kernels with SyncAll need while other
    /// streams run kernels. The kernel's context must be current ([`Context::bind`]).
    ///
    /// # Safety
    /// The addresses are those of the kernel's parameters and stay valid until the kernel is done.
    /// This value is not dropped before that. The stream is alive and belongs to the kernel's
    /// context.
    ///
    /// # Errors
    /// If the numbers of addresses or bytes differ from the list's, or a call of the runtime fails.
    pub unsafe fn launch(
        &mut self,
        addresses: &[u64],
        buffer: &[u8],
        blocks: usize,
        batch: bool,
        stream: RawStream,
    ) -> Result<()> {
        ensure!(addresses.len() == self.params.len() && buffer.len() == self.bytes,
            "kernel arguments" is format!("{} addresses, {} bytes", addresses.len(), buffer.len()),
            but "the list has {} and {}", self.params.len(), self.bytes; "report this defect");
        let acl = self.function.binary.context.acl();
        for ((&address, &param), old) in addresses.iter().zip(&self.params).zip(&mut self.values) {
            if address != *old {
                let from = core::ptr::from_ref(&address).cast_mut().cast();
                let (list, bytes) = (self.handle, size_of::<u64>());
                // SAFETY: the list and its parameters are live as long as the function, and
                // `address` is only read.
                unsafe { call!(acl, aclrtKernelArgsParaUpdate(list, param, from, bytes))? };
                *old = address;
            }
        }
        // SAFETY: the runtime's buffer and `buffer` both have `self.bytes` bytes, as checked above.
        unsafe { core::ptr::copy_nonoverlapping(buffer.as_ptr(), self.buffer, self.bytes) };
        let (function, list, stream) = (self.function.handle, self.handle, stream.handle());
        let (blocks, reserved) = (u32::try_from(blocks).unwrap_or(u32::MAX), null_mut());
        let id = sys::ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE.unsigned_abs();
        let mut mode = sys::aclrtLaunchKernelAttr { id, value: [u32::from(batch), 0, 0, 0] };
        let mut config = sys::aclrtLaunchKernelCfg { attrs: &mut mode, numAttrs: 1 };
        let config = &mut config;
        // SAFETY: this value owns the list and the function; the stream and the addresses are valid
        // by the contract (`# Safety`). The configuration is read, and the list copied, during the
        // call.
        unsafe {
            call!(acl, aclrtKernelArgsFinalize(list))?;
            call!(
                acl,
                aclrtLaunchKernelWithConfig(function, blocks, stream, config, list, reserved)
            )
        }
    }
}
