//! One pool in two processes through the C ABI: the writer appends, and the reader gathers, even
//! after the writer was killed. Pools over the caller's memory.

use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::ptr::{null, null_mut, with_exposed_provenance_mut, without_provenance};
use std::sync::atomic::{AtomicUsize, Ordering};

use avsg_capi::avsg_status::*;
use avsg_capi::*;
use avsg_capi_testkit::*;

/// The environment variable that makes this binary, run a second time, the writer.
const CHILD: &str = "AVSG_CAPI_SHARE_WRITER";
const READER: i32 = avsg_role::AVSG_ROLE_READER as i32;
const WRITER: i32 = avsg_role::AVSG_ROLE_WRITER as i32;

/// Sends its pool, then makes the step of each number that it receives and appends its rows.
#[test]
fn writer() {
    if std::env::var(CHILD).is_err() {
        return;
    }
    let mut socket = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned().unwrap());
    let handles = Handles::on_cpu();
    // Only an append gives these rows the bytes that the reader expects.
    (100..ROWS).for_each(|i| handles.write_row(0, i, &[0xEE; ROW]));
    ok(avsg_pool_send(handles.pool, socket.as_raw_fd()));
    let mut number = [0];
    while socket.read_exact(&mut number).is_ok() {
        let owned = step(i32::from(number[0]));
        ok(handles.step(&owned, 0));
        assert_eq!(handles.expect_exact(&owned, 0), 32);
        // SAFETY: `owned` owns the arrays.
        ok(unsafe {
            avsg_engine_append(handles.engine, &owned.batch(), 0, &owned.fresh(), null_mut())
        });
        socket.write_all(&number).unwrap();
    }
}

/// Returns the batch of step `n`, whose second request has the fresh rows 100 + 2 n and 101 + 2 n.
fn step(n: i32) -> Arrays {
    let mut owned = Arrays::new(n);
    let stable = 100 + 2 * n;
    owned.decode_at(stable);
    owned.ids[16..18].copy_from_slice(&[stable, stable + 1]);
    owned
}

/// Makes step `n` without fresh rows, so that the rows which the writer appended come from the
/// pool.
fn gather(handles: &Handles, n: i32) {
    let mut owned = step(n);
    owned.stable = vec![-1, -1];
    ok(handles.step(&owned, 0));
    assert_eq!(handles.expect_exact(&owned, 0), 32);
}

#[test]
fn a_reader_gathers_appended_rows_even_after_the_writer_was_killed() {
    let (mut socket, writers_socket) = UnixStream::pair().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "writer", "--test-threads=1"])
        .env(CHILD, "1")
        .stdin(Stdio::from(OwnedFd::from(writers_socket)))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut handles = Handles::from_raw(null_mut(), null_mut(), null_mut());
    let (mut fd, mut desc) = (-1, [0; AVSG_POOL_DESC_BYTES]);
    // SAFETY: the out-pointers are local variables, and the configuration has its `size` set.
    unsafe {
        ok(avsg_pool_recv(socket.as_raw_fd(), READER, &mut handles.pool));
        ok(avsg_pool_export(handles.pool, desc.as_mut_ptr(), desc.len(), &mut fd));
        ok(avsg_engine_create(&engine_config(), handles.pool, &mut handles.engine));
        ok(avsg_plan_create(handles.engine, 4, 2, &mut handles.plan));
    }
    let mut reply = [0];
    for n in 0..14u8 {
        socket.write_all(&[n]).unwrap();
        socket.read_exact(&mut reply).unwrap();
        gather(&handles, n.into());
    }
    // A reader may not write, and a pool has only one writer.
    let owned = step(0);
    let (mut second, mut at) = (null_mut(), null_mut());
    // SAFETY: the out-pointers are local variables, and `owned` owns the arrays.
    unsafe {
        let (batch, fresh) = (owned.batch(), owned.fresh());
        let status = avsg_engine_append(handles.engine, &batch, 0, &fresh, null_mut());
        expect_error(status, AVSG_INVALID, &["pool role is reader"]);
        let bytes = row(0, 1);
        let status = avsg_pool_write_row(handles.pool, 0, 1, bytes.as_ptr().cast(), ROW);
        expect_error(status, AVSG_INVALID, &["only the writer"]);
        ok(avsg_pool_get_row(handles.pool, 0, 0, 1, &mut at));
        let mapped = std::slice::from_raw_parts(at.cast::<u8>(), 24);
        assert_eq!(mapped, &row(0, 1)[..24], "a reader reads in place");
        let status = avsg_pool_import(desc.as_ptr(), desc.len(), fd, WRITER, &mut second);
        expect_error(status, AVSG_INVALID, &["has a writer"]);
    }
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success(), "the writer was killed");
    (0..14).rev().for_each(|n| gather(&handles, n));
    // SAFETY: the out-pointer is a local variable, and `fd` is an open descriptor that only this
    // line closes.
    unsafe {
        ok(avsg_pool_import(desc.as_ptr(), desc.len(), fd, WRITER, &mut second));
        drop(OwnedFd::from_raw_fd(fd));
        let bytes = row(0, 5);
        ok(avsg_pool_write_row(second, 0, 5, bytes.as_ptr().cast(), ROW));
        ok(avsg_pool_demote(second));
        expect_error(
            avsg_pool_write_row(second, 0, 5, bytes.as_ptr().cast(), ROW),
            AVSG_INVALID,
            &["only the writer"],
        );
    }
    ok(avsg_pool_destroy(second));
    handles.destroy();
}

unsafe extern "C" {
    safe fn pthread_self() -> usize;
    fn pthread_kill(thread: usize, signal: i32) -> i32;
    fn signal(number: i32, handler: extern "C" fn(i32)) -> usize;
    safe fn siginterrupt(signal: i32, interrupt: i32) -> i32;
}

/// SIGUSR1 on Linux.
const SIGNAL: i32 = 10;

/// The signals that were handled.
static SIGNALS: AtomicUsize = AtomicUsize::new(0);

extern "C" fn count_signal(_: i32) {
    SIGNALS.fetch_add(1, Ordering::Relaxed);
}

/// Runs a call on another thread, sends it signals whose handler ends system calls (no SA_RESTART) until
/// it has had ten, and then lets it proceed.
fn with_signals(call: impl FnOnce() -> avsg_status + Send, proceed: impl FnOnce()) {
    // SAFETY: the handler only counts, which is safe in a signal handler.
    unsafe { signal(SIGNAL, count_signal) };
    assert_eq!(siginterrupt(SIGNAL, 1), 0);
    let (tell, thread) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let called = scope.spawn(move || {
            tell.send(pthread_self()).unwrap();
            let status = call();
            (status, if status == AVSG_OK { String::new() } else { last_error() })
        });
        let (thread, first) = (thread.recv().unwrap(), SIGNALS.load(Ordering::Relaxed));
        while SIGNALS.load(Ordering::Relaxed) < first + 10 && !called.is_finished() {
            // The call sleeps after a while, and a signal then wakes it.
            std::thread::sleep(std::time::Duration::from_millis(10));
            // SAFETY: the thread is not joined yet.
            unsafe { pthread_kill(thread, SIGNAL) };
        }
        proceed();
        assert_eq!(called.join().unwrap(), (AVSG_OK, String::new()));
    });
}

#[test]
fn signals_do_not_end_a_send_or_a_receive() {
    let (handles, (ours, mut theirs)) = (Handles::on_cpu(), UnixStream::pair().unwrap());
    let mut pool = null_mut::<avsg_pool>();
    let (of_pool, received) = (handles.pool.addr(), (&raw mut pool).expose_provenance());
    let receive = || {
        // SAFETY: the address is that of `pool`, which nothing else uses meanwhile.
        unsafe { avsg_pool_recv(ours.as_raw_fd(), READER, with_exposed_provenance_mut(received)) }
    };
    let send = || avsg_pool_send(without_provenance(of_pool), theirs.as_raw_fd());
    with_signals(receive, || ok(send()));
    ok(avsg_pool_destroy(pool));
    // A send waits while the socket is full.
    ours.set_nonblocking(true).unwrap();
    let (mut filled, part) = (0, [0; 4096]);
    while let Ok(n) = (&ours).write(&part) {
        filled += n;
    }
    ours.set_nonblocking(false).unwrap();
    let send = || avsg_pool_send(without_provenance(of_pool), ours.as_raw_fd());
    let mut rest = vec![0; filled];
    with_signals(send, || theirs.read_exact(&mut rest).unwrap());
    // SAFETY: the out-pointer is a local variable.
    ok(unsafe { avsg_pool_recv(theirs.as_raw_fd(), READER, &mut pool) });
    ok(avsg_pool_destroy(pool));
    handles.destroy();
}

#[test]
fn invalid_descriptors_files_sockets_and_roles_are_refused() {
    let handles = Handles::on_cpu();
    let (mut fd, mut desc, mut pool) = (7, [0; AVSG_POOL_DESC_BYTES], null_mut());
    // SAFETY: the out-pointers are local variables of the stated lengths.
    unsafe {
        let status = avsg_pool_export(handles.pool, desc.as_mut_ptr(), 111, &mut fd);
        expect_error(status, AVSG_INVALID, &["desc_bytes is 111", "112"]);
        assert_eq!(fd, -1);
        let status = avsg_pool_export(handles.pool, null_mut(), 112, &mut fd);
        expect_error(status, AVSG_NULL, &["desc is NULL"]);
        expect_error(
            avsg_pool_import(desc.as_ptr(), 112, 0, READER, &mut pool),
            AVSG_INVALID,
            &["pool descriptor", "version"],
        );
        ok(avsg_pool_export(handles.pool, desc.as_mut_ptr(), 112, &mut fd));
        let file = OwnedFd::from_raw_fd(fd);
        for (fd, status, part) in [
            (-1, AVSG_INVALID, "fd is -1"),
            (1 << 20, AVSG_OS, "fd 1048576 could not be duplicated"),
        ] {
            let got = avsg_pool_import(desc.as_ptr(), 112, fd, READER, &mut pool);
            expect_error(got, status, &[part]);
        }
        let null = std::fs::File::open("/dev/null").unwrap();
        let got = avsg_pool_import(desc.as_ptr(), 112, null.as_raw_fd(), READER, &mut pool);
        expect_error(got, AVSG_INVALID, &["pool file is 0 bytes"]);
        let got = avsg_pool_import(desc.as_ptr(), 112, file.as_raw_fd(), 2, &mut pool);
        expect_error(got, AVSG_INVALID, &["role is 2"]);
        assert!(pool.is_null());
        expect_error(avsg_pool_send(handles.pool, -5), AVSG_INVALID, &["socket is -5"]);
        expect_error(avsg_pool_recv(1 << 20, READER, &mut pool), AVSG_OS, &["socket 1048576"]);
        // The engine appends to memory that a demotion would make read-only.
        expect_error(avsg_pool_demote(handles.pool), AVSG_BUSY, &["in use by an engine"]);
    }
    handles.destroy();
}

#[test]
fn a_pool_over_the_callers_memory_is_described_and_gathered_from() {
    // Each segment of each layer is a region of its own.
    let mut memory = [24, 16, 24, 16].map(|bytes| vec![0u8; ROWS * bytes]);
    let regions = memory.each_mut().map(|m| avsg_region {
        data: m.as_mut_ptr().cast(),
        bytes: m.len(),
        device_address: 0,
    });
    let parts = [0, 1, 2, 3].map(|region| avsg_pool_part {
        region,
        offset: 0,
        segment: region % 2,
        first_layer: region / 2,
        layers: 1,
        layer_stride: 0,
        first_row: 0,
        rows: ROWS,
    });
    let mut layout: avsg_pool_layout = sized();
    layout.row_stride = [24, 16, 0, 0];
    (layout.regions, layout.region_count) = (regions.as_ptr(), 4);
    (layout.parts, layout.part_count) = (parts.as_ptr(), 4);
    let config = avsg_pool_config { layout: &layout, ..pool_config() };
    let (mut pool, mut sizes) = (null_mut(), sized::<avsg_memory>());
    // SAFETY: the out-pointers are local variables, and `memory` lives until pool and engine are
    // destroyed.
    unsafe {
        ok(avsg_get_memory(null(), &config, 0, 0, 0, &mut sizes));
        assert_eq!(sizes.pool, 0, "the pool takes no memory");
        ok(avsg_pool_create(&config, &mut pool));
        let mut handles = Handles::from_raw(pool, null_mut(), null_mut());
        (0..ROWS).for_each(|i| handles.write_row(0, i, &row(0, i)));
        let (mut info, mut at, mut count) = (sized::<avsg_pool_info>(), null_mut(), 0);
        ok(avsg_pool_get_info(pool, &mut info));
        assert_eq!((info.row_bytes, info.role), (ROW, WRITER));
        assert_eq!(info.pages, avsg_pages::AVSG_PAGES_CALLER as i32);
        let mut chunks = [avsg_chunk { data: null_mut(), bytes: 0 }; 4];
        ok(avsg_pool_get_chunks(pool, chunks.as_mut_ptr(), 4, &mut count));
        assert_eq!(count, info.chunks);
        let pages = |r: &avsg_region, c: &avsg_chunk| {
            let (begin, end) = (c.data.addr(), c.data.addr() + c.bytes);
            begin % 4096 == 0
                && (begin..end).contains(&r.data.addr())
                && r.data.addr() + r.bytes <= end
        };
        assert!(regions.iter().all(|region| chunks[..count].iter().any(|c| pages(region, c))));
        ok(avsg_pool_get_row(pool, 0, 1, 3, &mut at));
        assert_eq!(at.addr(), regions[1].data.addr() + 3 * 16);
        expect_error(avsg_pool_get_row(pool, 0, 0, ROWS, &mut at), AVSG_INVALID, &["row is 128"]);
        assert!(at.is_null());
        let mut bytes_read = [0u8; ROW];
        ok(avsg_pool_read_row(pool, 0, 7, bytes_read.as_mut_ptr().cast(), ROW));
        assert_eq!(bytes_read, row(0, 7));
        let (mut fd, mut desc) = (0, [0; AVSG_POOL_DESC_BYTES]);
        let status = avsg_pool_export(pool, desc.as_mut_ptr(), 112, &mut fd);
        expect_error(status, AVSG_INVALID, &["caller's memory"]);

        ok(avsg_engine_create(&engine_config(), pool, &mut handles.engine));
        ok(avsg_plan_create(handles.engine, 4, 2, &mut handles.plan));
        let owned = Arrays::new(5);
        ok(handles.step(&owned, 0));
        assert_eq!(handles.expect_exact(&owned, 0), 32);
        handles.destroy();
        drop(memory);
    }
}

#[test]
fn the_chunks_of_a_pool_are_listed_in_the_order_of_layers_and_segments() {
    let config = avsg_pool_config { chunk_bytes: usize::MAX, ..pool_config() };
    let (mut pool, mut at, mut count) = (null_mut(), null_mut(), 0);
    let mut chunks = [avsg_chunk { data: null_mut(), bytes: 0 }; 4];
    // SAFETY: the array has the length beside it, and the out-pointers are local variables.
    unsafe {
        ok(avsg_pool_create(&config, &mut pool));
        ok(avsg_pool_get_chunks(pool, null_mut(), 0, &mut count));
        assert_eq!(count, 4);
        let status = avsg_pool_get_chunks(pool, chunks.as_mut_ptr(), 3, &mut count);
        expect_error(status, AVSG_INVALID, &["capacity is 3", "there are 4"]);
        ok(avsg_pool_get_chunks(pool, chunks.as_mut_ptr(), 4, &mut count));
        for (n, chunk) in chunks.iter().enumerate() {
            ok(avsg_pool_get_row(pool, n / 2, n % 2, 0, &mut at));
            assert_eq!(at, chunk.data);
            assert!(chunk.bytes >= ROWS * [24, 16][n % 2]);
        }
    }
    ok(avsg_pool_destroy(pool));
}

#[test]
fn invalid_pool_configurations_are_refused() {
    let refuse = |change: &dyn Fn(&mut avsg_pool_config), expected, parts: &[&str]| {
        let (mut config, mut pool) = (pool_config(), null_mut());
        change(&mut config);
        // SAFETY: `config` is a struct of this version, and the out-pointer is a local variable.
        expect_error(unsafe { avsg_pool_create(&config, &mut pool) }, expected, parts);
        assert!(pool.is_null());
    };
    refuse(&|c| c.layers = 0, AVSG_INVALID, &["layers is 0"]);
    refuse(&|c| c.rows = 1 << 50, AVSG_NO_MEMORY, &["host pool is", "available"]);
    refuse(&|c| c.rows = usize::MAX, AVSG_INVALID, &["address space"]);
    refuse(&|c| c.segments = 0, AVSG_INVALID, &["segment count is 0"]);
    refuse(&|c| c.segments = 5, AVSG_INVALID, &["segments is 5", "1 to 4"]);
    refuse(&|c| c.segment_bytes[1] = 0, AVSG_INVALID, &["segment bytes is 0"]);
    refuse(&|c| c.segment_stride[0] = 23, AVSG_INVALID, &["segment stride is 23"]);
    refuse(&|c| c.chunk_bytes = 23, AVSG_INVALID, &["chunk bytes is 23"]);
    refuse(&|c| c.pages = 5, AVSG_INVALID, &["pages is 5"]);
    refuse(&|c| c.reserved = 1, AVSG_INVALID, &["reserved is 1"]);
    refuse(&|c| c.size = 8, AVSG_SIZE, &["avsg_pool_config.size is 8"]);
    let layout = avsg_pool_layout { size: 8, ..sized() };
    refuse(&|c| c.layout = &layout, AVSG_SIZE, &["avsg_pool_layout.size is 8"]);
}
