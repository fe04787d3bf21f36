//! A session opens as its last commit left it, whatever happened since, and nothing that it has can be overwritten.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use avsg::disk::{PoolFile, PoolSessions, Session};
use avsg::pool::{HostPool, PoolConfig};
use avsg_testkit::scratch::Scratch;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{check_row, config, expect_error, numbered, stored, write_and_flush};

pub(super) const LAYERS: usize = 2;
pub(super) const ROWS: usize = 64;
pub(super) const BYTES: usize = 700;
/// Rows of a block.
pub(super) const BLOCK: usize = 8;
const TOKEN: usize = 20;
pub(super) const SESSIONS: PoolSessions =
    PoolSessions { count: 3, rows: BLOCK, bytes: 30, token_bytes: TOKEN };
const HEADER: u64 = 16384;

pub(super) fn kept(path: PathBuf, sessions: PoolSessions) -> PoolConfig {
    let file = PoolFile { keep: true, buffered: true, queue_bytes: 1, ..PoolFile::new(path) };
    config(LAYERS, ROWS, &[BYTES], PoolFile { sessions, ..file })
}

/// Returns the bytes of a version of a row, which begin with the version.
pub(super) fn bytes_of(layer: usize, row: usize, version: u64) -> Vec<u8> {
    numbered(version, version * 1009 + (layer * ROWS + row) as u64, BYTES)
}

/// What a session is to be: the version of each token, and the blocks.
#[derive(Clone, Default, Debug, PartialEq)]
pub(super) struct State {
    pub versions: Vec<u64>,
    pub blocks: Vec<i32>,
}

impl State {
    pub fn row(&self, token: usize) -> usize {
        self.blocks[token / BLOCK] as usize * BLOCK + token % BLOCK
    }

    /// Returns whether the session has a row.
    pub fn has(&self, row: usize) -> bool {
        (0..self.versions.len()).any(|token| self.row(token) == row)
    }

    /// Adds tokens of a version, and writes them without a commit.
    pub fn write(&mut self, pool: &HostPool, count: usize, version: u64) -> avsg::Result<()> {
        for _ in 0..count {
            self.versions.push(version);
            let row = self.row(self.versions.len() - 1);
            for layer in 0..LAYERS {
                pool.write_row(layer, row, &bytes_of(layer, row, version))?;
            }
            stored(pool).write_tokens(row, &numbered(version, row as u64, TOKEN))?;
        }
        Ok(())
    }

    fn bytes(&self) -> Vec<u8> {
        vec![self.versions.len() as u8; self.versions.len() % 30]
    }

    pub fn commit(&self, pool: &HostPool, session: usize) -> avsg::Result<()> {
        stored(pool).commit_session(session, self.versions.len(), &self.blocks, &self.bytes())
    }

    /// Checks that a session is this one, with all of its rows and data.
    #[track_caller]
    pub fn check(&self, pool: &HostPool, session: usize) {
        let (length, blocks, bytes) = (self.versions.len(), self.blocks.clone(), self.bytes());
        assert_eq!(stored(pool).session(session).unwrap(), Session { length, blocks, bytes });
        for (token, &version) in self.versions.iter().enumerate() {
            let (row, mut read, mut data) = (self.row(token), [0; BYTES], [0; TOKEN]);
            for layer in 0..LAYERS {
                pool.read_row(layer, row, &mut read).unwrap();
                assert!(read[..] == bytes_of(layer, row, version));
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

#[test]
fn what_a_session_has_is_not_overwritten_and_a_wrong_commit_changes_nothing() {
    let folder = Scratch::new();
    let config = kept(folder.file("rows"), SESSIONS);
    let pool = HostPool::new(&config).unwrap();
    assert!(pool.bytes() <= HostPool::plan_bytes(&config).unwrap());
    let one = state(&pool, 0, &[2], 5, 3);
    let parts = ["a session keeps the first 5 rows", "commit the session without them"];
    expect_error(pool.write_row(1, 20, &[0; BYTES]), &parts);
    expect_error(pool.write_rows(&[0, 1], 16, &[0; 2 * BYTES]), &parts);
    expect_error(stored(&pool).write_tokens(20, &[0; TOKEN]), &parts);
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
