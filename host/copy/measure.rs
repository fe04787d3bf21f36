//! Which copier is the fastest here, and how fast.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use super::Copier;
use crate::mapping::Mapping;
use crate::{Error, Result, memory};

const WHAT: &str = "copy measurement";
/// What is tried at start-up. Two distances each: the best one is flat over a wide range.
const TRIED: [Copier; 5] = [
    Copier::Plain,
    Copier::Prefetch { ahead: 1 },
    Copier::Prefetch { ahead: 4 },
    Copier::Stream { ahead: 1 },
    Copier::Stream { ahead: 4 },
];
/// Bytes at either end of the trial at start-up: one hugepage, as a good pool has them.
const TRIAL: usize = 2 << 20;
/// The part of them that each run copies: all runs together stay well below 10 ms.
const SHARE: usize = 4;
/// More threads than this do not change the answer.
const MOST_THREADS: usize = 8;
/// Longer rows than this behave alike.
const LONGEST: usize = 64 << 10;
/// A distance this much faster than a simpler choice is worth it; less is noise.
const MARGIN: f64 = 1.03;

impl Copier {
    /// Tries the copiers on cold rows of `row_bytes` bytes for a few milliseconds, on as many threads
    /// as will copy (they share the memory's bandwidth, which changes the answer), and returns the
    /// fastest; [`Copier::Plain`] where no memory for the trial is to be had. Both ends are flushed
    /// from the caches before each trial, as the two are when a step begins.
    pub fn measure(row_bytes: usize, threads: usize) -> Self {
        let row_bytes = row_bytes.clamp(1, LONGEST);
        let rows = TRIAL.div_ceil(row_bytes).min(1 << 14);
        let trial = |seed| {
            let mut trial = Trial::new(rows, row_bytes, seed)?;
            trial.moves.truncate(rows / SHARE);
            Ok(trial)
        };
        let trials: Result<Vec<Trial>> =
            (1..=threads.clamp(1, MOST_THREADS) as u64).map(trial).collect();
        let Ok(trials) = trials else { return Self::Plain };
        let (mut best, mut best_time) = (Self::Plain, f64::INFINITY);
        for copier in TRIED {
            // The quickest of three, because whatever disturbs a run makes it slower.
            let time = (0..3).map(|_| together(&trials, copier)).min().unwrap_or_default();
            let time = time.as_secs_f64();
            if time * MARGIN < best_time {
                (best, best_time) = (copier, time);
            }
        }
        best
    }
}

/// The time of the slowest of several threads that copy at once.
fn together(trials: &[Trial], copier: Copier) -> Duration {
    let start = Barrier::new(trials.len());
    thread::scope(|scope| {
        let run = |trial: &Trial| {
            trial.chill();
            start.wait();
            trial.run(copier)
        };
        let others: Vec<_> =
            trials[1..].iter().map(|trial| scope.spawn(move || run(trial))).collect();
        let mine = run(&trials[0]);
        // A thread that panicked has no time; the copiers do not panic.
        others.into_iter().filter_map(|t| t.join().ok()).fold(mine, Duration::max)
    })
}

/// Copies `rows` rows of `row_bytes` bytes once, in an order drawn from `seed`, to slots in another,
/// and returns 10^9 bytes copied per second of this one thread. Takes twice the rows' memory, or
/// says that there is too little; make it several times the last cache for an honest figure.
pub fn measure_copy(rows: usize, row_bytes: usize, copier: Copier, seed: u64) -> Result<f64> {
    let trial = Trial::new(rows, row_bytes, seed)?;
    let time = trial.run(copier).as_secs_f64();
    Ok(trial.moves.len() as f64 * row_bytes as f64 / time.max(1e-9) / 1e9)
}

/// Rows, slots, and which row goes where.
struct Trial {
    rows: Mapping,
    slots: Mapping,
    row_bytes: usize,
    moves: Vec<(u32, u32)>,
}

impl Trial {
    fn new(rows: usize, row_bytes: usize, seed: u64) -> Result<Self> {
        crate::rows::at_least_one("rows", rows)?;
        crate::rows::at_least_one("row bytes", row_bytes)?;
        let len = rows.checked_mul(row_bytes);
        let too_many = || {
            let limit = "rows and slots must fit the address space, and 2^32 rows";
            Error::invalid(WHAT, format!("{rows} rows"), limit, "measure fewer rows")
        };
        let len = len.filter(|_| u32::try_from(rows).is_ok()).ok_or_else(too_many)?;
        let order_bytes = rows * size_of::<(u32, u32)>();
        let total = len.checked_mul(2).and_then(|both| both.checked_add(2 * order_bytes));
        memory::check(WHAT, total.ok_or_else(too_many)?)?;
        let (from, to) = (shuffled(rows, seed), shuffled(rows, seed ^ 0x9E37_79B9_7F4A_7C15));
        let moves = from.into_iter().zip(to).collect();
        let (rows, slots) = (Mapping::anonymous(WHAT, len)?, Mapping::anonymous(WHAT, len)?);
        Ok(Self { rows, slots, row_bytes, moves })
    }

    /// Drives both ends out of the caches.
    fn chill(&self) {
        flush(&self.rows);
        flush(&self.slots);
    }

    fn run(&self, copier: Copier) -> Duration {
        let (moves, bytes) = (self.moves.as_slice(), self.row_bytes);
        let row = |i: usize| self.rows.ptr().wrapping_add(moves[i].0 as usize * bytes);
        let slot = |i: usize| self.slots.ptr().wrapping_add(moves[i].1 as usize * bytes);
        let start = Instant::now();
        // SAFETY: both mappings hold `moves.len()` rows of `bytes` bytes, the indices are
        // permutations of that range, so slots are distinct; the mappings are this thread's.
        unsafe { copier.copy_rows(moves.len(), bytes, |i| row(i).cast_const(), slot) };
        start.elapsed()
    }
}

/// A permutation of 0..n by Fisher and Yates.
fn shuffled(n: usize, seed: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..n as u32).collect();
    let mut state = seed;
    for last in (1..n).rev() {
        // SplitMix64: any seed will do, 0 included.
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let random = z ^ (z >> 31);
        // The high half of the product, which is below `last + 1`.
        let pick = (u128::from(random) * (last as u128 + 1)) >> 64;
        order.swap(last, pick as usize);
    }
    order
}

/// Drives a mapping out of all caches, or leaves it where there is no unprivileged way that is quick
/// enough: CLFLUSH, which waits for each line, takes 15 times as long as CLFLUSHOPT.
fn flush(mapping: &Mapping) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::{asm, x86_64 as x86};
        // Leaf 7, EBX bit 23; beyond the highest leaf the answer is junk of another leaf.
        if x86::__cpuid(0).eax < 7 || x86::__cpuid_count(7, 0).ebx & (1 << 23) == 0 {
            return;
        }
        for at in (0..mapping.len()).step_by(64) {
            let line = mapping.ptr().wrapping_add(at);
            // SAFETY: the line is inside the mapping, flushing changes no contents, and CPUID has
            // said that the instruction exists.
            unsafe { asm!("clflushopt [{}]", in(reg) line, options(nostack, preserves_flags)) };
        }
        // SAFETY: SSE2 is part of every x86_64.
        unsafe { x86::_mm_mfence() };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = mapping;
}
