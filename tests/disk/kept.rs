//! A kept file is opened by what made it and by nothing else.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use avsg::disk::PoolFile;
use avsg::indexers::Indexers;
use avsg::pool::{HostPool, PoolConfig};
use avsg_testkit::faulty_disk::Faults;
use avsg_testkit::scratch::Scratch;

use super::{check_by_reader, check_row, config, expect_error, write};

const LAYERS: usize = 2;
const ROWS: usize = 50;
const BYTES: usize = 2040;
/// Two rows with checksums, in blocks of 512 or of 4096 bytes.
const RECORD: u64 = 4096;

fn kept(folder: &Scratch) -> PoolConfig {
    let file = PoolFile { keep: true, ..PoolFile::new(folder.file("rows")) };
    config(LAYERS, ROWS, &[1900, 140], file)
}

/// Changes one byte of a file.
fn damage(path: &Path, at: u64) {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 0x40], at).unwrap();
}

#[test]
fn flushed_rows_are_there_after_a_reopen_and_others_are_reported() {
    let folder = Scratch::new();
    let config = kept(&folder);
    let pool = HostPool::new(&config).unwrap();
    write(&pool, 0..40, 0).unwrap();
    pool.flush().unwrap();
    write(&pool, 10..20, 1).unwrap();
    pool.flush().unwrap();
    pool.flush().unwrap();
    write(&pool, 40..45, 0).unwrap();
    expect_error(HostPool::open(&config), &["takes one writer"]);
    drop(pool);

    let pool = HostPool::open(&config).unwrap();
    for (row, layer) in (0..ROWS).flat_map(|row| [(row, 0), (row, 1)]) {
        let result = pool.read_row(layer, row, &mut [0; BYTES]);
        // Rows 40 to 44 were written, and perhaps lost.
        if row < 40 || row < 45 && result.is_ok() {
            check_row(&pool, layer, row, usize::from((10..20).contains(&row)));
        } else {
            expect_error(result, &[&format!("row is {row} of layer {layer}")]);
        }
    }
    write(&pool, 0..ROWS, 3).unwrap();
    pool.flush().unwrap();
    drop(pool);
    let stored = PoolConfig::stored_in(config.file.as_ref().unwrap()).unwrap();
    let buffered = PoolFile { buffered: true, ..config.file.clone().unwrap() };
    let pool = HostPool::open(&PoolConfig { file: Some(buffered), ..stored }).unwrap();
    check_by_reader(pool.store().unwrap(), |_, _| 3);
}

#[test]
fn another_geometry_is_refused_by_name() {
    let folder = Scratch::new();
    let made = kept(&folder);
    drop(HostPool::new(&made).unwrap());
    let file = made.file.clone().unwrap();
    let other = |layers, rows, segments: &[usize]| config(layers, rows, segments, file.clone());
    let per_layer = PoolConfig { indexers: Indexers::per_layer(2).unwrap(), ..made.clone() };
    for (config, words) in [
        (other(3, ROWS, &[1900, 140]), "layers is 3, but the pool file was made with 2"),
        (other(LAYERS, 51, &[1900, 140]), "rows is 51, but the pool file was made with 50"),
        (other(LAYERS, ROWS, &[BYTES]), "segments is 1, but the pool file was made with 2"),
        (
            other(LAYERS, ROWS, &[140, 1900]),
            "segment bytes is 140, but the pool file was made with 1900",
        ),
        (per_layer, "indexer of a layer is 1, but the pool file was made with 0"),
    ] {
        expect_error(HostPool::open(&config), &[words]);
    }
    let stored = PoolConfig::stored_in(&file).unwrap();
    assert_eq!((stored.layers, stored.rows, &stored.format), (LAYERS, ROWS, &made.format));
    HostPool::open(&stored).unwrap();
}

#[test]
fn a_damaged_header_is_refused() {
    let folder = Scratch::new();
    let config = kept(&folder);
    drop(HostPool::new(&config).unwrap());
    let path = folder.file("rows");
    for at in (0..200).chain([1000, 16383]) {
        damage(&path, at);
        let what = match at {
            0..8 => "that of another kind of file",
            8..16 => "of version",
            _ => "damaged",
        };
        expect_error(HostPool::open(&config), &["header of the pool file is", what]);
        expect_error(PoolConfig::stored_in(config.file.as_ref().unwrap()), &[what]);
        damage(&path, at);
    }
    HostPool::open(&config).unwrap();
}

#[test]
fn a_shorter_file_is_refused() {
    let folder = Scratch::new();
    let config = kept(&folder);
    let pool = HostPool::new(&config).unwrap();
    write(&pool, 0..ROWS, 0).unwrap();
    pool.flush().unwrap();
    let path = folder.file("rows");
    let whole = fs::metadata(&path).unwrap().len();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(whole - 4 * RECORD).unwrap();
    let read = pool.read_row(1, ROWS - 1, &mut [0; BYTES]);
    expect_error(read, &["row 49 of layers 0 to 1", "became shorter"]);
    pool.read_row(1, 0, &mut [0; BYTES]).unwrap();
    let written = pool.write_row(0, 0, &[0; BYTES]).and_then(|()| pool.flush());
    expect_error(written, &["became shorter"]);
    drop(pool);
    expect_error(HostPool::open(&config), &[&format!("its rows need {whole} bytes")]);
    // The bytes that were cut off are zero in a file that has grown again.
    file.set_len(whole).unwrap();
    let pool = HostPool::open(&config).unwrap();
    for row in 0..ROWS {
        let result = pool.read_row(1, row, &mut [0; BYTES]);
        assert_eq!(result.is_ok(), row < ROWS - 4, "row {row}: {result:?}");
    }
    drop(pool);
    for (bytes, part) in [(50, "50 bytes"), (whole, "header of the pool file")] {
        file.set_len(bytes).unwrap();
        expect_error(HostPool::open(&config), &[part]);
    }
}

#[test]
fn after_a_failed_fdatasync_no_later_flush_succeeds() {
    let folder = Scratch::new();
    let config = kept(&folder);
    let faults = Faults::default();
    let pool = HostPool::new_through(&config, &|disk| faults.wrap(disk)).unwrap();
    write(&pool, 0..10, 0).unwrap();
    pool.flush().unwrap();
    write(&pool, 10..20, 0).unwrap();
    faults.set_sync(5);
    expect_error(pool.flush(), &["fdatasync for"]);
    faults.clear();
    for _ in 0..2 {
        expect_error(pool.flush(), &["failed at an earlier flush"]);
    }
    pool.read_row(0, 15, &mut [0; BYTES]).unwrap();
    drop(pool);
    let pool = HostPool::open(&config).unwrap();
    pool.read_row(0, 9, &mut [0; BYTES]).unwrap();
    pool.flush().unwrap();
}
