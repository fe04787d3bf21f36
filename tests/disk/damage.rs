//! Rows of a file whose bytes are not those that were written there are reported, and all others are right.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;

use avsg::disk::PoolFile;
use avsg::pool::{HostPool, PoolConfig};
use avsg_testkit::scratch::Scratch;
use avsg_testkit::splitmix::SplitMix64;
use avsg_testkit::tier;

use super::{check_by_reader, check_row, config, expect_error, write};

const LAYERS: usize = 2;
const ROWS: usize = 50;
const SEGMENTS: [usize; 2] = [1900, 140];
const BYTES: usize = 2040;
/// A row with its checksum, and a record in blocks of 512 or of 4096 bytes.
const STRIDE: u64 = 2048;
const RECORD: u64 = 4096;
/// Where the records begin: behind the header.
const START: u64 = 16384;

/// A kept file, and the pool that it holds. Both use the page cache, so that one sees what the other writes.
struct Kept {
    config: PoolConfig,
    file: File,
}

impl Kept {
    /// Makes a file whose rows have the bytes of a version.
    fn new(folder: &Scratch, name: &str, version: usize) -> Self {
        let path = folder.file(name);
        let file = PoolFile { keep: true, buffered: true, ..PoolFile::new(&path) };
        let config = config(LAYERS, ROWS, &SEGMENTS, file);
        write_all(&HostPool::new(&config).unwrap(), version);
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

fn write_all(pool: &HostPool, version: usize) {
    write(pool, 0..ROWS, version).unwrap();
    pool.flush().unwrap();
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
            let words = format!("row is {row} of layer {layer}, but it is not whole at byte {at}");
            assert!(text.starts_with(&words), "{text}");
        } else {
            check_row(pool, layer, row, 0);
        }
    }
}

#[test]
fn a_flipped_bit_and_a_hole_are_reported_and_a_row_of_zeros_is_not() {
    let folder = Scratch::new();
    let kept = Kept::new(&folder, "rows", 0);
    let pool = kept.open();
    let mut random = SplitMix64::new(42);
    for _ in 0..if tier::thorough() { 500 } else { 80 } {
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
    write_all(&pool, 1);
    check_by_reader(pool.store().unwrap(), |_, _| 1);
}

#[test]
fn swapped_and_foreign_rows_and_holes_are_reported() {
    let folder = Scratch::new();
    let (kept, other) = (Kept::new(&folder, "rows", 0), Kept::new(&folder, "other", 0));
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
