//! Pools through the C ABI: readers and one writer by a descriptor, and chunks.

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::ptr::null_mut;

use avsg_capi::avsg_status::*;
use avsg_capi::*;
use avsg_capi_testkit::device::context_of;
use avsg_capi_testkit::*;
use avsg_testkit::alone;

const READER: i32 = avsg_role::AVSG_ROLE_READER as i32;
const WRITER: i32 = avsg_role::AVSG_ROLE_WRITER as i32;

/// Exports a pool. Returns its descriptor and its file.
pub fn export(pool: *const avsg_pool) -> ([u8; AVSG_POOL_DESC_BYTES], OwnedFd) {
    let (mut desc, mut fd) = ([0; AVSG_POOL_DESC_BYTES], -1);
    // SAFETY: the array has the length beside it, and the open descriptor is nobody else's.
    unsafe {
        ok(avsg_pool_export(pool, desc.as_mut_ptr(), desc.len(), &mut fd));
        (desc, OwnedFd::from_raw_fd(fd))
    }
}

#[test]
fn a_pool_has_readers_and_one_writer_by_its_descriptor_and_lists_its_chunks() {
    let _turn = alone::turn();
    each_device(share);
}

/// Shares a pool of an engine on the CPU with a reader that has an engine on a device.
fn share(device: &'static CStr) {
    let config = avsg_pool_config { chunk_bytes: usize::MAX, ..pool_config() };
    let writer = Handles::create(&config, &engine_config());
    let (desc, file) = export(writer.pool);
    let (mut reader, mut successor, mut at) = (null_mut(), null_mut(), null_mut());
    let (bytes, mut count) = (row(0, 5), 0);
    let mut chunks = [avsg_chunk { data: null_mut(), bytes: 0 }; 4];
    let write = |pool| {
        // SAFETY: the array has the length beside it.
        unsafe { avsg_pool_write_row(pool, 0, 5, bytes.as_ptr().cast(), ROW) }
    };
    // SAFETY: the out-pointers are local variables, and the structs have their `size` set.
    unsafe {
        // A process that closes its standard input gets descriptor 0 for the next file that it opens.
        let input = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
        rustix::stdio::dup2_stdin(&file).unwrap();
        let status = avsg_pool_import(desc.as_ptr(), desc.len(), 0, READER, &mut reader);
        rustix::stdio::dup2_stdin(&input).unwrap();
        ok(status);
        let import_writer = |pool: &mut *mut avsg_pool| {
            avsg_pool_import(desc.as_ptr(), desc.len(), file.as_raw_fd(), WRITER, pool)
        };
        let info = filled(|to| avsg_pool_get_info(reader, to));
        assert_eq!((info.role, info.row_bytes), (READER, ROW));
        // The chunks are in the order of layers and segments.
        ok(avsg_pool_get_chunks(reader, null_mut(), 0, &mut count));
        assert_eq!(count, 4);
        let status = avsg_pool_get_chunks(reader, chunks.as_mut_ptr(), 3, &mut count);
        expect_error(status, AVSG_INVALID, &["capacity is 3", "there are 4"]);
        ok(avsg_pool_get_chunks(reader, chunks.as_mut_ptr(), 4, &mut count));
        for (n, chunk) in chunks.iter().enumerate() {
            ok(avsg_pool_get_row(reader, n / 2, n % 2, 0, &mut at));
            assert_eq!(at, chunk.data);
            assert!(chunk.bytes >= ROWS * [24, 16][n % 2]);
        }
        // A reader may not write, and a pool has only one writer.
        expect_error(write(reader), AVSG_INVALID, &["only the writer"]);
        ok(avsg_pool_get_row(reader, 0, 0, 1, &mut at));
        let mapped = std::slice::from_raw_parts(at.cast::<u8>(), 24);
        assert_eq!(mapped, &row(0, 1)[..24], "a reader reads in place");
        expect_error(import_writer(&mut successor), AVSG_INVALID, &["has a writer"]);
        // The reader gathers what the writer has appended, also when the writer is gone.
        let none = Handles::from_raw(reader, null_mut(), null_mut());
        let mut own = Handles { context: context_of(device), ..none };
        ok(avsg_engine_create(&config_on(device), reader, &mut own.engine));
        ok(avsg_plan_create(own.engine, 4, 2, &mut own.plan));
        let mut owned = Arrays::new(2);
        owned.ids[16..18].copy_from_slice(&[100, 101]);
        writer.write_row(0, 100, &[7; ROW]);
        ok(writer.append(&owned, &owned.rows, 0));
        let refused = own.append(&owned, &owned.rows, 0);
        expect_error(refused, AVSG_INVALID, &["append in the writer process"]);
        owned.stable[1] = -1;
        ok(own.step(&owned, 0));
        assert_eq!(own.expect_exact(&owned, 0), 4 * K);
        writer.destroy();
        ok(import_writer(&mut successor));
        ok(write(successor));
        ok(avsg_pool_demote(successor));
        expect_error(write(successor), AVSG_INVALID, &["only the writer"]);
        ok(own.step(&Arrays::new(3), 0));
        assert_eq!(own.expect_exact(&Arrays::new(3), 0), 4 * K);
        own.destroy();
    }
    ok(avsg_pool_destroy(successor));
}

#[test]
fn invalid_descriptors_files_and_roles_are_refused() {
    let _turn = alone::turn();
    let handles = Handles::on_cpu();
    let (mut fd, mut desc, mut pool) = (7, [0; 112], null_mut());
    // SAFETY: the out-pointers are local variables of the stated lengths.
    unsafe {
        let status = avsg_pool_export(handles.pool, desc.as_mut_ptr(), 111, &mut fd);
        expect_error(status, AVSG_INVALID, &["desc_bytes is 111", "112"]);
        assert_eq!(fd, -1);
        let status = avsg_pool_export(handles.pool, null_mut(), 112, &mut fd);
        expect_error(status, AVSG_NULL, &["desc is NULL"]);
        for (len, part) in [(112, "pool descriptor"), (111, "is 111"), (113, "desc_bytes is 113")] {
            let status = avsg_pool_import(desc.as_ptr(), len, 0, READER, &mut pool);
            expect_error(status, AVSG_INVALID, &[part]);
        }
        let (desc, file) = export(handles.pool);
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
        // The engine appends to memory that a demotion would make read-only.
        expect_error(avsg_pool_demote(handles.pool), AVSG_BUSY, &["in use by an engine"]);
    }
    handles.destroy();
}
