//! Export and import of a pool, which share it between processes.

use std::os::fd::{BorrowedFd, IntoRawFd, OwnedFd};

use crate::boundary::{self, OutPtr, enter};
use crate::handle;
use crate::pool::{Pool, avsg_pool};
use crate::status::{Failure, Result, avsg_status, avsg_status::AVSG_OS, choice, ensure};
use avsg::pool::{DESC_BYTES, HostPool, Role};

/// Bytes of a pool's descriptor, which is its geometry and can be sent, stored and compared.
pub const AVSG_POOL_DESC_BYTES: usize = 112;
const _: () = assert!(AVSG_POOL_DESC_BYTES == DESC_BYTES);

/// Duplicates the caller's file descriptor, which the caller continues to own.
fn duplicate(fd: i32) -> Result<OwnedFd> {
    ensure!(fd >= 0, "fd is {fd}, but a file descriptor is not negative; pass an open one");
    // SAFETY: `fd` is not -1. If it is not open, the duplication below fails and nothing else uses
    // it.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    borrowed.try_clone_to_owned().map_err(|error| {
        let text = format!("fd {fd} could not be duplicated: {error}; pass an open descriptor");
        Failure::new(AVSG_OS, text)
    })
}

/// Gives what another process needs to map this pool: the descriptor in `desc`, whose `desc_bytes`
/// must be at least AVSG_POOL_DESC_BYTES, and a new file descriptor of the memory in `fd`. The
/// caller passes `fd` on (by inheritance or SCM_RIGHTS) and closes it. A process that has `fd` can
/// map the memory. AVSG_INVALID for a pool over the caller's memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_pool_export(
    pool: *const avsg_pool,
    desc: *mut u8,
    desc_bytes: usize,
    fd: *mut i32,
) -> avsg_status {
    enter(|| {
        let out = contract!(OutPtr::new("fd", fd, -1)?);
        check_desc_bytes(desc_bytes >= DESC_BYTES, desc_bytes)?;
        let desc = contract!(boundary::array_mut("desc", desc, DESC_BYTES)?);
        let export = handle::shared::<Pool>(pool)?.host.export()?;
        desc.copy_from_slice(&export.desc);
        out.write(export.fd.into_raw_fd());
        Ok(())
    })
}

fn check_desc_bytes(fits: bool, bytes: usize) -> Result<()> {
    ensure!(
        fits,
        "desc_bytes is {bytes}, but a descriptor has {DESC_BYTES}; pass AVSG_POOL_DESC_BYTES"
    );
    Ok(())
}

/// Maps a pool that another process exported, as an `avsg_role`. The caller still owns `fd` and may
/// close it. AVSG_INVALID for AVSG_ROLE_WRITER while the pool has a writer, which ceases to be one
/// by `avsg_pool_destroy`, by `avsg_pool_demote` or when its process ends.
///
/// In this way the ranks of a node share one pool: one of them appends, and each registers the pool with its own
/// device. All ranks pass the fresh rows that they have to their steps. A reader's step finds an appended row if it
/// comes after the append, for example behind a collective of all ranks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_pool_import(
    desc: *const u8,
    desc_bytes: usize,
    fd: i32,
    as_role: i32,
    pool: *mut *mut avsg_pool,
) -> avsg_status {
    let make = || {
        check_desc_bytes(desc_bytes == DESC_BYTES, desc_bytes)?;
        let desc = contract!(boundary::array("desc", desc, desc_bytes)?);
        let role = choice("role", as_role, &[Role::Reader, Role::Writer])?;
        Ok(Pool::new(HostPool::import(desc, duplicate(fd)?, role)?))
    };
    contract!(handle::give(pool, make))
}
