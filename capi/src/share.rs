//! One pool in several processes.

use std::os::fd::{BorrowedFd, IntoRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::ptr;

use crate::handle;
use crate::pool::{Pool, avsg_pool};
use crate::pool_config::role;
use crate::sized::{self, Out};
use crate::status::avsg_status::{AVSG_INVALID, AVSG_OS};
use crate::status::{Fail, Result, avsg_status, enter};
use avsg::pool::{DESC_BYTES, HostPool, PoolDesc};

/// Bytes of a pool's descriptor, its geometry. They may be sent anywhere, stored, and compared.
pub const AVSG_POOL_DESC_BYTES: usize = 112;
const _: () = assert!(AVSG_POOL_DESC_BYTES == DESC_BYTES);

/// A duplicate of the caller's file descriptor, so that the caller's stays the caller's.
fn duplicate(fd: i32, what: &str) -> Result<OwnedFd> {
    if fd < 0 {
        let text =
            format!("{what} is {fd}, but a file descriptor is not negative; pass an open one");
        return Err(Fail::new(AVSG_INVALID, text));
    }
    // SAFETY: not -1. Should it not be open, the one call that is made on it says so.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    borrowed.try_clone_to_owned().map_err(|error| {
        let text = format!("{what} {fd} could not be duplicated: {error}; pass an open descriptor");
        Fail::new(AVSG_OS, text)
    })
}

/// What another process needs to map this pool: the descriptor in `desc`, and a new file descriptor of
/// its memory in `fd`, which the caller passes on (by inheritance or SCM_RIGHTS) and closes. Whoever has
/// `fd` can map the memory. AVSG_INVALID for a pool over the caller's memory.
///
/// # Safety
/// `desc` has room for `desc_bytes` bytes, at least AVSG_POOL_DESC_BYTES; `fd` may be written. It is -1
/// after a failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_pool_export(
    pool: *const avsg_pool,
    desc: *mut u8,
    desc_bytes: usize,
    fd: *mut i32,
) -> avsg_status {
    enter(|| {
        // SAFETY: the contract.
        let out = unsafe { Out::new("fd", fd, -1)? };
        expect_desc(desc_bytes >= DESC_BYTES, desc_bytes)?;
        // SAFETY: the contract.
        let desc = unsafe { sized::array_mut("desc", desc, DESC_BYTES)? };
        let export = handle::shared::<Pool>(pool)?.0.export()?;
        desc.copy_from_slice(&export.desc.to_bytes());
        out.set(export.fd.into_raw_fd());
        Ok(())
    })
}

fn expect_desc(fits: bool, bytes: usize) -> Result<()> {
    if fits {
        return Ok(());
    }
    let text = format!(
        "desc_bytes is {bytes}, but a descriptor has {DESC_BYTES}; pass AVSG_POOL_DESC_BYTES"
    );
    Err(Fail::new(AVSG_INVALID, text))
}

/// Maps a pool that another process exported. `fd` stays the caller's, to close when it likes. A
/// reader's mapping is read-only. A pool has one writer: AVSG_ROLE_WRITER fails until the present one
/// has let go (destroy, demote, or the end of its process).
///
/// # Safety
/// `desc` has `desc_bytes` bytes; `pool` may be written. It is NULL after a failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_pool_import(
    desc: *const u8,
    desc_bytes: usize,
    fd: i32,
    as_role: i32,
    pool: *mut *mut avsg_pool,
) -> avsg_status {
    enter(|| {
        // SAFETY: the contract.
        let out = unsafe { Out::new("pool", pool, ptr::null_mut())? };
        expect_desc(desc_bytes == DESC_BYTES, desc_bytes)?;
        // SAFETY: the contract.
        let desc = PoolDesc::from_bytes(unsafe { sized::array("desc", desc, desc_bytes)? })?;
        let (role, fd) = (role(as_role)?, duplicate(fd, "fd")?);
        out.set(Pool::handle(HostPool::import(&desc, fd, role)?)?);
        Ok(())
    })
}

/// `avsg_pool_export` over a connected unix socket, which stays the caller's. It must be blocking and
/// used for nothing else meanwhile.
#[unsafe(no_mangle)]
pub extern "C" fn avsg_pool_send(pool: *const avsg_pool, socket: i32) -> avsg_status {
    enter(|| {
        let pool = handle::shared::<Pool>(pool)?;
        Ok(pool.0.send(&UnixStream::from(duplicate(socket, "socket")?))?)
    })
}

/// `avsg_pool_import` of what `avsg_pool_send` sent. Waits until it comes.
///
/// # Safety
/// `pool` may be written. It is NULL after a failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_pool_recv(
    socket: i32,
    as_role: i32,
    pool: *mut *mut avsg_pool,
) -> avsg_status {
    enter(|| {
        // SAFETY: the contract.
        let out = unsafe { Out::new("pool", pool, ptr::null_mut())? };
        let role = role(as_role)?;
        let socket = UnixStream::from(duplicate(socket, "socket")?);
        out.set(Pool::handle(HostPool::recv(&socket, role)?)?);
        Ok(())
    })
}
