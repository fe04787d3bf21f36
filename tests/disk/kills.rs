//! A process that appends and flushes to a kept file is killed at random moments. After each kill every
//! flushed row is whole and right, and a session has the tokens of its last commit.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use avsg::disk::{PoolFile, PoolSessions};
use avsg::pool::{HostPool, PoolConfig};
use avsg_testkit::scratch::Scratch;
use avsg_testkit::splitmix::{SplitMix64, mix};
use avsg_testkit::tier;

use super::{config, expect_error, numbered, stored};

/// Environment variable that makes a process of this binary the writer: the number of the first append, and the
/// path of the file.
const WRITER: &str = "AVSG_DISK_KILLS_WRITER";
/// Environment variable that makes a process of this binary the creator of the file with this path.
const CREATOR: &str = "AVSG_DISK_KILLS_CREATOR";
const LAYERS: usize = 4;
const ROWS: usize = 300;
/// Rows behind these, which the session has.
const TOKENS: usize = 64;
const BYTES: usize = 1152;
/// Appends of one token between two flushes.
const INTERVAL: u64 = 7;

fn kept(path: PathBuf) -> PoolConfig {
    let sessions = PoolSessions { count: 1, rows: 4, bytes: 8, token_bytes: 8 };
    let file = PoolFile { keep: true, sessions, ..PoolFile::new(path) };
    config(LAYERS, ROWS + TOKENS, &[1024, 128], file)
}

/// Makes the session longer or, now and then, half as long; its bytes tell the append.
fn commit(pool: &HostPool, append: u64) {
    let length = stored(pool).session(0).unwrap().length;
    let end = if append.is_multiple_of(5) { length / 2 } else { TOKENS.min(length + 3) };
    for row in ROWS + length..ROWS + end {
        write(pool, row, append);
        stored(pool).write_tokens(row, &append.to_le_bytes()).unwrap();
    }
    let blocks: Vec<_> = (0..end.div_ceil(4)).map(|block| (ROWS / 4 + block) as i32).collect();
    stored(pool).commit_session(0, end, &blocks, &append.to_le_bytes()).unwrap();
}

/// Checks all tokens of the session, and returns the append that its bytes tell.
fn check_session(pool: &HostPool) -> u64 {
    let session = stored(pool).session(0).unwrap();
    for row in ROWS..ROWS + session.length {
        let (mut append, mut read) = ([0; 8], [0; BYTES]);
        stored(pool).read_tokens(row, &mut append).unwrap();
        for layer in 0..LAYERS {
            pool.read_row(layer, row, &mut read).unwrap();
            assert!(read[..] == bytes_of(layer, u64::from_le_bytes(append)), "row {row}");
        }
    }
    session.bytes.try_into().map_or(0, u64::from_le_bytes)
}

/// Returns the row of an append.
fn row_of(append: u64) -> usize {
    (mix(append) % ROWS as u64) as usize
}

/// Returns the bytes of a row of an append, which begin with the append's number.
fn bytes_of(layer: usize, append: u64) -> Vec<u8> {
    numbered(append, append * 31 + layer as u64, BYTES)
}

fn write(pool: &HostPool, row: usize, append: u64) {
    for layer in 0..LAYERS {
        pool.write_row(layer, row, &bytes_of(layer, append)).unwrap();
    }
}

/// Is the writer if the environment says so: it appends until it is killed, and tells each flush.
#[test]
fn writer() {
    let Ok(arguments) = std::env::var(WRITER) else { return };
    let (first, path) = arguments.split_once(' ').unwrap();
    let pool = HostPool::open(&kept(path.into())).unwrap();
    for append in first.parse::<u64>().unwrap().. {
        write(&pool, row_of(append), append);
        if append % INTERVAL == 0 {
            commit(&pool, append);
            let mut out = std::io::stdout().lock();
            writeln!(out, "flushed {append}").and_then(|()| out.flush()).unwrap();
        }
    }
}

/// Runs a writer, kills it after `delay` from its first flush, and returns the last append that it said was
/// flushed.
fn kill_one(path: &str, first: u64, delay: Duration) -> u64 {
    let mut writer = Command::new(std::env::current_exe().unwrap());
    writer.args(["--exact", "kills::writer", "--nocapture"]).stdout(Stdio::piped());
    let mut writer = writer.env(WRITER, format!("{first} {path}")).spawn().unwrap();
    let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines();
    let flushed = |line: &str| line.split_once("flushed ").and_then(|(_, n)| n.parse::<u64>().ok());
    let mut last = lines.by_ref().find_map(|line| flushed(&line.unwrap())).expect("a flush");
    let mut id = writer;
    let killer = thread::spawn(move || {
        thread::sleep(delay);
        id.kill().unwrap();
        id.wait().unwrap();
    });
    // The last line may be cut off.
    for line in lines.map_while(Result::ok) {
        last = flushed(&line).filter(|n| n % INTERVAL == 0 && *n > last).unwrap_or(last);
    }
    killer.join().unwrap();
    last
}

#[test]
fn every_flushed_row_is_whole_after_kills() {
    let kills = if tier::thorough() { 200 } else { 6 };
    let mut random = SplitMix64::new(28);
    let folder = Scratch::new();
    let path = folder.file("rows");
    let config = kept(path.clone());
    drop(HostPool::new(&config).unwrap());
    let mut rows = vec![None::<u64>; ROWS];
    let (mut first, mut whole, mut reported) = (1, 0, 0);
    for _ in 0..kills {
        let delay = Duration::from_micros(random.below(40_000) as u64);
        let last = kill_one(path.to_str().unwrap(), first, delay);
        (first..=last).for_each(|append| rows[row_of(append)] = Some(append));
        // An interval may have been flushed and not told, and another one been written.
        let later = last + 1..=last + 2 * INTERVAL;
        let pool = HostPool::open(&config).unwrap();
        let committed = check_session(&pool);
        assert!([last, last + INTERVAL].contains(&committed), "{committed} after {last}");
        for (row, known) in rows.iter_mut().enumerate() {
            let mut versions = vec![];
            let mut rewritten = later.clone().filter(|&append| row_of(append) == row);
            for layer in 0..LAYERS {
                let mut read = [0; BYTES];
                let Ok(()) = pool.read_row(layer, row, &mut read) else { continue };
                let append = u64::from_le_bytes(*read.first_chunk().unwrap());
                assert!(read[..] == bytes_of(layer, append), "a mix in row {row} of layer {layer}");
                assert!(Some(append) == *known || later.contains(&append) && row_of(append) == row);
                versions.push(append);
            }
            if rewritten.next().is_none() {
                let expected = known.map_or(vec![], |known| vec![known; LAYERS]);
                assert_eq!(versions, expected, "row {row}");
            }
            whole += versions.len();
            reported += LAYERS - versions.len();
            // What is not whole in all layers is written again before it is expected.
            let same = versions.len() == LAYERS && versions.windows(2).all(|two| two[0] == two[1]);
            *known = versions.first().copied().filter(|_| same);
            if !same {
                let append = last + 3 * INTERVAL + row as u64 * 1_000_000_007;
                write(&pool, row, append);
                *known = Some(append);
            }
        }
        pool.flush().unwrap();
        first = last + 3 * INTERVAL;
    }
    println!("{}: {kills} kills: {whole} rows whole, {reported} reported", tier::name());
    assert!(whole > 0);
}

/// Is the creator if the environment says so.
#[test]
fn creator() {
    if let Ok(path) = std::env::var(CREATOR) {
        HostPool::new(&kept(path.into())).unwrap();
    }
}

#[test]
fn a_file_whose_creation_was_killed_is_a_whole_pool_without_rows_or_refused() {
    let (mut random, mut opened) = (SplitMix64::new(29), 0);
    let folder = Scratch::new();
    let kills = if tier::thorough() { 200 } else { 8 };
    for kill in 0..kills {
        let path = folder.file(&format!("rows{kill}"));
        let mut creator = Command::new(std::env::current_exe().unwrap());
        creator.args(["--exact", "kills::creator"]).stdout(Stdio::null()).env(CREATOR, &path);
        let mut creator = creator.spawn().unwrap();
        while !path.exists() && creator.try_wait().unwrap().is_none() {
            thread::yield_now();
        }
        thread::sleep(Duration::from_micros(random.below(1500) as u64));
        creator.kill().unwrap();
        creator.wait().unwrap();
        match HostPool::open(&kept(path.clone())) {
            Ok(pool) => {
                assert_eq!(stored(&pool).session(0).unwrap().length, 0);
                assert!((0..ROWS).all(|row| pool.read_row(1, row, &mut [0; BYTES]).is_err()));
                opened += 1;
            }
            Err(error) => assert!(error.to_string().contains("not that of a pool"), "{error}"),
        }
        // What is there is not overwritten.
        expect_error(HostPool::new(&kept(path)), &["nothing is overwritten"]);
    }
    println!("{}: {kills} kills, {opened} pools", tier::name());
}
