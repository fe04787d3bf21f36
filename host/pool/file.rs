//! The file of a pool: its allocation by the hugepage ladder, and the lock of its writer.
//!
//! The ladder takes the best kind of pages that the system grants, in the order of [`Pages`]. Each kind
//! is a rung; the pool reports the rung that it got.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{self, FlockOperation, MemfdFlags, Mode, OFlags, SealFlags};
use rustix::io::Errno;

use super::geometry::Pages;
use crate::system::available_memory;
use crate::system::mapping::{MIB2, Mapping};
use crate::{Error, Result, invalid};

const WHAT: &str = "host pool";
const GIB1: usize = 1 << 30;

/// Populated memory in a memfd that is sealed against shrinking.
pub(super) struct MappedFile {
    pub fd: OwnedFd,
    pub mapping: Mapping,
    pub pages: Pages,
    pub huge_bytes: usize,
}

/// Returns the most bytes that any rung from `first` down allocates for `total` bytes.
pub(super) fn mapped_len(total: usize, first: Pages) -> Result<usize> {
    let step = match first {
        Pages::Huge1G if total >= GIB1 => GIB1,
        Pages::Huge1G | Pages::Huge2M | Pages::Thp if total >= MIB2 => MIB2,
        Pages::Caller => {
            return Err(invalid!("pages" is first, but "a new pool takes memory of its own";
                "make the pool over memory that exists by a layout"));
        }
        _ => 1,
    };
    total.checked_next_multiple_of(step).ok_or_else(
        || invalid!(WHAT is total, but "it must fit the address space"; "ask for fewer rows"),
    )
}

/// Allocates `total` bytes by the best rung from `first` down. A rung that fails releases its
/// memory before the next one is tried.
pub(super) fn allocate(total: usize, first: Pages) -> Result<MappedFile> {
    mapped_len(total, first)?;
    let (size_1g, size_2m) = (MemfdFlags::HUGE_1GB, MemfdFlags::HUGE_2MB);
    let rungs = [(Pages::Huge1G, GIB1, size_1g), (Pages::Huge2M, MIB2, size_2m)];
    let asked = rungs.iter().skip_while(|rung| rung.0 != first);
    for &(pages, page, size) in asked {
        // A pool smaller than a page would waste most of the page.
        let len = total.checked_next_multiple_of(page).filter(|_| total >= page);
        // The mapping reserves its pages, so that it fails where too few are free.
        if let Some(len) = len
            && let Ok((fd, mapping)) = create(len, MemfdFlags::HUGETLB | size, false)
        {
            return Ok(MappedFile { fd, mapping, pages, huge_bytes: len });
        }
    }
    let thp = first != Pages::Plain && total >= MIB2;
    let len = mapped_len(total, if thp { Pages::Thp } else { Pages::Plain })?;
    available_memory::check(WHAT, len)?;
    let (fd, mapping) = create(len, MemfdFlags::empty(), thp)?;
    let huge_bytes = mapping.huge_bytes();
    let pages = if huge_bytes >= len.div_ceil(2) { Pages::Thp } else { Pages::Plain };
    Ok(MappedFile { fd, mapping, pages, huge_bytes })
}

/// Makes a sealed memfd of `len` bytes, maps it and populates it.
fn create(len: usize, kind: MemfdFlags, thp: bool) -> Result<(OwnedFd, Mapping)> {
    let refused = |call| {
        move |error: Errno| {
            Error::os(call, format!("{WHAT} of {len} bytes"), error, "ask for fewer rows")
        }
    };
    available_memory::check_file(WHAT, len as u64)?;
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | kind;
    let fd = fs::memfd_create("avsg-pool", flags).map_err(refused("memfd_create"))?;
    fs::ftruncate(&fd, len as u64).map_err(refused("ftruncate"))?;
    // If another process could shrink the file, reads of the pool would raise SIGBUS.
    let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    fs::fcntl_add_seals(&fd, seals).map_err(refused("fcntl(F_ADD_SEALS)"))?;
    let mapping = Mapping::shared(WHAT, fd.as_fd(), len, true)?;
    if thp {
        mapping.advise_huge();
    }
    mapping.populate(WHAT, true)?;
    Ok((fd, mapping))
}

/// Takes the exclusive lock of a pool's writer, an `flock` on the pool's file. It belongs to the open file
/// description, and the kernel releases it when the last descriptor of that is closed.
pub(super) fn lock(fd: &OwnedFd) -> Result<()> {
    match fs::flock(fd, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(()),
        Err(Errno::WOULDBLOCK) => Err(invalid!("pool role" is "writer", but
            "the pool has a writer and takes one at a time";
            "import it as a reader, or demote the pool in the writer process")),
        Err(error) => Err(Error::os("flock", WHAT, error, "pass the file of a pool's export")),
    }
}

/// Opens the file of a pool again, because a descriptor that is sent or inherited has the open file description of
/// the first one, and so its lock.
pub(super) fn reopen(fd: &OwnedFd) -> Result<OwnedFd> {
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    fs::open(&path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(|error| Error::os("open", path, error, "mount /proc"))
}
