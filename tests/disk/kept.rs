//! A kept file is opened by what made it and by nothing else, and rows whose bytes are not those that were written there
//! are reported, and all others are right.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;

use avsg::disk::PoolFile;
use avsg::indexers::Indexers;
use avsg::pool::{HostPool, PoolConfig};
use avsg_testkit::faulty_disk::Faults;
use avsg_testkit::scratch::Scratch;
use avsg_testkit::splitmix::SplitMix64;
use avsg_testkit::tier;

use super::{check_all, check_row, config, expect_error, write, write_and_flush};

const LAYERS: usize = 2;
const ROWS: usize = 50;
const BYTES: usize = 2040;
/// A row with its checksum, and a record in blocks of 512 or of 4096 bytes.
const STRIDE: u64 = 2048;
const RECORD: u64 = 4096;
/// Where the records begin: behind two headers.
const START: u64 = 32768;

/// A kept file, and the pool that it holds. Both use the page cache, so that one sees what the other writes.
struct Kept {
    config: PoolConfig,
    file: File,
}

impl Kept {
    /// Makes a file whose rows have the bytes of version 0.
    fn new(folder: &Scratch, name: &str) -> Self {
        let path = folder.file(name);
        let file = PoolFile { keep: true, buffered: true, ..PoolFile::new(&path) };
        let config = config(LAYERS, ROWS, &[1900, 140], file);
        write_and_flush(&HostPool::new(&config).unwrap(), 0..ROWS, 0);
        Self { config, file: OpenOptions::new().read(true).write(true).open(path).unwrap() }
    }

    fn open(&self) -> HostPool {
        HostPool::open(&self.config).unwrap()
    }

    fn read(&self, at: u64, len: u64) -> Vec<u8> {
        let mut bytes = vec![0; len as usize];
        self.file.read_exact_at(&mut bytes, at).unwrap();
        bytes
    }

    fn put(&self, bytes: &[u8], at: u64) {
        self.file.write_all_at(bytes, at).unwrap();
    }

    fn flip(&self, at: u64, bit: u32) {
        self.put(&[self.read(at, 1)[0] ^ 1 << bit], at);
    }
}

/// Returns the offset of a row.
fn offset(layer: usize, row: usize) -> u64 {
    START + row as u64 * RECORD + layer as u64 * STRIDE
}

/// Checks that exactly these rows, as layers and rows, are reported, and that others have the bytes of version 0.
fn check(pool: &HostPool, damaged: &[(usize, usize)]) {
    for (row, layer) in (0..ROWS).flat_map(|row| [(row, 0), (row, 1)]) {
        if damaged.contains(&(layer, row)) {
            let text = expect_error(pool.read_row(layer, row, &mut [0; BYTES]), &[]);
            let at = offset(layer, row);
            let words = format!("row {row} of layer {layer} is not whole at byte {at} of ");
            assert!(text.starts_with(&words), "{text}");
        } else {
            check_row(pool, layer, row, 0);
        }
    }
}

#[test]
fn another_geometry_is_refused_by_name() {
    let folder = Scratch::new();
    let made = Kept::new(&folder, "rows").config;
    let file = made.file.clone().unwrap();
    let other = |layers, rows, segments: &[usize]| config(layers, rows, segments, file.clone());
    let per_layer = PoolConfig { indexers: Indexers::of_layers(&[0, 1]).unwrap(), ..made.clone() };
    for (config, given, made) in [
        (other(3, ROWS, &[1900, 140]), "layers is 3", 2),
        (other(LAYERS, 51, &[1900, 140]), "rows is 51", 50),
        (other(LAYERS, ROWS, &[BYTES]), "segments is 1", 2),
        (other(LAYERS, ROWS, &[140, 1900]), "segment bytes is 140", 1900),
        (per_layer, "indexer of a layer is 1", 0),
    ] {
        let part = format!("{given}, but the pool file was made with {made}");
        expect_error(HostPool::open(&config), &[&part]);
    }
    let stored = PoolConfig::stored_in(&file).unwrap();
    assert_eq!((stored.layers, stored.rows, &stored.format), (LAYERS, ROWS, &made.format));
    let _pool = HostPool::open(&stored).unwrap();
    expect_error(HostPool::open(&stored), &["takes one writer"]);
}

#[test]
fn two_damaged_headers_are_refused() {
    let folder = Scratch::new();
    let kept = Kept::new(&folder, "rows");
    for at in (0..200).chain([1000, 16383]) {
        // One whole header is enough.
        kept.flip(at, 6);
        drop(kept.open());
        kept.flip(at, 6);
        kept.flip(START / 2 + at, 6);
        let what = match at {
            0..8 => "not that of a pool",
            8..16 => "of version",
            _ => "damaged",
        };
        expect_error(HostPool::open(&kept.config), &["header of the pool file is", what]);
        expect_error(PoolConfig::stored_in(kept.config.file.as_ref().unwrap()), &[what]);
        kept.flip(at, 6);
        kept.flip(START / 2 + at, 6);
    }
    kept.open();
}

#[test]
fn a_shorter_file_is_refused() {
    let folder = Scratch::new();
    let Kept { config, file } = Kept::new(&folder, "rows");
    let pool = HostPool::open(&config).unwrap();
    let whole = file.metadata().unwrap().len();
    file.set_len(whole - 4 * RECORD).unwrap();
    let read = pool.read_row(1, ROWS - 1, &mut [0; BYTES]);
    expect_error(read, &["row 49 of layer 1 is not whole", "cut off"]);
    pool.read_row(1, 0, &mut [0; BYTES]).unwrap();
    pool.write_row(0, 0, &[0; BYTES]).unwrap();
    let flushed = pool.flush();
    assert!(matches!(&flushed, Err(avsg::Error::Os { .. })), "{flushed:?}");
    expect_error(flushed, &["became shorter", &format!("its rows need {whole}")]);
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
    for (bytes, part) in [(50, "is damaged"), (0, "not that of a pool")] {
        file.set_len(bytes).unwrap();
        expect_error(HostPool::open(&config), &["header of the pool file is", part]);
        expect_error(PoolConfig::stored_in(config.file.as_ref().unwrap()), &[part]);
    }
    fs::write(folder.file("rows"), "a text\n").unwrap();
    expect_error(HostPool::open(&config), &["not that of a pool"]);
}

#[test]
fn after_a_failed_fdatasync_no_later_flush_succeeds() {
    let folder = Scratch::new();
    let kept = Kept::new(&folder, "rows");
    let faults = Faults::default();
    let pool = HostPool::in_file(&kept.config, false, &|disk| faults.wrap(disk)).unwrap();
    write_and_flush(&pool, 0..10, 1);
    write(&pool, 10..20, 1).unwrap();
    faults.set_sync(5);
    expect_error(pool.flush(), &["fdatasync for"]);
    faults.clear();
    for _ in 0..2 {
        expect_error(pool.flush(), &["failed at an earlier flush"]);
    }
    check_row(&pool, 0, 15, 1);
    drop(pool);
    let pool = kept.open();
    check_row(&pool, 0, 9, 1);
    pool.flush().unwrap();
}

#[test]
fn a_flipped_bit_and_a_hole_are_reported_and_a_row_of_zeros_is_not() {
    let folder = Scratch::new();
    let kept = Kept::new(&folder, "rows");
    let pool = kept.open();
    let mut random = SplitMix64::new(42);
    for _ in 0..if tier::thorough() { 500 } else { 40 } {
        let (byte, bit) = (random.below(ROWS * RECORD as usize) as u64, random.below(8) as u32);
        kept.flip(START + byte, bit);
        check(&pool, &[((byte % RECORD / STRIDE) as usize, (byte / RECORD) as usize)]);
        kept.flip(START + byte, bit);
    }
    check(&pool, &[]);
    // A row of zeros is a row, and a hole is none.
    pool.write_row(1, 7, &[0; BYTES]).unwrap();
    pool.flush().unwrap();
    let mut read = [1; BYTES];
    pool.read_row(1, 7, &mut read).unwrap();
    assert!(read == [0; BYTES]);
    kept.put(&[0; STRIDE as usize], offset(1, 7));
    check(&pool, &[(1, 7)]);
    (0..ROWS).for_each(|row| kept.flip(offset(row % LAYERS, row), 3));
    write_and_flush(&pool, 0..ROWS, 1);
    check_all(&pool, |_, _| 1);
}

#[test]
fn swapped_and_foreign_rows_and_holes_are_reported() {
    let folder = Scratch::new();
    let (kept, other) = (Kept::new(&folder, "rows"), Kept::new(&folder, "other"));
    let [third, ninth] = [3, 9].map(|row| kept.read(offset(0, row), RECORD));
    kept.put(&third, offset(0, 9));
    kept.put(&ninth, offset(0, 3));
    kept.put(&kept.read(offset(0, 20), STRIDE), offset(1, 20));
    kept.put(&other.read(offset(1, 30), STRIDE), offset(1, 30));
    kept.put(&[0; RECORD as usize], offset(0, 40));
    let damaged = [(0, 3), (1, 3), (0, 9), (1, 9), (1, 20), (1, 30), (0, 40), (1, 40)];
    check(&kept.open(), &damaged);
    // All rows of an older file on the same blocks.
    kept.put(&other.read(START, ROWS as u64 * RECORD), START);
    let all: Vec<_> = (0..ROWS).flat_map(|row| [(0, row), (1, row)]).collect();
    check(&kept.open(), &all);
}
