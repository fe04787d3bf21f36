//! A machine that loses its power: of what was written since the last `fdatasync`, any sectors are in the
//! file and others are not. Each session is as a commit left it then, and each row is whole or reported.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use avsg::Result;
use avsg::disk::{Direction, Disk, Operation, Piece, Queue, Wrap};
use avsg::pool::HostPool;
use avsg_testkit::faulty_disk::Faults;
use avsg_testkit::scratch::Scratch;
use avsg_testkit::splitmix::SplitMix64;
use avsg_testkit::tier;

use super::sessions::{BLOCK, BYTES, LAYERS, ROWS, SESSIONS, State, bytes_of, kept};
use super::{expect_error, stored};

const SECTOR: usize = 512;

/// A disk with a cache that is lost.
struct Volatile {
    disk: Arc<dyn Disk>,
    power: Mutex<Power>,
}

#[derive(Default)]
struct Power {
    /// Writes since the last sync, as offsets and bytes.
    cache: Vec<(u64, Vec<u8>)>,
    /// Operations until the power is gone.
    left: usize,
}

impl Volatile {
    /// Makes or opens a pool on such a disk, whose power is gone after `left` operations.
    fn under(
        left: usize,
        make: impl FnOnce(Wrap<'_>) -> Result<HostPool>,
    ) -> (Result<HostPool>, Arc<Self>) {
        let volatile = OnceLock::new();
        let pool = make(&|disk| {
            let power = Mutex::new(Power { cache: vec![], left });
            let volatile = volatile.get_or_init(|| Arc::new(Self { disk, power })).clone();
            // It gives the disk a queue.
            Faults::default().wrap(volatile)
        });
        (pool, volatile.into_inner().unwrap())
    }

    /// Returns the state, or an error if the power is gone.
    fn powered(&self) -> io::Result<MutexGuard<'_, Power>> {
        let mut state = self.power.lock().unwrap();
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
    fn lose(&self, random: &mut SplitMix64) {
        let (kept, sector) = (random.below(5), [SECTOR, usize::MAX][random.below(2)]);
        for (offset, bytes) in std::mem::take(&mut self.power.lock().unwrap().cache) {
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
        // SAFETY: the caller guarantees it.
        let moved = unsafe { self.disk.run(operation) }?;
        let mut start = operation.offset;
        for piece in operation.pieces {
            let end = start + piece.len as u64;
            for (offset, bytes) in &state.cache {
                let (from, to) = (start.max(*offset), end.min(offset + bytes.len() as u64));
                if from < to {
                    let part = &bytes[(from - offset) as usize..(to - offset) as usize];
                    let at = piece.at.wrapping_add((from - start) as usize);
                    // SAFETY: the range is inside the piece, which is valid for writes (`Disk::run`).
                    unsafe { at.copy_from_nonoverlapping(part.as_ptr(), part.len()) };
                }
            }
            start = end;
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

/// What a row may be after a crash.
#[derive(Clone, Default)]
struct Row {
    /// The version of the last flush or commit; `None` if the row is reported.
    flushed: Option<u64>,
    later: Vec<u64>,
}

/// Notes that what was written is durable.
fn flush(rows: &mut [Row]) {
    let later = rows.iter_mut().filter(|row| !row.later.is_empty());
    later.for_each(|row| *row = Row { flushed: row.later.pop(), later: vec![] });
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
fn after_a_loss_of_power_a_session_is_as_a_commit_left_it_and_each_row_is_whole_or_reported() {
    let crashes = if tier::thorough() { 4000 } else { 150 };
    let folder = Scratch::new();
    let mut config = kept(folder.file("rows"), SESSIONS);
    drop(HostPool::new(&config).unwrap());
    let (mut random, mut version, mut commits, mut whole) = (SplitMix64::new(53), 0, 0, 0);
    let mut sessions = [State::default(), State::default(), State::default()];
    let mut rows = vec![Row::default(); LAYERS * ROWS];
    for _ in 0..crashes {
        config.file.as_mut().unwrap().io_uring = random.below(2) == 0;
        let (pool, volatile) =
            Volatile::under(usize::MAX, |wrap| HostPool::in_file(&config, false, wrap));
        let pool = pool.unwrap();
        volatile.power.lock().unwrap().left = random.below(150);
        // A commit that was under way.
        let mut under_way = None;
        while under_way.is_none() {
            let at = random.below(3);
            let mut next = sessions[at].clone();
            match random.below(12) {
                0 if pool.flush().is_err() => break,
                0 => flush(&mut rows),
                1..4 => {
                    // A row of no session in all layers or in one, as engines and loads write.
                    let (row, one) = (random.below(ROWS), random.below(3 * LAYERS));
                    if sessions.iter().any(|state| state.has(row)) {
                        continue;
                    }
                    version += 1;
                    let mut layers = (0..LAYERS).filter(|&layer| one >= LAYERS || layer == one);
                    let written = layers.try_for_each(|layer| {
                        rows[layer * ROWS + row].later.push(version);
                        pool.write_row(layer, row, &bytes_of(layer, row, version))
                    });
                    if written.is_err() {
                        break;
                    }
                    continue;
                }
                4..7 => {
                    next.versions.truncate(random.below(next.versions.len() + 1));
                    next.blocks.truncate(next.versions.len().div_ceil(BLOCK));
                }
                _ => {
                    let used = sessions.iter().flat_map(|state| state.blocks.clone());
                    let used: Vec<_> = used.collect();
                    let free = (0..(ROWS / BLOCK) as i32).find(|block| !used.contains(block));
                    next.blocks.extend(free);
                    version += 1;
                    let first = next.versions.len();
                    let room = next.blocks.len() * BLOCK - first;
                    let written = next.write(&pool, random.below(room.min(5) + 1), version);
                    for at in (first..next.versions.len()).map(|token| next.row(token)) {
                        (0..LAYERS).for_each(|layer| rows[layer * ROWS + at].later.push(version));
                    }
                    if written.is_err() {
                        break;
                    }
                }
            }
            match next.commit(&pool, at) {
                Ok(()) => {
                    (commits, sessions[at]) = (commits + 1, next);
                    flush(&mut rows);
                }
                Err(_) => under_way = Some((at, next)),
            }
        }
        volatile.lose(&mut random);
        drop(pool);
        let pool = HostPool::open(&config).unwrap();
        if let Some((at, next)) = under_way
            && stored(&pool).session(at).unwrap().blocks == next.blocks
            && stored(&pool).session(at).unwrap().length == next.versions.len()
        {
            sessions[at] = next;
        }
        sessions.iter().enumerate().for_each(|(at, state)| state.check(&pool, at));
        whole += check(&pool, &mut rows);
    }
    let all = crashes * LAYERS * ROWS;
    println!("{}: {crashes} crashes, {commits} commits, {whole} of {all} rows", tier::name());
    assert!(commits > crashes / 2 && whole > all / 10, "{commits} commits, {whole} rows");
}

#[test]
fn after_a_loss_of_power_in_its_creation_a_file_is_a_pool_without_rows_or_refused() {
    let (folder, mut random, mut opened) = (Scratch::new(), SplitMix64::new(29), 0);
    for n in 0..40 {
        let (path, other) = (folder.file("rows"), folder.file(&n.to_string()));
        let config = kept(path.clone(), SESSIONS);
        let (pool, volatile) = Volatile::under(n % 5, |wrap| {
            HostPool::in_file(&config, true, &|disk| {
                // A creation that fails removes the name of the file.
                std::fs::hard_link(&path, &other).unwrap();
                wrap(disk)
            })
        });
        volatile.lose(&mut random);
        if pool.is_ok() {
            std::fs::remove_file(path).unwrap();
        }
        drop(pool);
        match HostPool::open(&kept(other, SESSIONS)) {
            Ok(pool) => {
                State::default().check(&pool, 0);
                assert!((0..ROWS).all(|row| pool.read_row(1, row, &mut [0; BYTES]).is_err()));
                opened += 1;
            }
            refused => drop(expect_error(refused, &["header of the pool file is"])),
        }
    }
    assert!((8..40).contains(&opened), "{opened} pools");
}
