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
use libc::{
    PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO,
    SYS_clone3, SYS_fallocate, SYS_flock, SYS_fstatfs, SYS_io_uring_enter, SYS_madvise,
    SYS_memfd_create, SYS_open, SYS_openat, SYS_prlimit64, c_long, prctl, sock_filter, sock_fprog,
};
use rustix::io::Errno;

/// Runs a function in a thread in which a system call fails with this error, and returns its result as text; `None`
/// if this system has no filters.
fn refusing(
    call: c_long,
    errno: Errno,
    run: impl FnOnce() -> avsg::Result<()> + Send,
) -> Option<String> {
    let instruction = |code, jf, k| sock_filter { code, jt: 0, jf, k };
    // It loads the number of the call, and skips the next instruction unless it is this one.
    let list = [
        instruction(0x20, 0, 0),
        instruction(0x15, 1, call as u32),
        instruction(6, 0, SECCOMP_RET_ERRNO | errno.raw_os_error().cast_unsigned()),
        instruction(6, 0, SECCOMP_RET_ALLOW),
    ];
    let limited = || {
        let filter = sock_fprog { len: list.len() as u16, filter: list.as_ptr().cast_mut() };
        // SAFETY: both options change the calling thread alone, and the kernel copies the filter.
        let set = unsafe {
            prctl(PR_SET_NO_NEW_PRIVS, 1usize, 0usize, 0usize, 0usize) == 0
                && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER as usize, &raw const filter) == 0
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
        (SYS_madvise, Errno::INVAL, "made"),
        (SYS_madvise, Errno::PERM, "made"),
        (SYS_prlimit64, Errno::PERM, "made"),
        (SYS_fstatfs, Errno::NOSYS, "made"),
        (SYS_io_uring_enter, Errno::PERM, "made"),
        (SYS_memfd_create, Errno::PERM, "seccomp"),
        (SYS_memfd_create, Errno::MFILE, "ulimit -n"),
        (SYS_flock, Errno::NOLCK, "free memory for locks"),
        (SYS_open, Errno::NOENT, "mount /proc"),
        (SYS_open, Errno::MFILE, "ulimit -n"),
        (SYS_fallocate, Errno::NOSYS, "seccomp"),
        (SYS_fallocate, Errno::OPNOTSUPP, "reserves space"),
        (SYS_clone3, Errno::PERM, "seccomp"),
        (SYS_clone3, Errno::AGAIN, "ulimit -u"),
    ] {
        let Some(text) = refusing(call, errno, || make(&config, &file)) else { return };
        println!("{call} {errno:?}: {text}");
        assert!(text.contains(outcome) && !text.contains("lacks"), "{call} {errno:?}: {text}");
    }
}

#[test]
fn a_pool_in_memory_and_an_engine_need_no_file_that_tells_of_the_machine() {
    // rustix calls `open`, and the standard library `openat`.
    for (call, errno) in [SYS_open, SYS_openat].into_iter().zip([Errno::NOENT, Errno::MFILE]) {
        let make = || {
            assert_eq!(available_memory::bytes().is_none(), call == SYS_openat);
            let pool = fixture::pool(1, 64, RowFormat::single(64).unwrap());
            fixture::engine(Params::wide(8, 1, 64), 1, 2, pool).new_plan(1, 1).map(drop)
        };
        let Some(text) = refusing(call, errno, make) else { return };
        assert_eq!(text, "made", "{errno:?}");
    }
}
