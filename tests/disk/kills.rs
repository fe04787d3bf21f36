//! A process that commits a session to a kept file is killed at random moments. After each kill the session has the rows
//! and the data of its last commit.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use avsg::disk::PoolFile;
use avsg::pool::{HostPool, PoolConfig};
use avsg_testkit::scratch::Scratch;
use avsg_testkit::splitmix::SplitMix64;
use avsg_testkit::tier;

use super::sessions::{BLOCK, BYTES, LAYERS, ROWS, SESSIONS, bytes_of};
use super::{config, stored};

/// Environment variable that makes a process of this binary the writer: the number of the first commit, and the
/// path of the file.
const WRITER: &str = "AVSG_DISK_KILLS_WRITER";

fn kept(path: PathBuf) -> PoolConfig {
    let file = PoolFile { keep: true, sessions: SESSIONS, ..PoolFile::new(path) };
    config(LAYERS, ROWS, &[BYTES], file)
}

/// Makes the session longer or, now and then, half as long; its bytes tell the number of the commit.
fn commit(pool: &HostPool, number: u64) {
    let length = stored(pool).session(0).unwrap().length;
    let end = if number.is_multiple_of(5) { length / 2 } else { ROWS.min(length + 3) };
    for row in length..end {
        for layer in 0..LAYERS {
            pool.write_row(layer, row, &bytes_of(layer, row, number)).unwrap();
        }
        let data = number.to_le_bytes();
        stored(pool).write_tokens(row, &[&data[..], &[0; 12]].concat()).unwrap();
    }
    let blocks: Vec<_> = (0..end.div_ceil(BLOCK) as i32).collect();
    stored(pool).commit_session(0, end, &blocks, &number.to_le_bytes()).unwrap();
}

/// Checks all tokens of the session, and returns the number of its last commit.
fn check_session(pool: &HostPool) -> u64 {
    let session = stored(pool).session(0).unwrap();
    for row in 0..session.length {
        let (mut data, mut read) = ([0; 20], [0; BYTES]);
        stored(pool).read_tokens(row, &mut data).unwrap();
        let number = u64::from_le_bytes(*data.first_chunk().unwrap());
        for layer in 0..LAYERS {
            pool.read_row(layer, row, &mut read).unwrap();
            assert!(read[..] == bytes_of(layer, row, number), "row {row}");
        }
    }
    session.bytes.try_into().map_or(0, u64::from_le_bytes)
}

/// Is the writer if the environment says so: it commits until it is killed, and tells each commit.
#[test]
fn writer() {
    let Ok(arguments) = std::env::var(WRITER) else { return };
    let (first, path) = arguments.split_once(' ').unwrap();
    let pool = HostPool::open(&kept(path.into())).unwrap();
    for number in first.parse::<u64>().unwrap().. {
        commit(&pool, number);
        let mut out = std::io::stdout().lock();
        writeln!(out, "commit {number}.").and_then(|()| out.flush()).unwrap();
    }
}

/// Runs a writer, kills it after `delay` from its first commit, and returns the last commit that it told.
fn kill_one(path: &str, first: u64, delay: Duration) -> u64 {
    let mut writer = Command::new(std::env::current_exe().unwrap());
    writer.args(["--exact", "kills::writer", "--nocapture"]).stdout(Stdio::piped());
    let mut writer = writer.env(WRITER, format!("{first} {path}")).spawn().unwrap();
    let lines = BufReader::new(writer.stdout.take().unwrap()).lines();
    // The last line may be cut off.
    let number = |line: String| line.split_once("commit ")?.1.strip_suffix('.')?.parse().ok();
    let mut told = lines.map_while(Result::ok).filter_map(number);
    let first = told.next().expect("a commit");
    let killer = thread::spawn(move || {
        thread::sleep(delay);
        writer.kill().unwrap();
        writer.wait().unwrap();
    });
    let last = told.last().unwrap_or(first);
    killer.join().unwrap();
    last
}

/// Opens the file. A child of another test that has not called `exec` yet may hold the lock of an earlier opening.
fn opened(config: &PoolConfig) -> HostPool {
    let mut tries = (0..60).map(|_| HostPool::open(config));
    tries
        .find(|pool| !matches!(pool, Err(error) if error.to_string().contains("another pool")))
        .unwrap()
        .unwrap()
}

#[test]
fn after_a_kill_a_session_is_as_its_last_commit_left_it() {
    let kills = if tier::thorough() { 200 } else { 6 };
    let (mut random, mut next, folder) = (SplitMix64::new(28), 1, Scratch::new());
    let path = folder.file("rows");
    let config = kept(path.clone());
    drop(HostPool::new(&config).unwrap());
    for _ in 0..kills {
        let delay = Duration::from_micros(random.below(40_000) as u64);
        let last = kill_one(path.to_str().unwrap(), next, delay);
        let committed = check_session(&opened(&config));
        // A commit may have been made and not told.
        assert!([last, last + 1].contains(&committed), "{committed} after {last}");
        next = committed + 1;
    }
    println!("{}: {kills} kills, {next} commits", tier::name());
}
