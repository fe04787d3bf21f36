//! Pools whose rows are in a file: rows are read back by every way to read them, faults are errors that
//! name the row, and after a crash or a kill each row is whole or reported.

mod crash;
mod create;
mod faults;
mod file_pool;
mod kept;
mod kills;
mod round_trip;
mod sessions;

use std::ops::Range;
use std::sync::Arc;

use avsg::disk::{PoolFile, Reader, Store};
use avsg::pool::{HostPool, PoolConfig, Role};
use avsg::rows::RowFormat;
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

/// Checks that the error is one line, has a remedy and contains all of `parts`, and returns it.
#[track_caller]
fn expect_error<T>(result: avsg::Result<T>, parts: &[&str]) -> String {
    let Err(error) = result else { panic!("an error was expected: {parts:?}") };
    let text = error.to_string();
    assert!(!text.contains('\n') && text.contains("; "), "one line, with a remedy: {text}");
    assert!(parts.iter().all(|part| text.contains(part)), "{parts:?} in {text:?}");
    text
}

/// Memory for the records of some rows of one indexer, and the reader that fills it.
struct Records {
    store: Arc<Store>,
    reader: Reader,
    memory: Vec<u8>,
    start: usize,
}

impl Records {
    fn new(store: &Arc<Store>, most: usize) -> Self {
        let memory = vec![0u8; most * store.layout().max_record_bytes() + 4096];
        let start = memory.as_ptr().align_offset(4096);
        let reader = Reader::new(store, most).unwrap();
        Self { store: Arc::clone(store), reader, memory, start }
    }

    /// Reads the records of these rows, and returns which of them were read.
    fn read(&mut self, indexer: usize, rows: &[usize]) -> (avsg::Result<()>, Vec<bool>) {
        let len = self.store.layout().record_bytes(indexer);
        self.memory.fill(0);
        for (n, &row) in rows.iter().enumerate() {
            let to = self.memory[self.start + n * len..][..len].as_mut_ptr();
            // SAFETY: each record has its own place in the memory, which lives longer than the reads:
            // a test that ends a run with reads under way waits for them.
            let number = unsafe { self.reader.push(indexer, row, to) };
            match number {
                Ok(number) => assert_eq!(number, n),
                Err(error) => return (Err(error), vec![]),
            }
        }
        let mut done = vec![0; rows.len()];
        let result = self.reader.run(&mut |n| done[n] += 1);
        assert!(done.iter().all(|&times| times <= 1));
        (result, done.iter().map(|&times| times == 1).collect())
    }

    /// Returns the row of a layer in the record at this place of the last list.
    fn row(&self, n: usize, layer: usize, row: usize) -> avsg::Result<&[u8]> {
        let len = self.store.layout().record_bytes(self.store.layout().indexer_of(layer));
        self.store.row_in(&self.memory[self.start + n * len..][..len], layer, row)
    }

    /// Checks the version of such a row.
    #[track_caller]
    fn check(&self, n: usize, layer: usize, row: usize, version: usize) {
        let expected = bytes_of(layer, row, version, self.store.layout().row_range(layer).len());
        assert!(self.row(n, layer, row).unwrap() == expected, "layer {layer}, row {row}");
    }
}

/// Reads all rows of a store through a reader, and checks their versions.
fn check_by_reader(store: &Arc<Store>, version: impl Fn(usize, usize) -> usize) {
    let layout = store.layout();
    // Even rows backwards, then odd rows: the reader sorts them.
    let backwards = || (0..layout.rows()).rev();
    let rows: Vec<_> = backwards().step_by(2).chain(backwards().skip(1).step_by(2)).collect();
    let mut records = Records::new(store, rows.len());
    for indexer in 0..layout.indexers() {
        let (result, done) = records.read(indexer, &rows);
        result.unwrap();
        assert!(done.iter().all(|&done| done));
        for layer in (0..layout.layers()).filter(|&layer| layout.indexer_of(layer) == indexer) {
            for (n, &row) in rows.iter().enumerate() {
                records.check(n, layer, row, version(layer, row));
            }
        }
    }
}
