//! Copies between private bytes and shared rows, word by word with relaxed atomics.
//!
//! Another thread may write the row meanwhile. Plain copies would then be undefined behaviour;
//! relaxed ones give old or new words, at the price of eight bytes at a time instead of 64. How a
//! row is split into bytes and words depends on its address and length only, so all copies of one
//! row agree on it and no two accesses of different size ever meet.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

const WORD: usize = size_of::<u64>();

/// Bytes before the first aligned word of a row of `len` bytes, and bytes of whole words after it.
fn split(ptr: *const u8, len: usize) -> (usize, usize) {
    let head = ptr.addr().wrapping_neg() % WORD;
    if head >= len { (len, 0) } else { (head, (len - head) / WORD * WORD) }
}

/// Writes `from` to `to`.
///
/// # Safety
/// `to` is valid for writes of `from.len()` bytes, and whoever else touches them meanwhile does so
/// through this module, or with the same ends of the row.
pub(super) unsafe fn copy_in(from: &[u8], to: *mut u8) {
    let (head, body) = split(to, from.len());
    let byte = |at: usize| {
        // SAFETY: `at < from.len()`, which `to` is valid for; atomic by the contract.
        let to = unsafe { AtomicU8::from_ptr(to.add(at)) };
        to.store(from[at], Relaxed);
    };
    (0..head).for_each(byte);
    for (index, word) in from[head..head + body].as_chunks::<WORD>().0.iter().enumerate() {
        // SAFETY: `split` put the words inside the row and aligned them; atomic by the contract.
        let to = unsafe { AtomicU64::from_ptr(to.add(head + index * WORD).cast()) };
        to.store(u64::from_ne_bytes(*word), Relaxed);
    }
    (head + body..from.len()).for_each(byte);
}

/// Reads `into.len()` bytes from `from`, which may be mapped read-only: the loads are of word size
/// and relaxed.
///
/// # Safety
/// As for [`copy_in`], with reads.
pub(super) unsafe fn copy_out(from: *mut u8, into: &mut [u8]) {
    let (head, body) = split(from, into.len());
    let byte = |at: usize| {
        // SAFETY: `at < into.len()`, which `from` is valid for; atomic by the contract.
        unsafe { AtomicU8::from_ptr(from.add(at)) }.load(Relaxed)
    };
    let (first, rest) = into.split_at_mut(head);
    let (middle, last) = rest.split_at_mut(body);
    first.iter_mut().enumerate().for_each(|(at, to)| *to = byte(at));
    for (index, word) in middle.as_chunks_mut::<WORD>().0.iter_mut().enumerate() {
        // SAFETY: `split` put the words inside the row and aligned them; atomic by the contract.
        let from = unsafe { AtomicU64::from_ptr(from.add(head + index * WORD).cast()) };
        *word = from.load(Relaxed).to_ne_bytes();
    }
    last.iter_mut().enumerate().for_each(|(at, to)| *to = byte(head + body + at));
}
