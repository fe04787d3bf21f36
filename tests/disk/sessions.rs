//! A session opens as its last commit left it, whatever happened since, and nothing that it has can be overwritten.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use avsg::disk::{PoolFile, PoolSessions, Session};
use avsg::pool::{HostPool, PoolConfig};
use avsg_testkit::scratch::Scratch;
use avsg_testkit::splitmix::SplitMix64;
use avsg_testkit::tier;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::crash::Volatile;
use super::{check_row, config, expect_error, numbered, stored, write_and_flush};

const LAYERS: usize = 2;
const ROWS: usize = 64;
const BYTES: usize = 700;
/// Rows of a block.
const BLOCK: usize = 8;
const TOKEN: usize = 20;
const SESSIONS: PoolSessions =
    PoolSessions { count: 3, rows: BLOCK, bytes: 30, token_bytes: TOKEN };
const HEADER: u64 = 16384;

fn kept(path: PathBuf, sessions: PoolSessions) -> PoolConfig {
    let file = PoolFile { keep: true, buffered: true, queue_bytes: 1, ..PoolFile::new(path) };
    config(LAYERS, ROWS, &[BYTES], PoolFile { sessions, ..file })
}

/// What a session is to be: the version of each token, and the blocks.
#[derive(Clone, Default, Debug, PartialEq)]
struct State {
    versions: Vec<u64>,
    blocks: Vec<i32>,
}

impl State {
    fn row(&self, token: usize) -> usize {
        self.blocks[token / BLOCK] as usize * BLOCK + token % BLOCK
    }

    /// Adds tokens of a version, and writes them without a commit.
    fn write(&mut self, pool: &HostPool, count: usize, version: u64) -> avsg::Result<()> {
        for _ in 0..count {
            self.versions.push(version);
            let row = self.row(self.versions.len() - 1);
            for layer in 0..LAYERS {
                pool.write_row(layer, row, &numbered(version, version + layer as u64, BYTES))?;
            }
            stored(pool).write_tokens(row, &numbered(version, row as u64, TOKEN))?;
        }
        Ok(())
    }

    fn bytes(&self) -> Vec<u8> {
        vec![self.versions.len() as u8; self.versions.len() % 30]
    }

    fn commit(&self, pool: &HostPool, session: usize) -> avsg::Result<()> {
        stored(pool).commit_session(session, self.versions.len(), &self.blocks, &self.bytes())
    }

    /// Checks that a session is this one, with all of its rows and data.
    #[track_caller]
    fn check(&self, pool: &HostPool, session: usize) {
        let (length, blocks, bytes) = (self.versions.len(), self.blocks.clone(), self.bytes());
        assert_eq!(stored(pool).session(session).unwrap(), Session { length, blocks, bytes });
        for (token, &version) in self.versions.iter().enumerate() {
            let (row, mut read, mut data) = (self.row(token), [0; BYTES], [0; TOKEN]);
            for layer in 0..LAYERS {
                pool.read_row(layer, row, &mut read).unwrap();
                assert!(read[..] == numbered(version, version + layer as u64, BYTES));
            }
            stored(pool).read_tokens(row, &mut data).unwrap();
            assert!(data[..] == numbered(version, row as u64, TOKEN));
        }
    }
}

fn state(pool: &HostPool, session: usize, blocks: &[i32], count: usize, version: u64) -> State {
    let mut state = State { blocks: blocks.to_vec(), ..State::default() };
    state.write(pool, count, version).unwrap();
    state.commit(pool, session).unwrap();
    state
}

/// That a session opens at its last commit is checked by the random calls of `bindings/c/tests/fuzz`.
#[test]
fn what_a_session_has_is_not_overwritten() {
    let folder = Scratch::new();
    let config = kept(folder.file("rows"), SESSIONS);
    let pool = HostPool::new(&config).unwrap();
    assert!(pool.bytes() <= HostPool::plan_bytes(&config).unwrap());
    let one = state(&pool, 0, &[5, 1], 11, 7);
    for row in [40, 47, 8, 10] {
        let parts = ["a session keeps the first", "commit the session without them"];
        expect_error(pool.write_row(1, row, &[0; BYTES]), &parts);
        expect_error(pool.write_rows(&[0, 1], row, &[0; 2 * BYTES]), &parts);
        expect_error(stored(&pool).write_tokens(row, &[0; TOKEN]), &parts);
    }
    // No row of a block that two sessions have can be written.
    one.commit(&pool, 1).unwrap();
    expect_error(pool.write_row(0, 15, &[0; BYTES]), &["first 8 rows of block 1"]);
    one.check(&pool, 0);
}

#[test]
fn a_commit_of_what_is_missing_or_cannot_be_is_refused_and_changes_nothing() {
    let folder = Scratch::new();
    let pool = HostPool::new(&kept(folder.file("rows"), SESSIONS)).unwrap();
    let one = state(&pool, 0, &[2], 5, 3);
    pool.write_row(0, 21, &[1; BYTES]).unwrap();
    expect_error(
        stored(&pool).commit_session(0, 6, &[2], &[]),
        &["row 21 of layer 1 is not whole"],
    );
    pool.write_row(1, 21, &[1; BYTES]).unwrap();
    expect_error(
        stored(&pool).commit_session(0, 6, &[2], &[]),
        &["row 21", "the data of its token"],
    );
    for (result, part) in [
        (stored(&pool).commit_session(3, 0, &[], &[]), "session is 3"),
        (stored(&pool).commit_session(0, 9, &[2], &[]), "length is 9"),
        (stored(&pool).commit_session(0, 5, &[2, 2], &[]), "block of the session is 2"),
        (stored(&pool).commit_session(0, 5, &[2, 8], &[]), "block of the session is 8"),
        (stored(&pool).commit_session(0, 5, &[-1], &[]), "block of the session is -1"),
        (stored(&pool).commit_session(0, 5, &[2], &[0; 31]), "bytes of the session is 31"),
        (stored(&pool).write_tokens(63, &[0; 2 * TOKEN]), "row is 64"),
        (stored(&pool).write_tokens(0, &[0; TOKEN + 1]), "21 bytes"),
        (stored(&pool).read_tokens(30, &mut [0; TOKEN]), "row 30"),
    ] {
        expect_error(result, &[part]);
    }
    one.check(&pool, 0);
    let none = HostPool::new(&kept(folder.file("none"), PoolSessions::default())).unwrap();
    expect_error(stored(&none).session(0), &["session is 0"]);
    expect_error(stored(&none).write_tokens(0, &[0; 4]), &["token_bytes is 0"]);
    let mut private = kept(folder.path().to_owned(), SESSIONS);
    private.file.as_mut().unwrap().keep = false;
    expect_error(HostPool::new(&private), &["sessions is 3", "set keep"]);
}

#[test]
fn sessions_that_no_file_has_room_for_are_refused() {
    let folder = Scratch::new();
    for (sessions, rows, part) in [
        (PoolSessions { rows: 0, ..SESSIONS }, ROWS, "session's block is 0"),
        (PoolSessions { rows: ROWS + 1, ..SESSIONS }, ROWS, "session's block is 65"),
        (PoolSessions { bytes: usize::MAX - 9, ..SESSIONS }, ROWS, ""),
        (PoolSessions { count: 1 << 63, ..SESSIONS }, ROWS, "fewer than 2^63 bytes"),
        (PoolSessions { count: usize::MAX, rows: 1, ..SESSIONS }, ROWS, ""),
        (PoolSessions { count: 1, rows: 1, ..SESSIONS }, 1 << 62, ""),
    ] {
        let config = PoolConfig { rows, ..kept(folder.file("rows"), sessions) };
        assert!(HostPool::plan_bytes(&config).is_err());
        expect_error(HostPool::new(&config), &[part]);
    }
    assert!(!folder.file("rows").exists());
}

#[test]
fn a_flipped_bit_of_a_copy_of_a_session_costs_nothing() {
    let folder = Scratch::new();
    let config = kept(folder.file("rows"), SESSIONS);
    let pool = HostPool::new(&config).unwrap();
    let states = [state(&pool, 0, &[5, 1], 11, 7), state(&pool, 1, &[0], 3, 2)];
    drop(pool);
    let file = OpenOptions::new().read(true).write(true).open(folder.file("rows")).unwrap();
    let flip = |at: u64| {
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ 4], at).unwrap();
    };
    let block = HostPool::open(&config).unwrap().store().unwrap().info().block as u64;
    let entry = (40 + 4 * 8 + 30u64).next_multiple_of(block);
    let [first, second] = [2 * HEADER, 2 * HEADER + entry];
    for at in (first..first + 59).chain(second..second + 59) {
        flip(at);
        let pool = HostPool::open(&config).expect("one copy is whole");
        states.iter().enumerate().for_each(|(n, state)| state.check(&pool, n));
    }
    // Both copies: the session is lost, and no other.
    [first, second].into_iter().for_each(|at| flip(at + 41));
    let pool = HostPool::open(&config).unwrap();
    expect_error(stored(&pool).session(0), &["session is 0", "damaged"]);
    states[1].check(&pool, 1);
    state(&pool, 0, &[3], 2, 5).check(&pool, 0);
}

#[test]
fn a_file_of_version_2_opens_without_sessions_and_stays_as_it_is() {
    let folder = Scratch::new();
    let config = kept(folder.file("rows"), PoolSessions::default());
    write_and_flush(&HostPool::new(&config).unwrap(), 0..ROWS, 4);
    let mut bytes = std::fs::read(folder.file("rows")).unwrap();
    bytes.drain(HEADER as usize..2 * HEADER as usize);
    let header = &mut bytes[..HEADER as usize];
    header[8] = 2;
    header[HEADER as usize - 32..].fill(0);
    let sum = xxh3_64_with_seed(&header[24..], xxh3_64_with_seed(&header[..16], 0));
    header[16..24].copy_from_slice(&sum.to_le_bytes());
    std::fs::write(folder.file("rows"), &bytes).unwrap();
    let pool = HostPool::open(&config).unwrap();
    (0..ROWS).for_each(|row| check_row(&pool, row % LAYERS, row, 4));
    expect_error(stored(&pool).session(0), &["session is 0"]);
    drop(pool);
    assert!(std::fs::read(folder.file("rows")).unwrap() == bytes);
}

#[test]
fn after_a_loss_of_power_a_session_is_as_a_commit_left_it() {
    let crashes = if tier::thorough() { 4000 } else { 150 };
    let folder = Scratch::new();
    let config = kept(folder.file("rows"), SESSIONS);
    drop(HostPool::new(&config).unwrap());
    let (mut random, mut version, mut commits) = (SplitMix64::new(53), 0, 0);
    let mut sessions = [State::default(), State::default(), State::default()];
    for _ in 0..crashes {
        let (pool, volatile) = Volatile::open(&config);
        volatile.set_left(random.below(150));
        // A commit that was under way.
        let mut under_way = None;
        while under_way.is_none() {
            let at = random.below(3);
            let mut next = sessions[at].clone();
            if random.below(3) == 0 {
                next.versions.truncate(random.below(next.versions.len() + 1));
                next.blocks.truncate(next.versions.len().div_ceil(BLOCK));
            } else {
                let used = sessions.iter().flat_map(|state| state.blocks.clone());
                let used: Vec<_> = used.collect();
                let free = (0..(ROWS / BLOCK) as i32).find(|block| !used.contains(block));
                next.blocks.extend(free);
                version += 1;
                let room = next.blocks.len() * BLOCK - next.versions.len();
                let count = random.below(room.min(5) + 1);
                if next.write(&pool, count, version).is_err() {
                    break;
                }
            }
            match next.commit(&pool, at) {
                Ok(()) => (commits, sessions[at]) = (commits + 1, next),
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
    }
    println!("{}: {crashes} crashes, {commits} commits", tier::name());
    assert!(commits > crashes / 2);
}
