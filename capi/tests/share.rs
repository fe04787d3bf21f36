//! One pool in two processes through the C ABI: the writer appends, the reader gathers, also when the writer
//! has died. And pools over the caller's memory.

#[path = "c_side/c.rs"]
mod c;

use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::ptr::{null, null_mut};

use avsg_capi::avsg_status::*;
use avsg_capi::*;
use c::*;

/// Set for the second process, which is this binary again.
const CHILD: &str = "AVSG_CAPI_SHARE_WRITER";
const READER: i32 = avsg_role::AVSG_ROLE_READER as i32;
const WRITER: i32 = avsg_role::AVSG_ROLE_WRITER as i32;

/// The writer: sends its pool, then steps and appends whenever it is told to, two rows from 100 on.
#[test]
fn writer() {
    if std::env::var(CHILD).is_err() {
        return;
    }
    let mut socket = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned().unwrap());
    let life = Life::new();
    // Rows that only an append can bring back.
    for at in 100..ROWS {
        life.write_row(0, at, &[0xEE; ROW]);
    }
    ok(avsg_pool_send(life.pool, socket.as_raw_fd()));
    let mut order = [0];
    while socket.read_exact(&mut order).is_ok() {
        let owned = step(i32::from(order[0]));
        ok(life.step(&owned, 0));
        assert_eq!(life.expect_exact(&owned, 0), 32);
        // SAFETY: `owned` keeps the arrays.
        ok(unsafe {
            avsg_engine_append(life.engine, &owned.batch(), 0, &owned.fresh(), null_mut())
        });
        socket.write_all(&order).unwrap();
    }
}

/// The batch of a step whose second request makes the rows 100 + 2 n and the next.
fn step(n: i32) -> Arrays {
    let mut owned = Arrays::new(n);
    let stable = 100 + 2 * n;
    owned.decode_at(stable);
    owned.ids[16..18].copy_from_slice(&[stable, stable + 1]);
    owned
}

/// The reader's step: what the writer's n steps appended, from the pool.
fn gather(life: &Life, n: i32) {
    let mut owned = step(n);
    owned.stable = vec![-1, -1];
    ok(life.step(&owned, 0));
    assert_eq!(life.expect_exact(&owned, 0), 32);
}

#[test]
fn a_reader_gathers_what_the_writer_appends_and_outlives_it() {
    let (mut here, there) = UnixStream::pair().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "writer", "--test-threads=1"])
        .env(CHILD, "1")
        .stdin(Stdio::from(OwnedFd::from(there)))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut life = Life::of(null_mut(), null_mut(), null_mut());
    let (mut fd, mut desc) = (-1, [0; AVSG_POOL_DESC_BYTES]);
    // SAFETY: places for results, structs with their sizes.
    unsafe {
        ok(avsg_pool_recv(here.as_raw_fd(), READER, &mut life.pool));
        ok(avsg_pool_export(life.pool, desc.as_mut_ptr(), desc.len(), &mut fd));
        ok(avsg_engine_create(&engine_config(), life.pool, &mut life.engine));
        ok(avsg_plan_create(life.engine, 4, 2, &mut life.plan));
    }
    let mut answer = [0];
    for n in 0..14u8 {
        here.write_all(&[n]).unwrap();
        here.read_exact(&mut answer).unwrap();
        gather(&life, n.into());
    }
    // A reader does not write, and there is one writer.
    let owned = step(0);
    let (mut second, mut at) = (null_mut(), null_mut());
    // SAFETY: as above.
    unsafe {
        let (batch, fresh) = (owned.batch(), owned.fresh());
        let status = avsg_engine_append(life.engine, &batch, 0, &fresh, null_mut());
        fails(status, AVSG_INVALID, &["pool role is reader"]);
        let bytes = row(0, 1);
        let status = avsg_pool_write_row(life.pool, 0, 1, bytes.as_ptr().cast(), ROW);
        fails(status, AVSG_INVALID, &["only the writer"]);
        fails(avsg_pool_row_mut(life.pool, 0, 0, 1, &mut at), AVSG_INVALID, &["only the writer"]);
        let status = avsg_pool_import(desc.as_ptr(), desc.len(), fd, WRITER, &mut second);
        fails(status, AVSG_INVALID, &["has a writer"]);
    }
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success(), "it was killed in the middle of its life");
    (0..14).rev().for_each(|n| gather(&life, n));
    // SAFETY: as above; `fd` is the export's and closed here once.
    unsafe {
        ok(avsg_pool_import(desc.as_ptr(), desc.len(), fd, WRITER, &mut second));
        drop(OwnedFd::from_raw_fd(fd));
        let bytes = row(0, 5);
        ok(avsg_pool_write_row(second, 0, 5, bytes.as_ptr().cast(), ROW));
        ok(avsg_pool_demote(second));
        fails(
            avsg_pool_write_row(second, 0, 5, bytes.as_ptr().cast(), ROW),
            AVSG_INVALID,
            &["only the writer"],
        );
    }
    ok(avsg_pool_destroy(second));
    life.end();
}

#[test]
fn files_and_descriptors_that_are_none() {
    let life = Life::new();
    let (mut fd, mut desc, mut pool) = (7, [0; AVSG_POOL_DESC_BYTES], null_mut());
    // SAFETY: places for results of the stated lengths.
    unsafe {
        let status = avsg_pool_export(life.pool, desc.as_mut_ptr(), 111, &mut fd);
        fails(status, AVSG_INVALID, &["desc_bytes is 111", "112"]);
        assert_eq!(fd, -1);
        let status = avsg_pool_export(life.pool, null_mut(), 112, &mut fd);
        fails(status, AVSG_NULL, &["desc is NULL"]);
        fails(
            avsg_pool_import(desc.as_ptr(), 112, 0, READER, &mut pool),
            AVSG_INVALID,
            &["pool descriptor", "version"],
        );
        ok(avsg_pool_export(life.pool, desc.as_mut_ptr(), 112, &mut fd));
        let file = OwnedFd::from_raw_fd(fd);
        for (fd, status, part) in [
            (-1, AVSG_INVALID, "fd is -1"),
            (1 << 20, AVSG_OS, "fd 1048576 could not be duplicated"),
        ] {
            let got = avsg_pool_import(desc.as_ptr(), 112, fd, READER, &mut pool);
            fails(got, status, &[part]);
        }
        let null = std::fs::File::open("/dev/null").unwrap();
        let got = avsg_pool_import(desc.as_ptr(), 112, null.as_raw_fd(), READER, &mut pool);
        fails(got, AVSG_INVALID, &["pool file is 0 bytes"]);
        let got = avsg_pool_import(desc.as_ptr(), 112, file.as_raw_fd(), 2, &mut pool);
        fails(got, AVSG_INVALID, &["role is 2"]);
        assert!(pool.is_null());
        fails(avsg_pool_send(life.pool, -5), AVSG_INVALID, &["socket is -5"]);
        fails(avsg_pool_recv(1 << 20, READER, &mut pool), AVSG_OS, &["socket 1048576"]);
        // An engine's memory would become read-only under it.
        fails(avsg_pool_demote(life.pool), AVSG_BUSY, &["in use by an engine"]);
    }
    life.end();
}

#[test]
fn the_callers_memory() {
    let mut config = pool_config();
    let (mut count, mut pool) = (0, null_mut());
    // SAFETY: places for results; the chunks are the vectors' memory, which outlives pool and engine.
    unsafe {
        config.chunk_bytes = usize::MAX;
        ok(avsg_pool_chunk_bytes(&config, null_mut(), 0, &mut count));
        assert_eq!(count, 4);
        let mut bytes = vec![0; count];
        let status = avsg_pool_chunk_bytes(&config, bytes.as_mut_ptr(), 3, &mut count);
        fails(status, AVSG_INVALID, &["capacity is 3", "there are 4"]);
        ok(avsg_pool_chunk_bytes(&config, bytes.as_mut_ptr(), 4, &mut count));
        let mut memory: Vec<Vec<u64>> = bytes.iter().map(|&n| vec![0; n / 8]).collect();
        let chunks: Vec<avsg_chunk> = memory
            .iter_mut()
            .map(|m| avsg_chunk { data: m.as_mut_ptr().cast(), bytes: m.len() * 8 })
            .collect();
        let status = avsg_pool_from_memory(&config, chunks.as_ptr(), 3, &mut pool);
        fails(status, AVSG_INVALID, &["count is 3", "has 4 chunks"]);
        let mut short = chunks.clone();
        short[2].bytes -= 1;
        let status = avsg_pool_from_memory(&config, short.as_ptr(), 4, &mut pool);
        fails(status, AVSG_INVALID, &["chunk length is"]);
        short[2].data = null_mut();
        let status = avsg_pool_from_memory(&config, short.as_ptr(), 4, &mut pool);
        fails(status, AVSG_NULL, &["chunks[].data is NULL"]);
        let status = avsg_pool_from_memory(&config, null(), 4, &mut pool);
        fails(status, AVSG_NULL, &["chunks is NULL"]);

        ok(avsg_pool_from_memory(&config, chunks.as_ptr(), 4, &mut pool));
        let mut life = Life::of(pool, null_mut(), null_mut());
        (0..ROWS).for_each(|at| life.write_row(0, at, &row(0, at)));
        let (mut info, mut at) = (sized::<avsg_pool_info>(), null());
        ok(avsg_pool_get_info(pool, &mut info));
        assert_eq!((info.chunks, info.row_bytes, info.role), (4, ROW, WRITER));
        assert_eq!(info.pages, avsg_pages::AVSG_PAGES_CALLER as i32);
        ok(avsg_pool_row(pool, 0, 1, 3, &mut at));
        assert_eq!(at.addr(), chunks[1].data.addr() + 3 * 16);
        fails(avsg_pool_row(pool, 0, 0, ROWS, &mut at), AVSG_INVALID, &["row is 128"]);
        assert!(at.is_null());
        let mut back = [0u8; ROW];
        ok(avsg_pool_read_row(pool, 0, 7, back.as_mut_ptr().cast(), ROW));
        assert_eq!(back, row(0, 7));
        let (mut fd, mut desc) = (0, [0; AVSG_POOL_DESC_BYTES]);
        let status = avsg_pool_export(pool, desc.as_mut_ptr(), 112, &mut fd);
        fails(status, AVSG_INVALID, &["caller's memory"]);

        ok(avsg_engine_create(&engine_config(), pool, &mut life.engine));
        ok(avsg_plan_create(life.engine, 4, 2, &mut life.plan));
        let owned = Arrays::new(5);
        ok(life.step(&owned, 0));
        assert_eq!(life.expect_exact(&owned, 0), 32);
        life.end();
        drop(memory);
    }
    let refuse = |spoil: &dyn Fn(&mut avsg_pool_config), want, parts: &[&str]| {
        let (mut config, mut pool) = (pool_config(), null_mut());
        spoil(&mut config);
        // SAFETY: a struct with its size and a place.
        fails(unsafe { avsg_pool_create(&config, &mut pool) }, want, parts);
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
}
