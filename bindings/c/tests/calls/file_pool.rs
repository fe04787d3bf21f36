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
