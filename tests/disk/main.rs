//! Pools whose rows are in a file: rows are read back by every way to read them, faults are errors that
//! name the row, and after a loss of power each row is whole or reported.

mod crash;
mod create;
mod faults;
mod file_pool;
mod kept;
mod kills;
mod round_trip;
mod sessions;

use std::ops::Range;

use avsg::disk::{PoolFile, Store};
use avsg::pool::{HostPool, PoolConfig, Role};
use avsg::rows::RowFormat;
use avsg_testkit::refusal::expect_error;
use avsg_testkit::scratch::adapted;
use avsg_testkit::splitmix::SplitMix64;

/// Returns the configuration of a pool in a file, without O_DIRECT where the file system lacks it.
fn config(layers: usize, rows: usize, segments: &[usize], file: PoolFile) -> PoolConfig {
    let format = RowFormat::segments(segments).unwrap();
    PoolConfig { file: Some(adapted(file)), ..PoolConfig::new(layers, rows, format) }
}

/// Returns the bytes of a version of a row.
fn bytes_of(layer: usize, row: usize, version: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| (layer * 131 + row * 31 + version * 57 + i * 7 + i / 251) as u8).collect()
}

/// Returns the store of a pool, to write sessions and data of tokens.
fn stored(pool: &HostPool) -> &Store {
    pool.stored(Role::Writer).unwrap()
}

/// Writes rows of all layers in a version.
fn write(pool: &HostPool, rows: Range<usize>, version: usize) -> avsg::Result<()> {
    for (row, layer) in rows.flat_map(|row| (0..pool.layers()).map(move |layer| (row, layer))) {
        pool.write_row(layer, row, &bytes_of(layer, row, version, pool.format().bytes()))?;
    }
    Ok(())
}

/// Writes such rows and flushes, which must both succeed.
fn write_and_flush(pool: &HostPool, rows: Range<usize>, version: usize) {
    write(pool, rows, version).and_then(|()| pool.flush()).unwrap();
}

/// Reads a row of a layer, which must be whole, and checks its version.
#[track_caller]
fn check_row(pool: &HostPool, layer: usize, row: usize, version: usize) {
    let mut read = vec![0; pool.format().bytes()];
    pool.read_row(layer, row, &mut read).unwrap();
    assert!(read == bytes_of(layer, row, version, read.len()), "layer {layer}, row {row}");
}

/// Returns bytes that begin with a number and depend on it and a seed.
fn numbered(number: u64, seed: u64, len: usize) -> Vec<u8> {
    let mut random = SplitMix64::new(seed);
    let words = std::iter::once(number).chain(std::iter::repeat_with(move || random.word()));
    words.flat_map(u64::to_le_bytes).take(len).collect()
}

/// Reads all rows of a pool by a range, and checks their versions.
fn check_all(pool: &HostPool, version: impl Fn(usize, usize) -> usize) {
    let (rows, len) = (pool.rows(), pool.format().bytes());
    let layers: Vec<_> = (0..pool.layers()).collect();
    let mut read = vec![0; layers.len() * rows * len];
    pool.read_rows(&layers, 0, &mut read).unwrap();
    for (at, bytes) in read.chunks_exact(len).enumerate() {
        let (layer, row) = (at / rows, at % rows);
        let expected = bytes_of(layer, row, version(layer, row), len);
        assert!(bytes == expected, "layer {layer}, row {row}");
    }
}
