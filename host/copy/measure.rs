//! Measurements of the copiers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::Copier;
use crate::mapping::Mapping;
use crate::measured::Measured;
use crate::{Result, available_memory, invalid, reserve};

const WHAT: &str = "copy measurement";
/// The copiers that are compared at start-up. Two distances each suffice, because the speed is flat
/// over a wide range of distances.
const CANDIDATES: [Copier; 5] = [
    Copier::Plain,
    Copier::Prefetch { ahead: 1 },
    Copier::Prefetch { ahead: 4 },
    Copier::Stream { ahead: 1 },
    Copier::Stream { ahead: 4 },
];
/// Bytes at either end of the measurement at start-up: one hugepage, like the memory of a pool.
const MEASURED_BYTES: usize = 2 << 20;
/// Divisor of the rows that gives the rows that each run copies, so that all runs together stay
/// below 10 ms.
const ROWS_DIVISOR: usize = 4;
/// The largest number of threads that copy; more do not change the result.
const MAX_THREADS: usize = 8;
/// The longest row in bytes that is measured; longer rows behave alike.
const MAX_ROW_BYTES: usize = 64 << 10;
/// A copier replaces a simpler one only if it is faster by this factor; less is noise.
const MARGIN: f64 = 1.03;

/// The fastest copier for each length of a row.
static FASTEST: Measured<usize, Copier, 16> = Measured::new();

impl Copier {
    /// Returns the fastest copier for rows of `row_bytes` bytes, as [`Self::measure`] chose it when
    /// this process first asked for that length. Sixteen lengths are kept; others are measured at
    /// each call.
    pub fn fastest(row_bytes: usize, threads: usize, run: &RunOnThreads<'_>) -> Self {
        let row_bytes = row_bytes.clamp(1, MAX_ROW_BYTES);
        let measure = || Ok(Self::measure(row_bytes, threads, run));
        FASTEST.get_or_measure(row_bytes, measure).unwrap_or(Self::Plain)
    }

    /// Measures the copiers for a few milliseconds on cold rows of `row_bytes` bytes, on as many
    /// threads as will copy, because they share the memory's bandwidth. `run` runs its task on that
    /// many threads. Returns the fastest; [`Copier::Plain`] if there is no memory for the
    /// measurement. Both ends are flushed from the caches before each run, as they are cold when a
    /// step begins.
    pub fn measure(row_bytes: usize, threads: usize, run: &RunOnThreads<'_>) -> Self {
        let start = Instant::now();
        let row_bytes = row_bytes.clamp(1, MAX_ROW_BYTES);
        let rows = MEASURED_BYTES.div_ceil(row_bytes).min(1 << 14);
        let benchmark = |seed| {
            let mut benchmark = CopyBenchmark::new(rows, row_bytes, seed)?;
            benchmark.moves.truncate(rows / ROWS_DIVISOR);
            Ok(benchmark)
        };
        let benchmarks = (1..=threads.clamp(1, MAX_THREADS) as u64).map(benchmark);
        let benchmarks = benchmarks.collect::<Result<heapless::Vec<_, MAX_THREADS>>>();
        let Ok(benchmarks) = benchmarks else { return Self::Plain };
        let (mut best, mut best_time) = (Self::Plain, f64::INFINITY);
        for copier in CANDIDATES {
            // The least time of three counts, because disturbances only make a run slower.
            let time = (0..3).map(|_| time_of(&benchmarks, copier, run)).min().unwrap_or_default();
            let time = time as f64;
            if time * MARGIN < best_time {
                (best, best_time) = (copier, time);
            }
        }
        let took = start.elapsed();
        log::info!("rows of {row_bytes} bytes are copied by {best}, as measured in {took:.1?}");
        best
    }
}

/// Runs a task once with each number below the first argument, on that many threads if they are
/// free.
pub type RunOnThreads<'a> = dyn Fn(usize, &(dyn Fn(usize) + Sync)) + 'a;

/// Runs all benchmarks, one thread each, and returns the nanoseconds of the slowest.
fn time_of(benchmarks: &[CopyBenchmark], copier: Copier, run: &RunOnThreads<'_>) -> u64 {
    let slowest = AtomicU64::new(0);
    run(benchmarks.len(), &|index| {
        let Some(benchmark) = benchmarks.get(index) else { return };
        benchmark.flush_caches();
        let time = u64::try_from(benchmark.run(copier).as_nanos()).unwrap_or(u64::MAX);
        slowest.fetch_max(time, Ordering::Relaxed);
    });
    slowest.into_inner()
}

/// Copies `rows` rows of `row_bytes` bytes once, in an order drawn from `seed`, to slots in another
/// order. Returns the speed of this one thread in 10^9 bytes per second. It allocates twice the
/// rows' bytes, which must be several times the size of the last cache for an honest figure.
///
/// # Errors
/// If a number is 0 or the memory is not available.
pub fn measure_copy(rows: usize, row_bytes: usize, copier: Copier, seed: u64) -> Result<f64> {
    let benchmark = CopyBenchmark::new(rows, row_bytes, seed)?;
    let time = benchmark.run(copier).as_secs_f64();
    Ok(benchmark.moves.len() as f64 * row_bytes as f64 / time.max(1e-9) / 1e9)
}

/// Rows, slots, and the pairs (row, slot) that are copied.
struct CopyBenchmark {
    rows: Mapping,
    slots: Mapping,
    row_bytes: usize,
    moves: Vec<(u32, u32)>,
}

impl CopyBenchmark {
    fn new(rows: usize, row_bytes: usize, seed: u64) -> Result<Self> {
        crate::rows::at_least_one("rows", rows)?;
        crate::rows::at_least_one("row bytes", row_bytes)?;
        let len = rows.checked_mul(row_bytes);
        let too_many = || {
            invalid!(WHAT is format!("{rows} rows"), but
                "rows and slots must fit the address space, and 2^32 rows"; "measure fewer rows")
        };
        let len = len.filter(|_| u32::try_from(rows).is_ok()).ok_or_else(too_many)?;
        let order_bytes = rows * size_of::<(u32, u32)>();
        let total = len.checked_mul(2).and_then(|both| both.checked_add(2 * order_bytes));
        available_memory::check(WHAT, total.ok_or_else(too_many)?)?;
        let (from, to) = (shuffled(rows, seed)?, shuffled(rows, seed ^ 0x9E37_79B9_7F4A_7C15)?);
        let mut moves = reserve::with_capacity(WHAT, rows)?;
        moves.extend(from.into_iter().zip(to));
        let (rows, slots) = (Mapping::anonymous(WHAT, len)?, Mapping::anonymous(WHAT, len)?);
        Ok(Self { rows, slots, row_bytes, moves })
    }

    fn flush_caches(&self) {
        flush(&self.rows);
        flush(&self.slots);
    }

    fn run(&self, copier: Copier) -> Duration {
        let (moves, bytes) = (self.moves.as_slice(), self.row_bytes);
        let row = |i: usize| self.rows.ptr().wrapping_add(moves[i].0 as usize * bytes);
        let slot = |i: usize| self.slots.ptr().wrapping_add(moves[i].1 as usize * bytes);
        let start = Instant::now();
        // SAFETY: both mappings hold at least `moves.len()` rows of `bytes` bytes, and the indices
        // are parts of permutations of their rows, so the slots are distinct; no other thread uses
        // the mappings.
        unsafe { copier.copy_rows(moves.len(), bytes, |i| row(i).cast_const(), slot) };
        start.elapsed()
    }
}

/// Returns a random permutation of 0..n (Fisher and Yates).
fn shuffled(n: usize, seed: u64) -> Result<Vec<u32>> {
    let mut order = reserve::with_capacity(WHAT, n)?;
    order.extend(0..n as u32);
    let mut state = seed;
    for last in (1..n).rev() {
        // The random numbers are SplitMix64's, for which any seed is valid, 0 included.
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let random = z ^ (z >> 31);
        // The high half of the product is below `last + 1`.
        let pick = (u128::from(random) * (last as u128 + 1)) >> 64;
        order.swap(last, pick as usize);
    }
    Ok(order)
}

/// Flushes a mapping from all caches. Without CLFLUSHOPT it does nothing: CLFLUSH waits for each
/// line and takes 15 times as long.
fn flush(mapping: &Mapping) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::{asm, x86_64 as x86};
        // CLFLUSHOPT is bit 23 of EBX in leaf 7. CPUID returns data of another leaf for leaves
        // above the highest.
        if x86::__cpuid(0).eax < 7 || x86::__cpuid_count(7, 0).ebx & (1 << 23) == 0 {
            return;
        }
        for at in (0..mapping.len()).step_by(64) {
            let line = mapping.ptr().wrapping_add(at);
            // SAFETY: the line is inside the mapping, a flush changes no contents, and CPUID has
            // reported the instruction.
            unsafe { asm!("clflushopt [{}]", in(reg) line, options(nostack, preserves_flags)) };
        }
        // SAFETY: every x86_64 CPU has SSE2.
        unsafe { x86::_mm_mfence() };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = mapping;
}
