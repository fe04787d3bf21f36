//! Tables outside of the caches, which are read in order before a plan.
//!
//! A plan reads the lines of its table in the order of the hash, which no prefetcher follows. A server with
//! many layers and requests has more tables than the caches hold, and each plan would then wait for memory
//! again and again. Several streams that are read in turns run at the memory's own speed, so a cold table is
//! read first, whole: on an AMD Zen 3, the 172 KB of a table with S = 8192 take 7 us in eight streams and 12
//! in one, and a plan takes 17 us with the read and 33 us without it. A warm table costs the sample, and about
//! one time in ten a read of 2 us, because the sample was slow for another reason.

use core::hint::black_box;
use std::time::{Duration, Instant};

/// The words of a cache line.
const LINE: usize = 16;
/// The streams, one for each eighth of the table. Four take a tenth longer, and 16 are no faster.
const STREAMS: usize = 8;
/// The lines whose reading is timed.
const SAMPLE: usize = 16;
/// The time of the sample from which a table is cold. With the clock's own, the sample takes 65 to 140 ns
/// from the L2 cache, and from memory 300 to 550 ns (AMD Zen 3).
const COLD: Duration = Duration::from_nanos(110);

/// Reads a table in order if its links, which begin at word `links`, are not in a cache.
pub(super) fn read_if_cold(table: &[i32], links: usize) {
    let start = Instant::now();
    let part = (table.len() - links) / SAMPLE;
    // The lines are at other places of their parts, so that no prefetcher takes them for a stream.
    let sample = (0..SAMPLE).map(|n| table[links + n * part + n * 5 * LINE % part]);
    black_box(sample.fold(0, |all, word| all | word));
    if start.elapsed() >= COLD {
        read(table);
    }
}

/// Reads one word of each line.
fn read(table: &[i32]) {
    let part = table.len() / STREAMS;
    let mut all = 0;
    for at in (0..part).step_by(LINE) {
        for stream in 0..STREAMS {
            all |= table[stream * part + at];
        }
    }
    black_box(all);
}
