//! What is written is read back, by every way to read it.

use avsg::disk::PoolFile;
use avsg::indexers::Indexers;
use avsg::pool::{HostPool, PoolConfig, Role};
use avsg_testkit::scratch::Scratch;

use super::{bytes_of, check_all, check_row, config, expect_error, write};

const ROWS: usize = 100;

#[test]
fn rows_are_read_back_by_every_way() {
    let folder = Scratch::new();
    let uneven = Indexers::of_layers(&[0, 1, 0, 1, 1]).unwrap();
    for (layers, segments, indexers) in [
        (1, &[1152][..], Indexers::default()),
        (3, &[1024, 128], Indexers::default()),
        (5, &[100, 7, 33], uneven),
        (4, &[512], Indexers::of_layers(&[0, 1, 2, 3]).unwrap()),
    ] {
        for (buffered, io_uring) in [(false, true), (true, true), (false, false), (true, false)] {
            // The queue holds 8 records, so that most are written with missing layers.
            let file = PoolFile { queue_bytes: 1, ..PoolFile::new(folder.path()) };
            let file = PoolFile { buffered, io_uring, ..file };
            let mut config = config(layers, ROWS, segments, file);
            config.indexers = indexers.clone();
            let pool = HostPool::new(&config).unwrap();
            assert!(pool.bytes() <= HostPool::plan_bytes(&config).unwrap());
            let bytes: usize = segments.iter().sum();
            write(&pool, 0..ROWS, 0).unwrap();
            let stats = pool.store().unwrap().stats();
            check_all(&pool, |_, _| 0);
            assert_eq!(stats.rows_appended, (layers * ROWS) as u64);
            assert!(
                stats.written_bytes <= pool.store().unwrap().info().file_bytes,
                "each record is written once"
            );
            for layer in (0..layers).rev() {
                for row in (0..ROWS).step_by(2) {
                    pool.write_row(layer, row, &bytes_of(layer, row, 1, bytes)).unwrap();
                }
            }
            for row in 0..ROWS {
                (0..layers).for_each(|layer| check_row(&pool, layer, row, 1 - row % 2));
            }
            check_all(&pool, |_, row| 1 - row % 2);
            pool.flush().unwrap();
            check_all(&pool, |_, row| 1 - row % 2);
        }
    }
    assert_eq!(folder.count(), 0, "private files have no name");
}

/// Returns the bytes of rows of some layers as a range call has them.
fn range_of(layers: &[usize], rows: std::ops::Range<usize>, version: usize) -> Vec<u8> {
    let all = layers.iter().flat_map(|&layer| rows.clone().map(move |row| (layer, row)));
    all.flat_map(|(layer, row)| bytes_of(layer, row, version, 1152)).collect()
}

#[test]
fn neighbouring_rows_are_written_and_read_by_large_operations() {
    const MANY: usize = 6144;
    let folder = Scratch::new();
    for io_uring in [true, false] {
        let file = PoolFile { io_uring, ..PoolFile::new(folder.path()) };
        // A read of all rows has two lists.
        let pool = HostPool::new(&config(1, MANY, &[1152], file)).unwrap();
        // One by one, and by ranges.
        write(&pool, 0..1024, 0).unwrap();
        for first in (1024..MANY).step_by(512) {
            pool.write_rows(&[0], first, &range_of(&[0], first..first + 512, 0)).unwrap();
        }
        pool.flush().unwrap();
        let (stats, record) =
            (pool.store().unwrap().stats(), pool.store().unwrap().info().record_bytes);
        assert!(stats.writes <= 32, "{} writes of {MANY} rows", stats.writes);
        assert_eq!(stats.written_bytes, (MANY * record) as u64);
        pool.write_row(0, 7, &bytes_of(0, 7, 1, 1152)).unwrap();
        let mut read = vec![0; MANY * 1152];
        pool.read_rows(&[0], 0, &mut read).unwrap();
        let mut expected = range_of(&[0], 0..MANY, 0);
        expected[7 * 1152..8 * 1152].copy_from_slice(&bytes_of(0, 7, 1, 1152));
        assert!(read == expected);
        assert!(pool.store().unwrap().stats().reads <= 16);
    }
    // A layer of a chunk, 1.5 MiB, is one operation, also when the queue is full.
    let mut layers = config(6, 2048, &[1152], PoolFile::new(folder.path()));
    layers.indexers = Indexers::of_layers(&[0, 1, 2, 3, 4, 5]).unwrap();
    let pool = HostPool::new(&layers).unwrap();
    for (first, layer) in [0, 1024].into_iter().flat_map(|first| (0..6).map(move |of| (first, of)))
    {
        let rows = range_of(&[layer], first..first + 1024, 0);
        pool.write_rows(&[layer], first, &rows).unwrap();
    }
    pool.flush().unwrap();
    let writes = pool.store().unwrap().stats().writes;
    assert!(writes <= 14, "{writes} writes of 12 runs");
}

#[test]
fn records_that_are_written_layer_by_layer_are_read_by_none() {
    let folder = Scratch::new();
    let file = PoolFile { keep: true, queue_bytes: 4 << 20, ..PoolFile::new(folder.file("rows")) };
    let config = config(8, 300, &[1152], file);
    drop(HostPool::new(&config).unwrap());
    // Any row of a file that was opened may be there.
    let pool = HostPool::open(&config).unwrap();
    for layer in 0..8 {
        pool.write_rows(&[layer], 20, &range_of(&[layer], 20..276, 0)).unwrap();
    }
    pool.flush().unwrap();
    let stats = pool.store().unwrap().stats();
    assert_eq!(stats.written_bytes, 256 * pool.store().unwrap().info().record_bytes as u64);
    assert!(stats.reads == 0 && stats.writes <= 16, "{stats:?}");
    for layers in [&[0, 1, 2, 3, 4, 5, 6, 7][..], &[5], &[7, 2, 0]] {
        let mut read = vec![0; layers.len() * 256 * 1152];
        pool.read_rows(layers, 20, &mut read).unwrap();
        assert!(read == range_of(layers, 20..276, 0), "layers {layers:?}");
    }
    let lost = pool.read_rows(&[3], 270, &mut vec![0; 10 * 1152]);
    expect_error(lost, &["row 276 of layer 3 is not whole"]);
    expect_error(pool.write_rows(&[3], 0, &[0; 1153]), &["1153 bytes", "whole rows"]);
    expect_error(pool.write_rows(&[3], 299, &vec![0; 2304]), &["row is 300"]);
    expect_error(pool.read_rows(&[0, 8], 0, &mut [0; 2304]), &["layer is 8"]);
}

#[test]
fn a_queue_of_writes_has_room_for_a_chunk_of_records_or_a_bound_in_bytes_which_memory_counts() {
    let folder = Scratch::new();
    let of = |queue_bytes| {
        config(1, 9000, &[1152], PoolFile { queue_bytes, ..PoolFile::new(folder.path()) })
    };
    let pool = HostPool::new(&of(4 << 20)).unwrap();
    let info = pool.store().unwrap().info();
    assert!(info.queue_records > 1024 && info.queue_bytes <= 4 << 20);
    assert_eq!(pool.bytes(), info.queue_bytes);
    assert!(HostPool::plan_bytes(&of(4 << 20)).unwrap() >= 4 << 20);
    let default = |layers, bytes| config(layers, 9, &[bytes], PoolFile::new(folder.path()));
    let info = HostPool::new(&default(12, 1152)).unwrap().store().unwrap().info();
    assert_eq!(info.queue_records, 1024, "a chunk of tokens, layer by layer");
    for (layers, bytes, least) in [(1, 1152, 8 << 20), (61, 9999, 256 << 20)] {
        let planned = HostPool::plan_bytes(&default(layers, bytes)).unwrap();
        assert!((least..least * 5 / 4).contains(&planned), "{planned} bytes");
    }
    let most = 256 << 20;
    HostPool::plan_bytes(&of(most)).unwrap();
    expect_error(HostPool::new(&of(most + 1)), &["queue_bytes is 268435457", "at most 268435456"]);
}

#[test]
fn what_only_memory_has_is_refused_by_name() {
    let folder = Scratch::new();
    let mut pool = HostPool::new(&config(2, 10, &[64], PoolFile::new(folder.path()))).unwrap();
    expect_error(pool.view(0, 0), &["no address in memory"]);
    expect_error(pool.write_row(0, 10, &[0; 64]), &["row is 10"]);
    expect_error(pool.write_row(0, 0, &[0; 63]), &["63 bytes"]);
    pool.demote().unwrap();
    expect_error(pool.stored(Role::Writer), &["only the writer writes rows"]);
    expect_error(pool.write_row(0, 0, &[0; 64]), &["only the writer writes rows"]);
    let memory = HostPool::new(&PoolConfig::new(1, 1, pool.format().clone())).unwrap();
    assert!(memory.store().is_none());
    memory.flush().unwrap();
}

#[test]
fn a_range_of_layers_has_the_rows_of_a_record_that_is_partly_in_the_queue() {
    let folder = Scratch::new();
    let pool = HostPool::new(&config(2, 8, &[64], PoolFile::new(folder.path()))).unwrap();
    write(&pool, 0..8, 0).unwrap();
    pool.flush().unwrap();
    pool.write_row(0, 5, &bytes_of(0, 5, 1, 64)).unwrap();
    check_all(&pool, |layer, row| usize::from((layer, row) == (0, 5)));
}
