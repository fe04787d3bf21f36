//! What is written is read back, by every way to read it.

use avsg::disk::PoolFile;
use avsg::indexers::Indexers;
use avsg::pool::{HostPool, PoolConfig};
use avsg_testkit::scratch::Scratch;

use super::{bytes_of, check_by_reader, check_row, config, expect_error, write, write_and_flush};

const ROWS: usize = 100;

#[test]
fn rows_are_read_back_by_every_way() {
    let folder = Scratch::new();
    let uneven = Indexers::of_layers(&[0, 1, 0, 1, 1]).unwrap();
    for (layers, segments, indexers) in [
        (1, &[1152][..], Indexers::default()),
        (3, &[1024, 128], Indexers::default()),
        (5, &[100, 7, 33], uneven),
        (4, &[512], Indexers::per_layer(4).unwrap()),
    ] {
        for (buffered, io_uring) in [(false, true), (true, true), (false, false), (true, false)] {
            // The queue holds 8 records, so that most are written with missing layers.
            let file = PoolFile { queue_bytes: 0, ..PoolFile::new(folder.path()) };
            let file = PoolFile { buffered, io_uring, ..file };
            let mut config = config(layers, ROWS, segments, file);
            config.indexers = indexers.clone();
            let pool = HostPool::new(&config).unwrap();
            assert!(pool.bytes() <= HostPool::plan_bytes(&config).unwrap());
            let bytes: usize = segments.iter().sum();
            write(&pool, 0..ROWS, 0).unwrap();
            let (store, stats) = (pool.store().unwrap(), pool.disk_stats().unwrap());
            check_by_reader(store, |_, _| 0);
            assert_eq!(stats.rows_appended, (layers * ROWS) as u64);
            assert!(stats.written_bytes <= store.info().file_bytes, "each record is written once");
            for layer in (0..layers).rev() {
                for row in (0..ROWS).step_by(2) {
                    pool.write_row(layer, row, &bytes_of(layer, row, 1, bytes)).unwrap();
                }
            }
            for row in 0..ROWS {
                (0..layers).for_each(|layer| check_row(&pool, layer, row, 1 - row % 2));
            }
            check_by_reader(store, |_, row| 1 - row % 2);
            pool.flush().unwrap();
            check_by_reader(store, |_, row| 1 - row % 2);
        }
    }
    assert_eq!(folder.count(), 0, "private files have no name");
}

#[test]
fn a_token_of_61_layers_is_written_once() {
    let folder = Scratch::new();
    let pool = HostPool::new(&config(61, 64, &[1152], PoolFile::new(folder.path()))).unwrap();
    write_and_flush(&pool, 0..32, 0);
    let (info, stats) = (pool.disk_info().unwrap(), pool.disk_stats().unwrap());
    let per_token = stats.written_bytes_per_token(61);
    println!("{info}: {per_token} bytes written per token of {}", 61 * 1152);
    assert_eq!(stats.written_bytes, 32 * info.record_bytes as u64);
    // A prompt comes layer by layer, and fits the queue.
    let prompt = info.queue_records.min(30);
    for layer in 0..61 {
        for row in 32..32 + prompt {
            pool.write_row(layer, row, &bytes_of(layer, row, 0, 1152)).unwrap();
        }
    }
    pool.flush().unwrap();
    let whole = (32 + prompt) * info.record_bytes;
    assert_eq!(pool.disk_stats().unwrap().written_bytes, whole as u64);
}

#[test]
fn what_only_memory_has_is_refused_by_name() {
    let folder = Scratch::new();
    let mut pool = HostPool::new(&config(2, 10, &[64], PoolFile::new(folder.path()))).unwrap();
    assert!(pool.row_ptr(0, 0, 0).is_null() && pool.row_mut(0, 0, 0).is_null());
    expect_error(pool.view(0, 0), &["no address in memory"]);
    expect_error(pool.export(), &["in a file"]);
    assert_eq!(pool.chunks().len(), 0);
    let read = pool.read_row(1, 7, &mut [0; 64]);
    expect_error(read, &["row 7 of layer 1 is not whole"]);
    expect_error(pool.write_row(0, 10, &[0; 64]), &["row is 10"]);
    expect_error(pool.write_row(0, 0, &[0; 63]), &["63 bytes"]);
    pool.demote().unwrap();
    expect_error(pool.write_row(0, 0, &[0; 64]), &["only the writer writes rows"]);
    let memory = HostPool::new(&PoolConfig::new(1, 1, pool.format().clone())).unwrap();
    assert!(memory.store().is_none() && memory.disk_info().is_none());
    memory.flush().unwrap();
}
