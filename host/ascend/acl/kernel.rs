//! Kernels and their argument lists.

use std::ffi::{CStr, CString, c_void};
use std::fs::{self, DirBuilder};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::Arc;
use std::time::Instant;
use std::{env, process};

use super::{Acl, Context, Owned, sys};
use crate::device_arrays::RawStream;
use crate::system::address::Address;
use crate::{Error, Result, ensure, invalid};

/// A loaded kernel binary.
#[derive(Debug)]
pub struct Binary(Owned);

impl Binary {
    /// Loads a kernel binary from a file.
    ///
    /// # Errors
    /// If the runtime refuses the file.
    pub fn load(context: &Arc<Context>, path: &Path) -> Result<Arc<Self>> {
        // The runtime takes absolute paths only.
        let whole = std::path::absolute(path).ok();
        let text = whole.and_then(|path| CString::new(path.into_os_string().into_vec()).ok());
        let text = text.ok_or_else(|| {
            invalid!("kernel file" is path.display(), but "its name must be a path without NUL";
                "pass an absolute path")
        })?;
        let _current = context.bind()?;
        // The runtime refuses options without an entry; null selects the defaults.
        let (options, mut handle) = (null_mut(), null_mut());
        // SAFETY: `text` ends with NUL, and the function writes a handle to `handle`.
        unsafe { context.acl().aclrtBinaryLoadFromFile(text.as_ptr(), options, &mut handle)? };
        Ok(Self::owned(context, handle))
    }

    /// Loads a kernel binary for vector cores from memory. Runtimes older than CANN 8.5 load only
    /// files, so they get a temporary file.
    ///
    /// # Errors
    /// If the runtime refuses the binary, or the temporary file cannot be written.
    pub fn from_data(context: &Arc<Context>, code: &[u8]) -> Result<Arc<Self>> {
        if context.acl().functions.aclrtBinaryLoadFromData.is_none() {
            let file = PrivateFile::new(code)?;
            return Self::load(context, &file.0);
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
        unsafe { context.acl().aclrtBinaryLoadFromData(at, bytes, &options, &mut handle)? };
        Ok(Self::owned(context, handle))
    }

    fn owned(context: &Arc<Context>, handle: sys::aclrtBinHandle) -> Arc<Self> {
        // SAFETY: the runtime has loaded the binary, and `Owned` releases it. Argument lists hold
        // references to it, so none is left, and whoever launched a kernel has not dropped its list before
        // the kernel was done (`Args::launch`).
        Arc::new(Self(unsafe { Owned::new(context, handle, &[Acl::aclrtBinaryUnLoad; 2]) }))
    }
}

/// A kernel with its argument list: addresses, then one small buffer that is copied with them. The
/// list is made once. A launch changes the addresses, and the runtime copies the list.
#[derive(Debug)]
pub struct Args {
    binary: Arc<Binary>,
    function: Address<c_void>,
    list: Address<c_void>,
    params: Box<[Address<c_void>]>,
    values: Box<[u64]>,
    /// The runtime's buffer, which only this value uses.
    buffer: Address<u8>,
    bytes: usize,
}

impl Args {
    /// Creates an argument list of `addresses` addresses and a buffer of `bytes` bytes, all zero, for
    /// the kernel with this name.
    ///
    /// # Errors
    /// If the binary has no such kernel.
    pub fn new(binary: Arc<Binary>, name: &CStr, addresses: usize, bytes: usize) -> Result<Self> {
        let context = Arc::clone(&binary.0.context);
        let (_current, acl) = (context.bind()?, context.acl());
        let (mut function, mut list) = (null_mut(), null_mut());
        // SAFETY: `binary` owns the binary, `name` ends with NUL, and the functions write handles to
        // `function` and `list`.
        unsafe {
            acl.aclrtBinaryGetFunction(binary.0.at(), name.as_ptr(), &mut function)?;
            acl.aclrtKernelArgsInit(function, &mut list)?;
        }
        let append = |_| {
            let (mut param, mut address) = (null_mut(), 0u64);
            let at = (&raw mut address).cast();
            // SAFETY: the list was created above; the function reads `address` and writes a handle
            // to `param`.
            unsafe { acl.aclrtKernelArgsAppend(list, at, size_of::<u64>(), &mut param)? };
            Ok(Address(param))
        };
        let params = (0..addresses).map(append).collect::<Result<Box<[_]>>>()?;
        let (mut placeholder, mut buffer) = (null_mut(), null_mut());
        // SAFETY: the list was created above, `placeholder` is its last parameter, and the functions
        // write to `placeholder` and `buffer`. The runtime returns a buffer of `bytes` bytes.
        unsafe {
            acl.aclrtKernelArgsAppendPlaceHolder(list, &mut placeholder)?;
            let to = &mut buffer;
            acl.aclrtKernelArgsGetPlaceHolderBuffer(list, placeholder, bytes, to)?;
            buffer.write_bytes(0, bytes);
            acl.aclrtKernelArgsFinalize(list)?;
        }
        let (function, list, buffer) = (Address(function), Address(list), Address(buffer.cast()));
        let values = vec![0; addresses].into();
        Ok(Self { binary, function, list, params, values, buffer, bytes })
    }

    /// Puts the kernel into a stream with these arguments, on `blocks` vector cores. With `batch`
    /// it starts only when all its cores are idle, which kernels with SyncAll need while other
    /// streams run kernels. The kernel's context must be current ([`Context::bind`]).
    ///
    /// # Safety
    /// The addresses are those of the kernel's parameters. Until the kernel is done, and every replay of
    /// a captured launch, they stay valid and this value is not dropped. The stream is alive and belongs
    /// to the kernel's context.
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
        let acl = self.binary.0.context.acl();
        for ((&address, &param), old) in addresses.iter().zip(&self.params).zip(&mut self.values) {
            if address != *old {
                let from = core::ptr::from_ref(&address).cast_mut().cast();
                let (list, bytes) = (self.list.0, size_of::<u64>());
                // SAFETY: the list and its parameters are live as long as the binary, and
                // `address` is only read.
                unsafe { acl.aclrtKernelArgsParaUpdate(list, param.0, from, bytes)? };
                *old = address;
            }
        }
        // SAFETY: the runtime's buffer and `buffer` both have `self.bytes` bytes, as checked above.
        unsafe { core::ptr::copy_nonoverlapping(buffer.as_ptr(), self.buffer.0, self.bytes) };
        let (function, list, stream) = (self.function.0, self.list.0, stream.handle());
        let (blocks, reserved) = (u32::try_from(blocks).unwrap_or(u32::MAX), null_mut());
        let id = sys::ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE.unsigned_abs();
        let mut mode = sys::aclrtLaunchKernelAttr { id, value: [u32::from(batch), 0, 0, 0] };
        let mut config = sys::aclrtLaunchKernelCfg { attrs: &mut mode, numAttrs: 1 };
        let config = &mut config;
        // SAFETY: this value owns the list, and the binary has the function. The stream is alive and the
        // addresses stay valid (`# Safety`). The configuration is read, and the list copied, during the
        // call.
        unsafe {
            acl.aclrtKernelArgsFinalize(list)?;
            acl.aclrtLaunchKernelWithConfig(function, blocks, stream, config, list, reserved)
        }
    }
}

/// A file that no other user can write, alone in a new folder below the system's temporary folder. Both are
/// removed on drop.
#[derive(Debug)]
struct PrivateFile(PathBuf);

impl PrivateFile {
    fn new(bytes: &[u8]) -> Result<Self> {
        let parent = env::temp_dir();
        let refused = |error: io::Error| {
            let what = format!("a kernel of {} bytes in {}", bytes.len(), parent.display());
            Error::os("write", what, error, "set TMPDIR to a folder that can be written")
        };
        let number = RandomState::new().hash_one(Instant::now());
        let folder = parent.join(format!("avsg-kernel-{}-{number:016x}", process::id()));
        // A folder that exists is an error, because it may belong to another user.
        DirBuilder::new().mode(0o700).create(&folder).map_err(refused)?;
        let made = Self(folder.join("kernel.o"));
        fs::write(&made.0, bytes).map_err(refused)?;
        Ok(made)
    }
}

impl Drop for PrivateFile {
    fn drop(&mut self) {
        // An error is ignored: it leaves only a small file behind.
        let _ = self.0.parent().map(fs::remove_dir_all);
    }
}
