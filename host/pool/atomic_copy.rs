//! Copies between private bytes and shared rows, word by word with relaxed atomics.
//!
//! Another thread may write the row meanwhile, which would make plain copies undefined behaviour.
//! Relaxed atomics read old or new words, at the price of 8 bytes per access instead of 64. The
//! address and the length of a row alone decide how it is split into bytes and words, so all copies
//! of a row split it alike, and no two accesses of different size overlap.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

const WORD: usize = size_of::<u64>();

/// Returns the bytes of a row of `len` bytes that precede its first aligned word, and the bytes of
/// the whole words after them.
fn split(ptr: *const u8, len: usize) -> (usize, usize) {
    let head = ptr.addr().wrapping_neg() % WORD;
    if head >= len { (len, 0) } else { (head, (len - head) / WORD * WORD) }
}

/// Copies `from` into the shared row `to`.
///
/// # Safety
/// `to` is valid for writes of `from.len()` bytes. Concurrent accesses to these bytes go through
/// this module, with the same address and length.
pub(super) unsafe fn copy_in(from: &[u8], to: *mut u8) {
    let (head, body) = split(to, from.len());
    let byte = |at: usize| {
        // SAFETY: `at < from.len()`, and `to` is valid for as many bytes; concurrent accesses are
        // atomic and of this size (`# Safety`).
        let to = unsafe { AtomicU8::from_ptr(to.add(at)) };
        to.store(from[at], Relaxed);
    };
    (0..head).for_each(byte);
    for (index, word) in from[head..head + body].as_chunks::<WORD>().0.iter().enumerate() {
        // SAFETY: `split` returned aligned words inside the row; concurrent accesses are atomic and
        // of this size (`# Safety`).
        let to = unsafe { AtomicU64::from_ptr(to.add(head + index * WORD).cast()) };
        to.store(u64::from_ne_bytes(*word), Relaxed);
    }
    (head + body..from.len()).for_each(byte);
}

/// Copies `into.len()` bytes of the shared row `from` into `into`. The row may be mapped read-only,
/// because relaxed loads of word size do not write.
///
/// # Safety
/// As for [`copy_in`], for reads.
pub(super) unsafe fn copy_out(from: *mut u8, into: &mut [u8]) {
    let (head, body) = split(from, into.len());
    let byte = |at: usize| {
        // SAFETY: `at < into.len()`, and `from` is valid for as many bytes; concurrent accesses are
        // atomic and of this size (`# Safety`).
        unsafe { AtomicU8::from_ptr(from.add(at)) }.load(Relaxed)
    };
    let (first, rest) = into.split_at_mut(head);
    let (middle, last) = rest.split_at_mut(body);
    first.iter_mut().enumerate().for_each(|(at, to)| *to = byte(at));
    for (index, word) in middle.as_chunks_mut::<WORD>().0.iter_mut().enumerate() {
        // SAFETY: `split` returned aligned words inside the row; concurrent accesses are atomic and
        // of this size (`# Safety`).
        let from = unsafe { AtomicU64::from_ptr(from.add(head + index * WORD).cast()) };
        *word = from.load(Relaxed).to_ne_bytes();
    }
    last.iter_mut().enumerate().for_each(|(at, to)| *to = byte(head + body + at));
}
