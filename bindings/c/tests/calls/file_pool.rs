//! Pools whose rows are in a file, through C: steps are exact, and rows have no address. The random calls of
//! `fuzz` open kept files again and lose rows.

use std::ptr::null_mut;

use avsg::disk::PoolFile;
use avsg_capi::avsg_status::*;
use avsg_capi::*;
use avsg_capi_testkit::device::c_path;
use avsg_capi_testkit::*;
use avsg_testkit::scratch::{Scratch, adapted};

fn info_of(pool: *const avsg_pool) -> avsg_pool_info {
    // SAFETY: the struct has its `size` set.
    filled(|to| unsafe { avsg_pool_get_info(pool, to) })
}

#[test]
fn steps_are_exact_and_a_private_file_leaves_nothing_behind() {
    let folder = Scratch::new();
    let paths = [c_path(folder.path()), c_path(&folder.file("rows"))];
    let no_direct = i32::from(adapted(PoolFile::new(folder.path())).buffered);
    for (indexers, buffered, keep) in [([0, 0], 0, 1), ([0, 1], 0, 0), ([0, 0], 1, 0)] {
        let (path, buffered) = (paths[keep as usize].as_ptr(), buffered | no_direct);
        let mut file = avsg_pool_file { path, keep, buffered, ..sized() };
        (file.layer_indexer, file.layer_indexers) = (indexers.as_ptr(), 2);
        let mut config = engine_config();
        (config.layer_indexer, config.layer_indexers) = (indexers.as_ptr(), 2);
        let of_pool = avsg_pool_config { file: &file, ..pool_config() };
        let handles = Handles::create(&of_pool, &config);
        assert_eq!(folder.count(), keep as usize, "a private file has no name");
        if indexers == [0, 0] {
            for step in 0..4 {
                ok(handles.step(&Arrays::new(step), 0));
                assert_eq!(handles.expect_exact(&Arrays::new(step), 0), 32);
            }
        }
        let info = info_of(handles.pool);
        let own_rows = if indexers == [0, 0] { 2 } else { 1 };
        let bytes = own_rows * (ROW + 8);
        assert_eq!(info.record_bytes, bytes.next_multiple_of(info.block_bytes));
        assert!((info.padding - (1.0 - bytes as f64 / info.record_bytes as f64)).abs() < 1e-9);
        let records = ROWS * 2 / own_rows;
        assert!(info.file_bytes >= (records * info.record_bytes) as u64);
        assert!([1, 2].contains(&info.io));
        assert_eq!((info.chunks, info.huge_bytes), (0, 0));
        let (mut at, mut fd, mut desc) = (null_mut(), 0, [0; AVSG_POOL_DESC_BYTES]);
        // SAFETY: the out-pointers are local variables, and the array has the length beside it.
        unsafe {
            let status = avsg_pool_get_row(handles.pool, 0, 0, 0, &mut at);
            expect_error(status, AVSG_INVALID, &["pool is in a file"]);
            let status = avsg_pool_export(handles.pool, desc.as_mut_ptr(), desc.len(), &mut fd);
            expect_error(status, AVSG_INVALID, &["pool is in a file"]);
        }
        assert!(at.is_null() && fd == -1);
        ok(avsg_pool_flush(handles.pool));
        let info = info_of(handles.pool);
        assert!(info.writes > 0 && info.written_bytes >= info.record_bytes as u64);
        handles.destroy();
        if keep == 1 {
            let mut pool = null_mut();
            // SAFETY: the structs have their `size` set, and the string is alive.
            let status = unsafe { avsg_pool_create(&of_pool, &mut pool) };
            assert_ne!(status, AVSG_OK, "an existing file is not overwritten");
            expect_error(status, status, &["rows"]);
            // SAFETY: as above.
            ok(unsafe { avsg_pool_open(&file, &mut pool) });
            let info = info_of(pool);
            assert_eq!((info.layers, info.rows, info.segments), (2, ROWS, 2));
            assert_eq!(info.row_bytes, ROW);
            ok(avsg_pool_destroy(pool));
            std::fs::remove_file(folder.file("rows")).unwrap();
        }
        assert_eq!(folder.count(), 0);
    }
}

#[test]
fn a_session_is_what_its_last_commit_gave_after_the_file_is_opened_again() {
    let folder = Scratch::new();
    let path = c_path(&folder.file("rows"));
    let buffered = i32::from(adapted(PoolFile::new(folder.path())).buffered);
    let mut file = avsg_pool_file { path: path.as_ptr(), keep: 1, buffered, ..sized() };
    (file.sessions, file.session_rows, file.session_bytes, file.token_bytes) = (2, 4, 9, 4);
    let config = avsg_pool_config { file: &file, ..pool_config() };
    let (mut pool, layers, ids) = (null_mut(), [0, 1], [7i32, 8, 9]);
    let (mut blocks, mut rows) = ([5i32, 0], [1u8; 2 * 3 * ROW]);
    let (mut text, mut read) = (*b"a prompt.", [0i32; 3]);
    let data = text.as_mut_ptr().cast();
    let all = avsg_session { length: 3, blocks: blocks.as_mut_ptr(), block_count: 1, ..sized() };
    let all = avsg_session { data, bytes: 9, ..all };
    // SAFETY: the structs have their `size` set, and each array has the length beside it.
    unsafe {
        ok(avsg_pool_create(&config, &mut pool));
        ok(avsg_pool_write_rows(pool, layers.as_ptr(), 2, 20, rows.as_ptr().cast(), rows.len()));
        expect_error(
            avsg_pool_commit_session(pool, 1, &all),
            AVSG_LOST_ROWS,
            &["row 20", "the data of its token"],
        );
        ok(avsg_pool_write_tokens(pool, 20, ids.as_ptr().cast(), 12));
        ok(avsg_pool_commit_session(pool, 1, &all));
        ok(avsg_pool_destroy(pool));
        (file.sessions, file.session_rows) = (0, 0);
        ok(avsg_pool_open(&file, &mut pool));
        let info = info_of(pool);
        let sizes = (info.sessions, info.session_rows, info.session_bytes, info.token_bytes);
        assert_eq!(sizes, (2, 4, 9, 4));
        let mut found: avsg_session = sized();
        ok(avsg_pool_get_session(pool, 1, &mut found));
        assert_eq!((found.length, found.block_count, found.bytes), (3, 1, 9));
        (found.block_count, found.data, found.bytes) = (0, data, 8);
        let status = avsg_pool_get_session(pool, 1, &mut found);
        expect_error(status, AVSG_INVALID, &["bytes", "9"]);
        text.fill(0);
        blocks.fill(0);
        let mut found = avsg_session { block_count: 2, ..all };
        ok(avsg_pool_get_session(pool, 1, &mut found));
        assert!(blocks == [5, 0] && found.block_count == 1 && text == *b"a prompt.");
        ok(avsg_pool_read_tokens(pool, 20, read.as_mut_ptr().cast(), 12));
        assert_eq!(read, ids);
        let at = rows.as_mut_ptr().cast();
        ok(avsg_pool_read_rows(pool, layers.as_ptr(), 2, 20, at, rows.len()));
        assert!(rows == [1; 2 * 3 * ROW]);
        let status = avsg_pool_write_row(pool, 0, 22, rows.as_ptr().cast(), ROW);
        expect_error(status, AVSG_INVALID, &["a session keeps the first 3 rows of block 5"]);
        expect_error(avsg_pool_get_session(pool, 2, &mut found), AVSG_INVALID, &["session is 2"]);
        ok(avsg_pool_destroy(pool));
    }
}
