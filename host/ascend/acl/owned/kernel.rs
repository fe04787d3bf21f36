//! Kernels and their arguments.

use std::ffi::{CStr, CString};
use std::path::Path;
use std::sync::Arc;

use super::super::{api, sys};
use super::private_file::PrivateFile;
use super::{Context, RawStream};
use crate::{Error, Result};

/// A loaded kernel file.
#[derive(Debug)]
pub struct Binary {
    context: Arc<Context>,
    handle: sys::aclrtBinHandle,
}

// SAFETY: a handle of the context, used by threads that make the context current.
unsafe impl Send for Binary {}
// SAFETY: as for Send; lookups change nothing.
unsafe impl Sync for Binary {}

impl Binary {
    /// Loads a file.
    ///
    /// # Errors
    /// If the path is no absolute one, or the runtime refuses the file.
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

    /// Loads a kernel for vector cores that lies in memory. A runtime older than CANN 8.5 takes only
    /// files: it is given one, which is gone afterwards.
    ///
    /// # Errors
    /// If the runtime refuses the kernel, or such a file cannot be written.
    pub fn from_data(context: &Arc<Context>, code: &[u8]) -> Result<Arc<Self>> {
        if !api::kernel::loads_data(context.acl()) {
            let file = PrivateFile::new(code)?;
            return Self::load(context, file.path());
        }
        let _current = context.bind()?;
        let handle = api::kernel::load_data(context.acl(), code)?;
        Ok(Arc::new(Self { context: Arc::clone(context), handle }))
    }

    /// A kernel by its name.
    ///
    /// # Errors
    /// If the file has no such kernel.
    pub fn function(self: &Arc<Self>, name: &CStr) -> Result<Function> {
        let _current = self.context.bind()?;
        // SAFETY: the binary is ours, and the function holds it.
        let handle = unsafe { api::kernel::function(self.context.acl(), self.handle, name)? };
        Ok(Function { binary: Arc::clone(self), handle })
    }
}

impl Drop for Binary {
    fn drop(&mut self) {
        // SAFETY: functions hold the binary, so this is the last use; whoever launched has waited.
        self.context.release(|acl| unsafe { api::kernel::unload(acl, self.handle) });
    }
}

/// A kernel.
#[derive(Debug)]
pub struct Function {
    binary: Arc<Binary>,
    handle: sys::aclrtFuncHandle,
}

// SAFETY: as for Binary.
unsafe impl Send for Function {}
// SAFETY: as for Binary.
unsafe impl Sync for Function {}

/// A kernel with its argument list: so many addresses, then one small buffer that travels with them.
/// Made once; a launch gives the addresses new values, and the runtime copies them then.
#[derive(Debug)]
pub struct Args {
    function: Function,
    handle: sys::aclrtArgsHandle,
    params: Box<[sys::aclrtParamHandle]>,
    values: Box<[u64]>,
    buffer: *mut u8,
    bytes: usize,
}

// SAFETY: handles of the context and a buffer of the runtime's that only this value uses.
unsafe impl Send for Args {}
// SAFETY: `&Args` reads nothing but numbers.
unsafe impl Sync for Args {}

impl Args {
    /// A list of `addresses` addresses and a buffer of `bytes` bytes, all zero.
    ///
    /// # Errors
    /// If the runtime refuses.
    pub fn new(function: Function, addresses: usize, bytes: usize) -> Result<Self> {
        let context = Arc::clone(&function.binary.context);
        let (_current, acl) = (context.bind()?, context.acl());
        // SAFETY: the function holds its binary; the list has no owner but this value.
        let handle = unsafe { api::kernel::args(acl, function.handle)? };
        // SAFETY: the list was made just now, here and below.
        let params = (0..addresses).map(|_| unsafe { api::kernel::append(acl, handle, 0) });
        let params = params.collect::<Result<Box<[_]>>>()?;
        // SAFETY: as above.
        let place = unsafe { api::kernel::append_buffer(acl, handle)? };
        // SAFETY: as above.
        let buffer = unsafe { api::kernel::buffer(acl, handle, place, bytes)? }.cast::<u8>();
        // SAFETY: the runtime gave so many bytes.
        unsafe { core::ptr::write_bytes(buffer, 0, bytes) };
        // SAFETY: as above.
        unsafe { api::kernel::finish(acl, handle)? };
        let values = vec![0; addresses].into();
        Ok(Self { function, handle, params, values, buffer, bytes })
    }

    /// Puts the kernel into a stream with these arguments. The current context must be the kernel's
    /// ([`Context::bind`]).
    ///
    /// # Safety
    /// The addresses are what the kernel expects, and stay valid until it is done.
    ///
    /// # Errors
    /// If the numbers of arguments differ, or the runtime refuses.
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
                // SAFETY: the list and its parameters live as long as the function.
                unsafe { api::kernel::update(acl, self.handle, param, address)? };
                *old = address;
            }
        }
        // SAFETY: the runtime's buffer has `self.bytes` bytes, checked above.
        unsafe { core::ptr::copy_nonoverlapping(buffer.as_ptr(), self.buffer, self.bytes) };
        let (function, blocks) = (self.function.handle, u32::try_from(blocks).unwrap_or(u32::MAX));
        // SAFETY: everything is alive, and the addresses are by the contract.
        unsafe {
            api::kernel::finish(acl, self.handle)?;
            api::kernel::launch(acl, function, blocks, stream.handle(), batch, self.handle)
        }
    }
}
