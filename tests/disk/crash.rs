//! A machine that loses its power: of what was written since the last `fdatasync`, any sectors are in the
//! file and others are not.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use avsg::disk::{Direction, Disk, Operation, Piece, PoolFile, Queue};
use avsg::pool::{HostPool, PoolConfig};
use avsg_testkit::scratch::Scratch;
use avsg_testkit::splitmix::SplitMix64;
use avsg_testkit::tier;

use super::{config, numbered};

const LAYERS: usize = 3;
const ROWS: usize = 24;
const BYTES: usize = 700;
const SECTOR: usize = 512;

/// A disk with a cache that is lost.
pub(super) struct Volatile {
    disk: Arc<dyn Disk>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Writes since the last sync, as offsets and bytes.
    cache: Vec<(u64, Vec<u8>)>,
    /// Operations until the power is gone.
    left: usize,
}

impl Volatile {
    /// Opens a pool on such a disk.
    pub(super) fn open(config: &PoolConfig) -> (HostPool, Arc<Self>) {
        let volatile = OnceLock::new();
        let pool = HostPool::in_file(config, false, &|disk| {
            let state = Mutex::new(State { cache: vec![], left: usize::MAX });
            volatile.get_or_init(|| Arc::new(Self { disk, state })).clone()
        });
        (pool.unwrap(), volatile.into_inner().unwrap())
    }

    /// Sets the operations until the power is gone.
    pub(super) fn set_left(&self, left: usize) {
        self.state.lock().unwrap().left = left;
    }

    /// Returns the state, or an error if the power is gone.
    fn powered(&self) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.state.lock().unwrap();
        state.left = state.left.checked_sub(1).ok_or(io::Error::from_raw_os_error(5))?;
        Ok(state)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let at = bytes.as_ptr().cast_mut();
        let pieces = [Piece { at, len: bytes.len() }];
        // SAFETY: a write reads the bytes only.
        let moved = unsafe {
            self.disk.run(&Operation { direction: Direction::Write, offset, pieces: &pieces })
        }?;
        assert_eq!(moved, bytes.len());
        Ok(())
    }

    /// Ends the power: each sector of the cache, or each write, is in the file or not.
    pub(super) fn lose(&self, random: &mut SplitMix64) {
        let (kept, sector) = (random.below(5), [SECTOR, usize::MAX][random.below(2)]);
        for (offset, bytes) in std::mem::take(&mut self.state.lock().unwrap().cache) {
            for (at, bytes) in bytes.chunks(sector).enumerate() {
                if random.below(4) < kept {
                    self.write(offset + (at * SECTOR) as u64, bytes).unwrap();
                }
            }
        }
    }
}

impl Disk for Volatile {
    unsafe fn run(&self, operation: &Operation<'_>) -> io::Result<usize> {
        let mut state = self.powered()?;
        if operation.direction == Direction::Write {
            // SAFETY: the pieces are valid for reads (`Disk::run`).
            let bytes = |piece: &Piece| unsafe { std::slice::from_raw_parts(piece.at, piece.len) };
            let bytes = operation.pieces.iter().map(bytes).collect::<Vec<_>>().concat();
            let moved = bytes.len();
            state.cache.push((operation.offset, bytes));
            return Ok(moved);
        }
        let [piece] = operation.pieces else { panic!("reads have one piece without a reader") };
        // SAFETY: the caller guarantees it.
        let moved = unsafe { self.disk.run(operation) }?;
        for (offset, bytes) in &state.cache {
            let end = operation.offset + moved as u64;
            let (from, to) = (operation.offset.max(*offset), end.min(offset + bytes.len() as u64));
            if from < to {
                let part = &bytes[(from - offset) as usize..(to - offset) as usize];
                let at = piece.at.wrapping_add((from - operation.offset) as usize);
                // SAFETY: the range is inside the piece, which is valid for writes (`Disk::run`).
                unsafe { at.copy_from_nonoverlapping(part.as_ptr(), part.len()) };
            }
        }
        Ok(moved)
    }

    fn sync(&self) -> io::Result<()> {
        let cache = std::mem::take(&mut self.powered()?.cache);
        cache.iter().try_for_each(|(offset, bytes)| self.write(*offset, bytes))
    }

    fn length(&self) -> io::Result<u64> {
        self.disk.length()
    }

    fn unlock(&self) {
        self.disk.unlock();
    }

    fn queue(&self, _: u32) -> io::Result<Box<dyn Queue>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Returns the bytes of a version of a row, which begin with the version.
fn bytes_of(layer: usize, row: usize, version: u64) -> Vec<u8> {
    numbered(version, version * 1009 + (layer * ROWS + row) as u64, BYTES)
}

/// What a row may be after a crash.
#[derive(Clone, Default)]
struct Row {
    /// The version of the last flush; `None` if the row is reported.
    flushed: Option<u64>,
    later: Vec<u64>,
}

/// Reads all rows after a crash, and makes what is found the flushed rows. Returns how many are whole.
fn check(pool: &HostPool, rows: &mut [Row]) -> usize {
    for (at, known) in rows.iter_mut().enumerate() {
        let (layer, row) = (at / ROWS, at % ROWS);
        let mut read = [0; BYTES];
        let found = pool.read_row(layer, row, &mut read).is_ok();
        let found = found.then(|| u64::from_le_bytes(*read.first_chunk().unwrap()));
        if let Some(version) = found {
            let whole = read[..] == bytes_of(layer, row, version);
            assert!(whole, "a mix of versions, layer {layer}, row {row}");
            assert!(known.flushed == found || known.later.contains(&version));
        } else {
            let lost = known.flushed.is_some() && known.later.is_empty();
            assert!(!lost, "layer {layer}, row {row} is lost");
        }
        *known = Row { flushed: found, later: vec![] };
    }
    rows.iter().filter(|row| row.flushed.is_some()).count()
}

#[test]
fn after_a_loss_of_power_each_row_is_whole_or_reported() {
    let crashes = if tier::thorough() { 4000 } else { 120 };
    let folder = Scratch::new();
    let file = PoolFile { keep: true, buffered: true, ..PoolFile::new(folder.file("rows")) };
    let config = config(LAYERS, ROWS, &[BYTES], PoolFile { queue_bytes: 1, ..file });
    drop(HostPool::new(&config).unwrap());
    let (mut random, mut version, mut whole) = (SplitMix64::new(28), 0, 0);
    let mut rows = vec![Row::default(); LAYERS * ROWS];
    for _ in 0..crashes {
        let (pool, volatile) = Volatile::open(&config);
        volatile.set_left(random.below(120));
        loop {
            if random.below(20) == 0 {
                if random.below(2) == 0 {
                    // The power is lost in the middle of a flush.
                    volatile.set_left(random.below(16));
                }
                if pool.flush().is_err() {
                    break;
                }
                let later = rows.iter_mut().filter(|row| !row.later.is_empty());
                later.for_each(|row| *row = Row { flushed: row.later.pop(), later: vec![] });
                continue;
            }
            // All layers of a record, or one of them, as engines and loads write.
            let (row, one) = (random.below(ROWS), random.below(3 * LAYERS));
            version += 1;
            let written = (0..LAYERS).filter(|&layer| one >= LAYERS || layer == one).all(|layer| {
                rows[layer * ROWS + row].later.push(version);
                pool.write_row(layer, row, &bytes_of(layer, row, version)).is_ok()
            });
            if !written {
                break;
            }
        }
        volatile.lose(&mut random);
        drop(pool);
        let pool = HostPool::open(&config).unwrap();
        whole += check(&pool, &mut rows);
    }
    let all = crashes * LAYERS * ROWS;
    println!("{}: {crashes} crashes, {whole} of {all} rows whole", tier::name());
    assert!(whole > all / 10, "{whole} of {all} rows are whole");
}
