//! A sandbox or an old kernel refuses one system call. Where the library needs the call, the error has a remedy
//! for that refusal; where the call only tells of the machine, the library does without.

use std::thread;

use avsg::cpu::worker_pool::{WorkerConfig, WorkerPool};
use avsg::device::params::Params;
use avsg::pool::{HostPool, PoolConfig, PoolFile, Role};
use avsg::rows::RowFormat;
use avsg::system::available_memory;
use avsg_testkit::fixture;
use avsg_testkit::scratch::{Scratch, adapted};
use rustix::io::Errno;

/// The call of rustix; the standard library calls `openat`.
const OPEN: u32 = 2;
const MADVISE: u32 = 28;
const FLOCK: u32 = 73;
const FSTATFS: u32 = 138;
const OPENAT: u32 = 257;
const FALLOCATE: u32 = 285;
const PRLIMIT64: u32 = 302;
const MEMFD_CREATE: u32 = 319;
const IO_URING_ENTER: u32 = 426;
const CLONE3: u32 = 435;

unsafe extern "C" {
    fn prctl(option: i32, ...) -> i32;
}

/// `struct sock_filter`, an instruction of a filter.
#[repr(C)]
struct Instruction(u16, u8, u8, u32);

/// `struct sock_fprog`.
#[repr(C)]
struct Filter(u16, *const Instruction);

/// Runs a function in a thread in which a system call fails with this error, and returns its result as text; `None`
/// if this system has no filters.
fn refusing(
    call: u32,
    errno: Errno,
    run: impl FnOnce() -> avsg::Result<()> + Send,
) -> Option<String> {
    let (no_new_privileges, seccomp, mode_filter) = (38, 22, 2usize);
    let code = 0x0005_0000 | errno.raw_os_error().cast_unsigned();
    let (load, unless) = (Instruction(0x20, 0, 0, 0), Instruction(0x15, 0, 1, call));
    let list = [load, unless, Instruction(6, 0, 0, code), Instruction(6, 0, 0, 0x7fff_0000)];
    let limited = || {
        let filter = Filter(list.len() as u16, list.as_ptr());
        // SAFETY: both options change the calling thread alone, and the kernel copies the filter.
        let set = unsafe {
            prctl(no_new_privileges, 1usize, 0usize, 0usize, 0usize) == 0
                && prctl(seccomp, mode_filter, &raw const filter) == 0
        };
        set.then(|| run().map_or_else(|error| error.to_string(), |()| "made".to_owned()))
    };
    let done = thread::scope(|scope| scope.spawn(limited).join().unwrap());
    if done.is_none() {
        println!("skipped: this system refuses seccomp filters");
    }
    done
}

/// Makes a pool in memory, imports it, and makes a pool in a file and workers.
fn make(config: &PoolConfig, file: &PoolFile) -> avsg::Result<()> {
    let pool = HostPool::new(config)?;
    let export = pool.export()?;
    HostPool::import(&export.desc, export.fd, Role::Reader)?;
    let pool = HostPool::new(&PoolConfig { file: Some(file.clone()), ..config.clone() })?;
    pool.write_row(0, 1, &[7; 64])?;
    pool.flush()?;
    WorkerPool::new(&WorkerConfig::new(2)).map(drop)
}

#[test]
fn a_refused_call_is_done_without_or_has_a_remedy_for_its_errno() {
    let folder = Scratch::new();
    let file = adapted(PoolFile::new(folder.path()));
    let config = PoolConfig::new(1, 64, RowFormat::single(64).unwrap());
    for (call, errno, outcome) in [
        (MADVISE, Errno::INVAL, "made"),
        (MADVISE, Errno::PERM, "made"),
        (PRLIMIT64, Errno::PERM, "made"),
        (FSTATFS, Errno::NOSYS, "made"),
        (IO_URING_ENTER, Errno::PERM, "made"),
        (MEMFD_CREATE, Errno::PERM, "seccomp"),
        (MEMFD_CREATE, Errno::MFILE, "ulimit -n"),
        (FLOCK, Errno::NOLCK, "free memory for locks"),
        (OPEN, Errno::NOENT, "mount /proc"),
        (OPEN, Errno::MFILE, "ulimit -n"),
        (FALLOCATE, Errno::NOSYS, "seccomp"),
        (FALLOCATE, Errno::OPNOTSUPP, "reserves space"),
        (CLONE3, Errno::PERM, "seccomp"),
        (CLONE3, Errno::AGAIN, "ulimit -u"),
    ] {
        let Some(text) = refusing(call, errno, || make(&config, &file)) else { return };
        println!("{call} {errno:?}: {text}");
        assert!(text.contains(outcome) && !text.contains("lacks"), "{call} {errno:?}: {text}");
    }
}

#[test]
fn a_pool_in_memory_and_an_engine_need_no_file_that_tells_of_the_machine() {
    for (call, errno) in [OPEN, OPENAT].into_iter().zip([Errno::NOENT, Errno::MFILE]) {
        let make = || {
            assert_eq!(available_memory::bytes().is_none(), call == OPENAT);
            let pool = fixture::pool(1, 64, RowFormat::single(64).unwrap());
            fixture::engine(Params::wide(8, 1, 64), 1, 2, pool).new_plan(1, 1).map(drop)
        };
        let Some(text) = refusing(call, errno, make) else { return };
        assert_eq!(text, "made", "{errno:?}");
    }
}
