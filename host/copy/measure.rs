//! The speed of a copier on this machine.

use std::time::Instant;

use super::Copier;
use crate::system::mapping::Mapping;
use crate::system::{available_memory, reserve};
use crate::{Result, invalid, rows};

const WHAT: &str = "copy measurement";
/// Primes above the number of rows. Row i of the order is i times a prime, modulo the number of rows, which
/// is a permutation that no prefetcher follows.
const PRIMES: [u64; 2] = [4_294_967_311, 6_442_450_967];

/// Copies `rows` rows of `row_bytes` bytes once to as many slots, both in scattered orders. Returns the
/// speed of this one thread in 10^9 bytes per second. It allocates twice the rows' bytes, which must be
/// several times the size of the last cache for an honest figure.
///
/// # Errors
/// If a number is 0 or the memory is not available.
pub fn measure_copy(rows: usize, row_bytes: usize, copier: Copier) -> Result<f64> {
    rows::at_least_one("rows", rows)?;
    rows::at_least_one("row bytes", row_bytes)?;
    let count = u32::try_from(rows).ok();
    let bytes = count.and_then(|_| rows.checked_mul(row_bytes)?.checked_mul(2));
    let bytes = bytes.and_then(|both| both.checked_add(rows * size_of::<[usize; 2]>()));
    let bytes = bytes.ok_or_else(|| {
        invalid!(WHAT is format!("{rows} rows"), but
            "rows and slots must fit the address space, and 2^32 rows"; "measure fewer rows")
    })?;
    available_memory::check(WHAT, bytes)?;
    let mut moves = reserve::with_capacity(WHAT, rows)?;
    moves.extend(
        (0..rows as u64).map(|i| PRIMES.map(|p| (i * (p % rows as u64) % rows as u64) as usize)),
    );
    let [from, to] = [(); 2].map(|()| Mapping::anonymous(WHAT, rows * row_bytes));
    let (from, to) = (from?, to?);
    let at = |memory: &Mapping, row: usize| memory.ptr().wrapping_add(row * row_bytes);
    let start = Instant::now();
    // SAFETY: both mappings hold `rows` rows of `row_bytes` bytes, and the indices are permutations of
    // them, so the slots are distinct; no other thread uses the mappings.
    unsafe {
        let source = |i: usize| at(&from, moves[i][0]).cast_const();
        copier.copy_rows(rows, row_bytes, source, |i: usize| at(&to, moves[i][1]));
    }
    let time = start.elapsed().as_secs_f64();
    Ok((rows * row_bytes) as f64 / time.max(1e-9) / 1e9)
}
