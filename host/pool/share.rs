//! Sharing a pool between processes: its descriptor and its file.
//!
//! Without sharing, every process of a node would hold the same rows. A process gets the pool's
//! file from the caller, over a unix socket or by inheritance, checks it against the descriptor and
//! maps it. Neither is trusted: a file that is too short, unsealed or of another pool is an error here, not
//! a SIGBUS at a later access.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{self, FlockOperation, SealFlags};

use super::file;
use super::geometry::{Geometry, Pages, PoolConfig};
use super::host::{Backing, HostPool, Role, chunks_in};
use crate::rows::{MAX_SEGMENTS, RowFormat};
use crate::system::available_memory;
use crate::system::mapping::{MIB2, Mapping};
use crate::system::stored_words::{checksum, put, word};
use crate::{Error, Result, ensure, invalid};

/// Length in bytes of a descriptor.
pub const DESC_BYTES: usize = (SEGMENTS + 2 * MAX_SEGMENTS) * 8;
/// The first word of a descriptor. Its last two characters are the version of the encoding.
const MAGIC: u64 = u64::from_le_bytes(*b"AVSGPL03");
/// The places of the checksum among the words, and of the segments behind it.
const CHECKSUM: usize = 5;
const SEGMENTS: usize = 6;
/// The type that `fstatfs` returns for a hugetlb file.
const HUGETLBFS_MAGIC: u64 = 0x9584_58f6;

impl Geometry {
    /// Returns the descriptor as little-endian 64-bit words, one of which is a checksum of the
    /// others; words of unused segments are 0.
    fn to_desc(&self) -> [u8; DESC_BYTES] {
        let Self { layers, rows, format, chunk_bytes, .. } = self;
        let sizes = [*layers, *rows, *chunk_bytes, format.as_slice().len()];
        let mut bytes = [0; DESC_BYTES];
        put(&mut bytes, 0, [MAGIC]);
        put(&mut bytes, 1, sizes.map(|size| size as u64));
        put(&mut bytes, SEGMENTS, format.sizes().map(|size| size as u64));
        let sum = checksum(&bytes, CHECKSUM);
        put(&mut bytes, CHECKSUM, [sum]);
        bytes
    }

    /// Decodes what [`Self::to_desc`] returned.
    fn of_desc(bytes: &[u8]) -> Result<Self> {
        let bad = |what: &str| {
            invalid!("pool descriptor" is what, but "it must be what an export wrote";
                "send the descriptor of an export, from the same version of avsg")
        };
        if bytes.len() != DESC_BYTES {
            return Err(bad(&format!("{} bytes, not {DESC_BYTES}", bytes.len())));
        }
        if word(bytes, 0) != MAGIC {
            return Err(bad("of another kind or version"));
        }
        if word(bytes, CHECKSUM) != checksum(bytes, CHECKSUM) {
            return Err(bad("damaged"));
        }
        let size = |at| usize::try_from(word(bytes, at)).map_err(|_| bad("too large"));
        let (layers, rows, chunk_bytes, count) = (size(1)?, size(2)?, size(3)?, size(4)?);
        if count > MAX_SEGMENTS {
            return Err(bad("of too many segments"));
        }
        let format = RowFormat::of_sizes(count, |n| size(SEGMENTS + n))?;
        Self::new(&PoolConfig { chunk_bytes, ..PoolConfig::new(layers, rows, format) })
    }
}

/// What a process needs to map a pool of another one.
#[derive(Debug)]
pub struct PoolExport {
    /// The descriptor: the geometry, in bytes that can be sent.
    pub desc: [u8; DESC_BYTES],
    /// The file, which keeps the memory allocated. Any process that has it can map it.
    pub fd: OwnedFd,
}

impl HostPool {
    /// Returns what another process needs to map this pool.
    ///
    /// # Errors
    /// If the pool is in the caller's memory, in that of an allocator or on a disk, the process has no
    /// free descriptor, or /proc is not mounted.
    pub fn export(&self) -> Result<PoolExport> {
        self.birth.check("pool")?;
        ensure!(self.store().is_none(), "pool" is "in a file", but
            "one process at a time has it open"; "drop the pool and open the file in the other process");
        let Backing::File(fd, _) = &self.backing else {
            return Err(invalid!("pool" is Pages::Caller, but
                "only a pool in memory of the system has a file to share";
                "share that memory yourself and make a pool over it by a layout on both sides"));
        };
        Ok(PoolExport { desc: self.geometry.to_desc(), fd: file::reopen(fd)? })
    }

    /// Maps a pool that another process exported. A reader's mapping is read-only.
    ///
    /// # Errors
    /// If the bytes are no descriptor of this version, the file does not match it, a system call fails, or `role` is
    /// [`Role::Writer`] and the pool has a writer that was neither dropped nor demoted.
    pub fn import(desc: &[u8], fd: OwnedFd, role: Role) -> Result<Self> {
        let geometry = Geometry::of_desc(desc)?;
        let len = checked_len(&geometry, &fd)?;
        let fd = match role {
            Role::Reader => fd,
            Role::Writer => file::reopen(&fd).and_then(|fd| file::lock(&fd).map(|()| fd))?,
        };
        let mapping = Mapping::shared(WHAT, fd.as_fd(), len, role == Role::Writer)?;
        // The size of explicit hugepages. A system that does not tell it has others, which are counted.
        let kind = fs::fstatfs(&fd).ok();
        let kind = kind.filter(|kind| kind.f_type as u64 & 0xffff_ffff == HUGETLBFS_MAGIC);
        let huge_page = kind.map(|kind| kind.f_bsize as usize);
        if huge_page.is_none() {
            mapping.advise_huge();
        }
        // The pages exist; this enters them into the page table of this process. It must not use
        // `write`, which on kernels before 5.14 clears the pages.
        mapping.populate(WHAT, false)?;
        let huge_bytes = if huge_page.is_some() { len } else { mapping.huge_bytes() };
        let pages = match huge_page {
            Some(MIB2) => Pages::Huge2M,
            Some(_) => Pages::Huge1G,
            None if huge_bytes >= len.div_ceil(2) => Pages::Thp,
            None => Pages::Plain,
        };
        let chunks = chunks_in(&geometry, &mapping)?;
        let backing = Backing::File(fd, mapping);
        Self::in_chunks(geometry, chunks, backing, role, (pages, huge_bytes))
    }

    /// Makes this process a reader, so that another process may become the writer. Pointers from
    /// [`Self::view`] may only be read from then on. A reader stays a reader.
    ///
    /// # Errors
    /// If the system refuses to protect the mapping.
    pub fn demote(&mut self) -> Result<()> {
        self.birth.check("pool")?;
        if let Backing::File(fd, mapping) = &self.backing {
            mapping.protect(WHAT)?;
            // It has the lock, so that the system does not refuse.
            let _ = fs::flock(fd, FlockOperation::Unlock);
        }
        self.role = Role::Reader;
        Ok(())
    }
}

const WHAT: &str = "shared host pool";
const FROM_EXPORT: &str = "pass the file of a pool's export";

/// Returns the length of the file in bytes, which must cover the geometry and be sealed against
/// shrinking.
fn checked_len(geometry: &Geometry, fd: &OwnedFd) -> Result<usize> {
    let stat = fs::fstat(fd).map_err(|error| Error::os("fstat", WHAT, error, FROM_EXPORT))?;
    let need = geometry.total;
    // A pool's file is longer than the geometry by less than the largest page, 1 GiB.
    let len = usize::try_from(stat.st_size).unwrap_or(0);
    ensure!(len >= need && len - need < 1 << 30, "pool file" is format!("{len} bytes"), but
        "this geometry needs {need}"; FROM_EXPORT);
    let seals = fs::fcntl_get_seals(fd).unwrap_or(SealFlags::empty());
    ensure!(seals.contains(SealFlags::SHRINK), "pool file" is "a file that can shrink", but
        "it must be sealed against shrinking"; FROM_EXPORT);
    // The file of an export has all its pages. Populating takes memory for those that another lacks.
    let present = usize::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512);
    let lacking = len.saturating_sub(present);
    available_memory::check("part of the pool file without pages", lacking)?;
    Ok(len)
}
