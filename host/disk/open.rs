//! Creating and opening the file of a store.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{
    self, AtFlags, CWD, FallocateFlags, FileType, FlockOperation, Mode, OFlags, StatxFlags,
};
use rustix::io::{Errno, retry_on_intr};

use super::aligned::Aligned;
use super::config::PoolFile;
use super::header;
use super::records::check_len;
use crate::system::available_memory;
use crate::{Error, Result, ensure, invalid};

/// The block of a file whose file system names none.
const DEFAULT_BLOCK: usize = 4096;
/// The smallest block.
const SECTOR: usize = 512;
/// Time between two looks whether another writer has let the file go, and the longest time that it may take:
/// after a process was killed, the kernel keeps the lock until the last of its operations has ended.
const LOCK_POLL: Duration = Duration::from_millis(1);
const LOCK_WAIT: Duration = Duration::from_secs(1);

/// How a file is opened that must not exist, and who may then use it.
const NEW: OFlags = OFlags::CREATE.union(OFlags::EXCL);
const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

/// An open file, or a block device.
pub(super) struct Opened<'a> {
    path: &'a Path,
    pub file: Arc<File>,
    pub device: bool,
    pub block: usize,
    pub memory_alignment: usize,
    /// Whether the file is new, so that its name is removed unless the creation ends well.
    pub created: bool,
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        if self.created {
            // Nobody can be told of a failure, because this is the way of another error.
            let _ = fs::unlink(self.path);
        }
    }
}

fn refused(call: &'static str, path: &Path) -> impl Fn(Errno) -> Error {
    move |error| {
        let remedy = match error {
            Errno::LOOP => "name the file itself in place of a link",
            Errno::NOENT => "name a folder or a path in a folder that exists",
            Errno::ACCESS | Errno::PERM | Errno::ROFS => "name a path that this user may write",
            Errno::BUSY => "name a device that is not mounted and that no other pool uses",
            _ => "name another path",
        };
        Error::os(call, path.display().to_string(), error, remedy)
    }
}

/// Returns what a path names, which may be a link.
fn kind_of(path: &Path) -> rustix::io::Result<FileType> {
    let stat = fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(stat.st_mode))
}

/// Returns the random number of a new file.
pub(super) fn random() -> u64 {
    RandomState::new().hash_one(Instant::now())
}

/// Repeats a call as long as another pool lets go of the file at the moment, which it may do for a limited time.
fn when_free<T>(busy: Errno, call: impl Fn() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    let start = Instant::now();
    loop {
        match call() {
            Err(error) if error == busy && start.elapsed() < LOCK_WAIT => thread::sleep(LOCK_POLL),
            done => return done,
        }
    }
}

impl<'a> Opened<'a> {
    /// Opens a file that was kept or a block device; with `new` it makes a file, without its rows' space.
    pub fn open(file: &'a PoolFile, new: bool) -> Result<Self> {
        let (path, direct) = (file.path.as_path(), !file.buffered);
        let kind = kind_of(path);
        let (device, created) = (kind == Ok(FileType::BlockDevice), kind.is_err() && file.keep);
        let fd = match kind {
            Ok(FileType::BlockDevice) => open(path, OFlags::EXCL)?,
            Ok(FileType::Symlink) => return Err(refused("open", path)(Errno::LOOP)),
            Ok(FileType::RegularFile) if !new => open(path, OFlags::empty())?,
            Ok(FileType::Directory) if new => {
                ensure!(!file.keep, "pool file" is path.display(), but "it is a folder";
                    "name the file that is to be kept");
                private(path)?
            }
            Ok(_) if new => {
                return Err(invalid!("pool file" is path.display(), but
                    "it exists and nothing is overwritten";
                    "open it as a kept file, remove it, or name another path"));
            }
            Ok(_) => {
                return Err(invalid!("pool file" is path.display(), but
                    "it is neither a file nor a block device"; "name the file that was kept"));
            }
            Err(error) if !new => return Err(refused("stat", path)(error)),
            Err(_) if created => open(path, NEW)?,
            Err(_) => unnamed(path)?,
        };
        let (offset, memory) = alignment(&fd, device);
        let (block, memory_alignment) = (block(offset), if direct { memory } else { 1 });
        let file = Arc::new(File::from(fd));
        let opened = Self { path, file, device, block, memory_alignment, created };
        let set = || fs::fcntl_setfl(&opened.file, OFlags::DIRECT).is_ok();
        ensure!(!direct || offset != 0 && set(), "buffered" is !direct, but
            "the file system of {} has no O_DIRECT", path.display();
            "set buffered, or name a path in a file system with O_DIRECT");
        Ok(opened)
    }

    /// Takes the lock of the file's only writer.
    pub fn lock(&self) -> Result<()> {
        let lock =
            || retry_on_intr(|| fs::flock(&self.file, FlockOperation::NonBlockingLockExclusive));
        when_free(Errno::WOULDBLOCK, lock).map_err(|error| match error {
            Errno::WOULDBLOCK => invalid!("pool file" is self.path.display(), but
                "another pool has it open, and it takes one writer";
                "drop the other pool, or end its process and the children that it forked"),
            _ => refused("flock", self.path)(error),
        })
    }

    /// Reads a copy of the header. What lies behind the end of a shorter file is 0, as in no header.
    pub fn header(&self, copy: usize) -> Result<Aligned> {
        let mut memory = Aligned::zeroed(header::WHAT, header::BYTES)?;
        let at = (copy * header::BYTES) as u64;
        retry_on_intr(|| rustix::io::pread(&self.file, memory.bytes_mut(), at))
            .map_err(refused("read", self.path))?;
        Ok(memory)
    }

    /// Takes `len` bytes of space for a new file, or checks that an older one or the device has them.
    pub fn reserve(&self, len: u64, new: bool) -> Result<()> {
        if self.device || !new {
            return check_len(&*self.file, self.path, len);
        }
        available_memory::check_file("pool file", len)?;
        // A file system may take long to find out, and meanwhile have no room for others. One that tells of no
        // room at all may not know.
        let room = fs::fstatvfs(&self.file);
        let room = room.map_or(0, |fs| fs.f_bavail.saturating_mul(fs.f_frsize));
        let taken = if (1..len).contains(&room) {
            Err(Errno::NOSPC)
        } else {
            retry_on_intr(|| fs::fallocate(&self.file, FallocateFlags::empty(), 0, len))
        };
        taken.map_err(|error| {
            let mut what = format!("{} of {len} bytes", self.path.display());
            if error == Errno::NOSPC && room < len {
                what += &format!(", of which the file system lacks {}", len - room);
            }
            let remedy = match error {
                Errno::NOSPC | Errno::DQUOT => {
                    "free space, ask for fewer rows, or name another path"
                }
                _ => "name a path in a file system that reserves space (ext4, xfs, btrfs, tmpfs)",
            };
            Error::os("fallocate", what, error, remedy)
        })
    }

    /// Makes the name of a new file durable.
    pub fn sync_folder(&self) -> Result<()> {
        let folder = folder_of(self.path);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = fs::open(folder, flags, Mode::empty());
        opened.and_then(fs::fsync).map_err(refused("fsync", folder))
    }
}

/// Opens a file of this name, with `NEW` one that does not exist.
fn open(path: &Path, flags: OFlags) -> Result<OwnedFd> {
    let flags = flags | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // Another pool may let go of a device at the moment.
    when_free(Errno::BUSY, || fs::open(path, flags, PRIVATE)).map_err(refused("open", path))
}

/// Makes a file of this name and takes the name away.
fn unnamed(path: &Path) -> Result<OwnedFd> {
    let fd = open(path, NEW)?;
    fs::unlink(path).map_err(refused("unlink", path))?;
    Ok(fd)
}

/// Makes a file without a name in a folder.
fn private(folder: &Path) -> Result<OwnedFd> {
    // With O_EXCL nobody can give the file a name later.
    let flags = OFlags::TMPFILE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
    match fs::open(folder, flags, PRIVATE) {
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => {
            unnamed(&folder.join(format!(".avsg-pool-{:016x}", random())))
        }
        made => made.map_err(refused("open", folder)),
    }
}

/// Returns the block that a new file would have. It leaves nothing behind.
pub(super) fn block_of(file: &PoolFile) -> Result<usize> {
    let path = file.path.as_path();
    let (fd, device) = match kind_of(path) {
        Ok(FileType::BlockDevice) => (open(path, OFlags::empty())?, true),
        Ok(FileType::Directory) => (private(path)?, false),
        _ => (private(folder_of(path))?, false),
    };
    Ok(block(alignment(&fd, device).0))
}

/// Returns the block of records for an alignment of offsets.
fn block(alignment: usize) -> usize {
    if alignment == 0 { DEFAULT_BLOCK } else { alignment.max(SECTOR) }
}

/// Returns the folder that a path names something in.
fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// Returns the alignment of offsets and of memory for O_DIRECT; 0 if the file has no O_DIRECT.
fn alignment(fd: &OwnedFd, device: bool) -> (usize, usize) {
    if device {
        let sector = fs::ioctl_blksszget(fd).map_or(DEFAULT_BLOCK, |sector| sector as usize);
        return (sector, sector);
    }
    match fs::statx(fd, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN) {
        Ok(stat) if stat.stx_mask & StatxFlags::DIOALIGN.bits() != 0 => {
            (stat.stx_dio_offset_align as usize, stat.stx_dio_mem_align as usize)
        }
        // Kernels before 6.1 do not tell. Pages are aligned enough for every file system.
        _ => (DEFAULT_BLOCK, DEFAULT_BLOCK),
    }
}
