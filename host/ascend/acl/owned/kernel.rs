//! Kernels and their argument lists.

use std::ffi::{CStr, CString};
use std::path::Path;
use std::sync::Arc;

use super::super::{api, sys};
use super::private_file::PrivateFile;
use super::{Context, RawStream};
use crate::{Error, Result};

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
        let bad = |limit: &str| {
            Error::invalid("kernel file", path.display(), limit, "pass an absolute path")
        };
        if !path.is_absolute() {
            return Err(bad("the runtime takes absolute paths"));
        }
        let text = path.to_str().and_then(|path| CString::new(path).ok());
        let text = text.ok_or_else(|| bad("its name must be text without NUL"))?;
        let _current = context.bind()?;
        let handle = api::kernel::load(context.acl(), &text)?;
        Ok(Arc::new(Self { context: Arc::clone(context), handle }))
    }

    /// Loads a kernel binary for vector cores from memory. Runtimes older than CANN 8.5 load only
    /// files, so they get a temporary file.
    ///
    /// # Errors
    /// If the runtime refuses the binary, or the temporary file cannot be written.
    pub fn from_data(context: &Arc<Context>, code: &[u8]) -> Result<Arc<Self>> {
        if !api::kernel::can_load_data(context.acl()) {
            let file = PrivateFile::new(code)?;
            return Self::load(context, file.path());
        }
        let _current = context.bind()?;
        let handle = api::kernel::load_data(context.acl(), code)?;
        Ok(Arc::new(Self { context: Arc::clone(context), handle }))
    }

    /// Returns the kernel with this name.
    ///
    /// # Errors
    /// If the binary has no such kernel.
    pub fn function(self: &Arc<Self>, name: &CStr) -> Result<Function> {
        let _current = self.context.bind()?;
        // SAFETY: this value owns the binary, and the function holds a reference to it.
        let handle = unsafe { api::kernel::function(self.context.acl(), self.handle, name)? };
        Ok(Function { binary: Arc::clone(self), handle })
    }
}

impl Drop for Binary {
    fn drop(&mut self) {
        // SAFETY: functions hold references to the binary, so none is left; a caller that launched
        // a kernel has waited for it (`Args::launch`).
        self.context.release(|acl| unsafe { api::kernel::unload(acl, self.handle) });
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
        // SAFETY: the function holds its binary, so it is loaded.
        let handle = unsafe { api::kernel::args(acl, function.handle)? };
        // SAFETY: the list was created above and is live.
        let params = (0..addresses).map(|_| unsafe { api::kernel::append(acl, handle, 0) });
        let params = params.collect::<Result<Box<[_]>>>()?;
        // SAFETY: the list was created above and is live.
        let placeholder = unsafe { api::kernel::append_buffer(acl, handle)? };
        // SAFETY: the list was created above, and `placeholder` is its placeholder.
        let buffer = unsafe { api::kernel::buffer(acl, handle, placeholder, bytes)? }.cast::<u8>();
        // SAFETY: the runtime returned a buffer of `bytes` bytes.
        unsafe { core::ptr::write_bytes(buffer, 0, bytes) };
        // SAFETY: the list was created above and is live.
        unsafe { api::kernel::finish(acl, handle)? };
        let values = vec![0; addresses].into();
        Ok(Self { function, handle, params, values, buffer, bytes })
    }

    /// Puts the kernel into a stream with these arguments, on `blocks` vector cores; `batch` is
    /// that of [`api::kernel::launch`]. The kernel's context must be current ([`Context::bind`]).
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
        if addresses.len() != self.params.len() || buffer.len() != self.bytes {
            let value = format!("{} addresses, {} bytes", addresses.len(), buffer.len());
            let limit = format!("the list has {} and {}", self.params.len(), self.bytes);
            return Err(Error::invalid("kernel arguments", value, limit, "report this defect"));
        }
        let acl = self.function.binary.context.acl();
        for ((&address, &param), old) in addresses.iter().zip(&self.params).zip(&mut self.values) {
            if address != *old {
                // SAFETY: the list and its parameters are live as long as the function.
                unsafe { api::kernel::update(acl, self.handle, param, address)? };
                *old = address;
            }
        }
        // SAFETY: the runtime's buffer and `buffer` both have `self.bytes` bytes, as checked above.
        unsafe { core::ptr::copy_nonoverlapping(buffer.as_ptr(), self.buffer, self.bytes) };
        let (function, blocks) = (self.function.handle, u32::try_from(blocks).unwrap_or(u32::MAX));
        // SAFETY: this value owns the list and the function; the stream and the addresses are valid
        // by the contract (`# Safety`).
        unsafe {
            api::kernel::finish(acl, self.handle)?;
            api::kernel::launch(acl, function, blocks, stream.handle(), batch, self.handle)
        }
    }
}
