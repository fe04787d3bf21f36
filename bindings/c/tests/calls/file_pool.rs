//! Pools whose rows are in a file, through C: what they tell, and that rows have no address. The random calls of
//! `fuzz` make steps over them, open kept files again and lose rows.

use std::ptr::null_mut;

use avsg::disk::PoolFile;
use avsg_capi::avsg_status::*;
use avsg_capi::*;
use avsg_capi_testkit::device::c_path;
use avsg_capi_testkit::*;
use avsg_testkit::scratch::{Scratch, adapted};

#[test]
fn a_pool_in_a_file_tells_of_its_records_and_its_rows_have_no_address() {
    let folder = Scratch::new();
    let paths = [c_path(folder.path()), c_path(&folder.file("rows"))];
    let buffered = adapted(PoolFile::new(folder.path())).buffered.into();
    for (indexers, own_rows, keep) in [([0, 1], 1, 0), ([0, 0], 2, 1)] {
        let path = paths[keep as usize].as_ptr();
        let mut file = avsg_pool_file { path, keep, buffered, ..sized() };
        (file.layer_indexer, file.layer_indexers) = (indexers.as_ptr(), 2);
        let mut config = engine_config();
        (config.layer_indexer, config.layer_indexers) = (indexers.as_ptr(), 2);
        let handles = Handles::create(&avsg_pool_config { file: &file, ..pool_config() }, &config);
        assert_eq!(folder.count(), keep as usize, "a private file has no name");
        ok(avsg_pool_flush(handles.pool));
        // SAFETY: the struct has its `size` set.
        let info = filled(|to| unsafe { avsg_pool_get_info(handles.pool, to) });
        assert_eq!((info.layers, info.rows, info.segments, info.row_bytes), (2, ROWS, 2, ROW));
        let bytes = own_rows * (ROW + 8);
        assert_eq!(info.record_bytes, bytes.next_multiple_of(info.block_bytes));
        assert!((info.padding - (1.0 - bytes as f64 / info.record_bytes as f64)).abs() < 1e-9);
        let records = ROWS * 2 / own_rows;
        assert!(info.file_bytes >= (records * info.record_bytes) as u64);
        assert!([1, 2].contains(&info.io));
        assert_eq!((info.chunks, info.huge_bytes), (0, 0));
        assert!(info.writes > 0 && info.written_bytes >= info.record_bytes as u64);
        let (mut at, mut fd, mut desc) = (null_mut(), 0, [0; AVSG_POOL_DESC_BYTES]);
        // SAFETY: the out-pointers are local variables, and the array has the length beside it.
        unsafe {
            let status = avsg_pool_get_row(handles.pool, 0, 0, 0, &mut at);
            expect_error(status, AVSG_INVALID, &["pool is in a file"]);
            let status = avsg_pool_export(handles.pool, desc.as_mut_ptr(), desc.len(), &mut fd);
            expect_error(status, AVSG_INVALID, &["pool is in a file"]);
        }
        assert!(at.is_null() && fd == -1);
        handles.destroy();
    }
}
