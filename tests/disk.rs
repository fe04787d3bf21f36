//! Pools whose rows are in a file: what is written is read back, by every way to read it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use avsg::disk::{PoolFile, Reader, Store};
use avsg::indexers::Indexers;
use avsg::pool::{HostPool, PoolConfig};
use avsg::rows::RowFormat;

/// A folder that is removed with what is in it.
struct Folder(PathBuf);

impl Folder {
    /// Makes a folder in the target folder, whose file system has O_DIRECT more often than that of /tmp.
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("disk-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn config(layers: usize, rows: usize, segments: &[usize], file: PoolFile) -> PoolConfig {
    let format = RowFormat::segments(segments).unwrap();
    PoolConfig { file: Some(file), ..PoolConfig::new(layers, rows, format) }
}

fn bytes_of(layer: usize, row: usize, version: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| (layer * 131 + row * 31 + version * 57 + i * 7 + i / 251) as u8).collect()
}

/// Reads all rows through a reader and checks them.
fn check_by_reader(store: &Arc<Store>, versions: impl Fn(usize, usize) -> usize) {
    let layout = store.layout();
    for indexer in 0..layout.indexers() {
        let len = layout.record_bytes(indexer);
        let mut memory = vec![0u8; layout.rows() * len + 4096];
        let start = memory.as_ptr().align_offset(4096);
        let mut reader = Reader::new(store, layout.rows()).unwrap();
        // Backwards and in two halves, so that the reader sorts.
        let order: Vec<_> = (0..layout.rows())
            .rev()
            .step_by(2)
            .chain((0..layout.rows()).rev().skip(1).step_by(2))
            .collect();
        for &row in &order {
            // SAFETY: each record has its own place in `memory`, which lives until the end of the run.
            unsafe { reader.push(indexer, row, memory.as_mut_ptr().add(start + row * len)) }
                .unwrap();
        }
        let mut done = vec![0; order.len()];
        reader.run(&mut |n| done[n] += 1).unwrap();
        assert!(done.iter().all(|&times| times == 1));
        for layer in (0..layout.layers()).filter(|&layer| layout.indexer_of(layer) == indexer) {
            for row in 0..layout.rows() {
                let record = &memory[start + row * len..][..len];
                let expected = bytes_of(layer, row, versions(layer, row), layout.row_bytes());
                assert!(
                    store.row_in(record, layer, row).unwrap() == expected,
                    "layer {layer}, row {row}"
                );
            }
        }
    }
}

#[test]
fn rows_are_read_back_by_every_way() {
    let folder = Folder::new("back");
    for (layers, segments, indexers) in [
        (1, &[1152][..], Indexers::default()),
        (3, &[1024, 128], Indexers::default()),
        (5, &[100, 7, 33], Indexers::of_layers(&[0, 1, 0, 1, 1]).unwrap()),
        (4, &[512], Indexers::per_layer(4).unwrap()),
    ] {
        for (buffered, checksums, io_uring) in
            [(false, true, true), (true, false, true), (false, false, false), (true, true, false)]
        {
            let file = PoolFile { buffered, checksums, io_uring, ..PoolFile::new(&folder.0) };
            let pool =
                PoolConfig { indexers: indexers.clone(), ..config(layers, 300, segments, file) };
            let pool = HostPool::new(&pool).unwrap();
            let bytes: usize = segments.iter().sum();
            for row in 0..300 {
                for layer in 0..layers {
                    pool.write_row(layer, row, &bytes_of(layer, row, 0, bytes)).unwrap();
                }
            }
            let store = pool.store().unwrap();
            check_by_reader(store, |_, _| 0);
            // Layer by layer, many more than the queue holds, and some twice.
            for layer in (0..layers).rev() {
                for row in (0..300).step_by(2) {
                    pool.write_row(layer, row, &bytes_of(layer, row, 1, bytes)).unwrap();
                }
            }
            let mut read = vec![0; bytes];
            for row in 0..300 {
                for layer in 0..layers {
                    pool.read_row(layer, row, &mut read).unwrap();
                    assert!(
                        read == bytes_of(layer, row, 1 - row % 2, bytes),
                        "layer {layer}, row {row}"
                    );
                }
            }
            check_by_reader(store, |_, row| 1 - row % 2);
            pool.flush().unwrap();
            check_by_reader(store, |_, row| 1 - row % 2);
            println!(
                "{}; {:.0} bytes written per token",
                store.info(),
                store.stats().written_bytes_per_token(layers)
            );
        }
    }
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 0, "private files have no name");
}
