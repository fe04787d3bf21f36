//! Each fault of a disk is an error that names the row, its offset and the errno, and what follows is right.

use std::time::{Duration, Instant};

use avsg::disk::{Direction, PoolFile, Reader};
use avsg::pool::HostPool;
use avsg_testkit::faulty_disk::{Fault, Faults};
use avsg_testkit::scratch::Scratch;

use super::{bytes_of, check_all, check_row, config, expect_error, write, write_and_flush};

const EINTR: i32 = 4;
pub const EIO: i32 = 5;
const EAGAIN: i32 = 11;
pub const ENOSPC: i32 = 28;
const ENODATA: i32 = 61;
const LAYERS: usize = 3;
const ROWS: usize = 64;
const BYTES: usize = 1350;
/// Three rows with checksums, padded to blocks of 512 or of 4096 bytes.
const RECORD: u64 = 4096;

fn pool(faults: &Faults, io_uring: bool, buffered: bool) -> HostPool {
    let (folder, timeout) = (Scratch::new(), Duration::from_millis(100));
    let file = PoolFile::new(folder.path());
    let file = PoolFile { io_uring, buffered, timeout, queue_bytes: 1, ..file };
    let config = config(LAYERS, ROWS, &[BYTES], file);
    let pool = HostPool::in_file(&config, true, &|disk| faults.wrap(disk)).unwrap();
    patiently(|| write(&pool, 0..ROWS, 0).and_then(|()| pool.flush()));
    pool
}

/// Repeats a call that a busy machine makes run out of time.
pub fn patiently(mut call: impl FnMut() -> avsg::Result<()>) {
    while let Err(error) = call() {
        assert!(error.to_string().contains("timed out"), "{error}");
    }
}

/// Reads the records of these rows, and returns the places of those that were read.
fn read(reader: &mut Reader, rows: &[usize]) -> (avsg::Result<()>, Vec<usize>) {
    // Reads may be under way in the end.
    let memory = vec![0u8; rows.len() * RECORD as usize + 4096].leak().as_mut_ptr();
    let memory = memory.wrapping_add(memory.align_offset(4096));
    let mut done = vec![];
    for (n, &row) in rows.iter().enumerate() {
        // SAFETY: each record has its own place in the memory, which is never freed.
        if let Err(error) = unsafe { reader.push(0, row, memory.wrapping_add(n * RECORD as usize)) }
        {
            return (Err(error), done);
        }
    }
    let result = reader.run(&mut |n| done.push(n));
    done.sort_unstable();
    (result, done)
}

#[test]
fn short_and_interrupted_operations_are_continued() {
    for io_uring in [true, false] {
        let faults = Faults::default();
        // Direct operations cannot move parts of a block.
        let pool = pool(&faults, io_uring, true);
        let [eintr, eagain] = [EINTR, EAGAIN].map(Fault::Errno);
        for (version, fault) in (1..).zip([Fault::Short(512), Fault::Short(1100), eintr, eagain]) {
            faults.set(fault, Direction::Write, 0..u64::MAX, 40);
            write_and_flush(&pool, 0..ROWS, version);
            faults.set(fault, Direction::Read, 0..u64::MAX, 40);
            check_all(&pool, |_, _| version);
            faults.set(fault, Direction::Read, 0..u64::MAX, 3);
            check_row(&pool, 1, 9, version);
        }
    }
}

#[test]
fn a_failed_read_names_row_offset_and_errno_and_spoils_no_other() {
    for io_uring in [true, false] {
        let faults = Faults::default();
        let pool = pool(&faults, io_uring, false);
        let mut reader = Reader::new(pool.store().unwrap(), ROWS).unwrap();
        let rows = [40, 3, 17, 18, 60];
        for (errno, words) in [(EIO, "Input/output error"), (ENODATA, "No data available")] {
            let bytes = 17 * RECORD..18 * RECORD;
            faults.set(Fault::Errno(errno), Direction::Read, bytes, usize::MAX);
            let (result, done) = read(&mut reader, &rows);
            let (named, at) = ("row 17 of layers 0 to 2", format!("at byte {} of", 17 * RECORD));
            expect_error(result, &[named, &at, words]);
            // Rows 17 and 18 are neighbours and share a read.
            assert_eq!(done, [0, 1, 4]);
            expect_error(pool.read_row(2, 17, &mut [0; BYTES]), &[named, words]);
            faults.clear();
            let (result, done) = read(&mut reader, &rows);
            result.unwrap();
            assert_eq!(done, [0, 1, 2, 3, 4]);
        }
    }
}

#[test]
fn a_failed_write_is_reported_kept_and_tried_again() {
    for io_uring in [true, false] {
        let faults = Faults::default();
        let pool = pool(&faults, io_uring, false);
        faults.set(Fault::Errno(ENOSPC), Direction::Write, 5 * RECORD..6 * RECORD, usize::MAX);
        let written = write(&pool, 0..8, 1);
        let row = format!("row 5 of layers 0 to 2 at byte {}", 5 * RECORD);
        let parts = [&row[..], "No space left", "free space"];
        expect_error(written.and_then(|()| pool.flush()), &parts);
        expect_error(pool.flush(), &["row 5"]);
        // The row is read from memory.
        check_row(&pool, 1, 5, 1);
        faults.clear();
        // The call reports what happened before the fault ended, or nothing did.
        let _ = pool.flush();
        write_and_flush(&pool, 0..8, 2);
        check_all(&pool, |_, row| if row < 8 { 2 } else { 0 });
    }
}

#[test]
fn a_failed_read_of_shared_blocks_loses_no_row() {
    let faults = Faults::default();
    let pool = pool(&faults, true, false);
    faults.set(Fault::Errno(EIO), Direction::Read, 2 * RECORD..3 * RECORD, usize::MAX);
    // One layer of each record, whose blocks hold parts of the others.
    for row in 0..4 {
        pool.write_row(1, row, &bytes_of(1, row, 1, BYTES)).unwrap();
    }
    let text = expect_error(pool.flush(), &[]);
    assert!(text.starts_with("read for row 2 of layers 0 to 2"), "{text}");
    faults.clear();
    pool.flush().unwrap();
    check_all(&pool, |layer, row| usize::from(layer == 1 && row < 4));
}

#[test]
fn a_slow_device_is_an_error_in_time_and_its_late_reads_are_waited_for() {
    let faults = Faults::default();
    let pool = pool(&faults, true, false);
    let mut reader = Reader::new(pool.store().unwrap(), ROWS).unwrap();
    faults.set_all(Fault::Slow, Direction::Read);
    let start = Instant::now();
    expect_error(read(&mut reader, &[1, 5, 9]).0, &["3 operations", "none completed in 100ms"]);
    assert!(start.elapsed() < Duration::from_secs(10));
    expect_error(read(&mut reader, &[1]).0, &["reads under way is 3"]);
    assert!(!reader.settle(Duration::from_millis(5)));
    faults.clear();
    let mut settled = |rows: &[usize]| {
        assert!(reader.settle(Duration::from_mins(1)));
        read(&mut reader, rows).0
    };
    patiently(|| settled(&[1, 5, 9]));

    // Appends wait for room, not longer than the limit.
    faults.set_all(Fault::Slow, Direction::Write);
    expect_error(write(&pool, 0..ROWS, 1), &["none completed in 100ms"]);
    // The row and the record are read from memory.
    check_row(&pool, 0, 0, 1);
    settled(&[0, 1, 63]).unwrap();
    expect_error(pool.flush(), &["none completed"]);
    faults.clear();
    patiently(|| write(&pool, 0..ROWS, 2).and_then(|()| pool.flush()));
    patiently(|| settled(&[0, 1, 63]));
    check_all(&pool, |_, _| 2);
}

#[test]
fn without_io_uring_rows_are_read_by_preadv() {
    let faults = Faults::default();
    faults.refuse_queues();
    let pool = pool(&faults, true, false);
    assert!(!pool.store().unwrap().info().io_uring);
    assert!(!Reader::new(pool.store().unwrap(), 1).unwrap().io_uring());
    check_all(&pool, |_, _| 0);
}

#[test]
fn neighbours_share_a_read() {
    let pool = pool(&Faults::default(), true, false);
    let mut reader = Reader::new(pool.store().unwrap(), ROWS).unwrap();
    let before = pool.store().unwrap().stats();
    read(&mut reader, &[9, 30, 8, 10, 31, 50]).0.unwrap();
    let after = pool.store().unwrap().stats();
    assert_eq!((after.reads - before.reads, after.records_read - before.records_read), (3, 6));
    assert_eq!(after.read_bytes - before.read_bytes, 6 * RECORD);
}
