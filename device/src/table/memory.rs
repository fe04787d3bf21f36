//! The layout of a table in plain words.
//!
//! The size depends on the geometry and the lifetimes. A table is header, ids, lifetimes with a pad, and
//! links: 64 + 4·2^m + (2^m + 64) + 4·T bytes, where 2^m is S rounded up to a power of two, and T the number
//! of links. Learned lifetimes have 4096 + S/2 bytes more. Ids from place S on stay empty.

use core::ops::Range;

use super::hash;
use super::learned;
use super::params::Params;
use super::state::{DEAD, EMPTY, INVALID, header};
use crate::machine::Machine;
use crate::machine::cpu::{REGISTERS, SLACK, Scalar};
use crate::machine::emu::Emu;

/// Returns the number of words of one table.
pub fn state_words(p: &Params) -> usize {
    links_end(p) + learned::words(p)
}

/// Returns the number of the word behind the links of a table, where the words of [`learned`] begin.
pub fn links_end(p: &Params) -> usize {
    words_before_links(p) + p.links() as usize
}

/// Returns the number of words from one table to the next. It is a multiple of 64 bytes, so that no
/// two tables share a cache line.
pub fn table_words(p: &Params) -> usize {
    state_words(p).next_multiple_of(16)
}

/// Returns the number of words from the start of a table to its links. Every step reads nearly all of
/// these words, and of the links those that its ids name.
pub fn words_before_links(p: &Params) -> usize {
    life_at(p) + life_words(p)
}

/// Returns the number of words from the start of a table to its lifetimes.
pub fn life_at(p: &Params) -> usize {
    header::WORDS + p.slot_places() as usize
}

/// Returns the number of words of the lifetimes of a table, with their pad.
pub fn life_words(p: &Params) -> usize {
    (p.slot_places() as usize + SLACK) / 4
}

/// Fills `words` with the table of a request without a step: all slots and links are empty.
pub fn clear_state(p: &Params, words: &mut [i32]) {
    let (header, rest) = words.split_at_mut(header::WORDS);
    let (id, rest) = rest.split_at_mut(p.slot_places() as usize);
    let (life, rest) = rest.split_at_mut(life_words(p));
    let (link, learned) = rest.split_at_mut(p.links() as usize);
    header.fill(0);
    header[header::THRESHOLD as usize] = i32::from(DEAD);
    id.fill(EMPTY);
    as_bytes(life).fill(p.empty_life());
    link.fill(INVALID);
    learned.fill(0);
}

/// Empties every slot whose id is in `ids`, as Invalidate does at the start of a step, and returns
/// the number of slots.
pub fn invalidate_ids(p: &Params, words: &mut [i32], ids: Range<i32>) -> usize {
    let (id, life) = slots(p, words);
    let listed = id.iter_mut().zip(life).filter(|(id, _)| ids.contains(id));
    listed.map(|(id, life)| (*id, *life) = (EMPTY, DEAD)).count()
}

/// Empties the slots that hold given ids, where `slots` has one slot for each id.
pub fn invalidate_slots(p: &Params, words: &mut [i32], ids: &[i32], slots: &[i32]) {
    let (id, life) = self::slots(p, words);
    for (&expected, &slot) in ids.iter().zip(slots) {
        let slot = slot as usize;
        if id[slot] == expected {
            (id[slot], life[slot]) = (EMPTY, DEAD);
        }
    }
}

/// Returns the ids and the lifetimes of a table's slots.
fn slots<'a>(p: &Params, words: &'a mut [i32]) -> (&'a mut [i32], &'a mut [i8]) {
    let (id, rest) = words[header::WORDS..].split_at_mut(p.slot_places() as usize);
    let (life, slots) = (as_bytes(&mut rest[..life_words(p)]), p.slots as usize);
    (&mut id[..slots], &mut life[..slots])
}

/// Calls `found` with each id in `ids` that Probe finds in a table: a slot holds it, and one of its links
/// names the slot. An id that has two slots comes twice.
pub fn find_ids(p: &Params, words: &[i32], ids: Range<i32>, mut found: impl FnMut(i32)) {
    let (id, rest) = words[header::WORDS..].split_at(p.slot_places() as usize);
    let link = &rest[life_words(p)..][..p.links() as usize];
    let mask = (1 << p.slot_bits()) - 1;
    for &x in id.iter().filter(|x| ids.contains(x)) {
        let named = |r| (link[link_position(p, x, r)] & mask) as usize;
        if (0..=p.retries as i32).any(|r| id[named(r)] == x) {
            found(x);
        }
    }
}

/// Returns the position of link r of an id.
fn link_position(p: &Params, id: i32, r: i32) -> usize {
    let (m, mut words) = (Emu::<1>, [0; REGISTERS]);
    let at = hash::nth_link(m, p, hash::mixed(m, p, m.splat(id)), Scalar::new(r));
    at.store(&mut words, 0);
    words[0] as usize
}

/// Learns from the step that Stage One has made on a table of learned lifetimes.
///
/// # Panics
/// If there are fewer words than [`state_words`].
pub fn learn(p: &Params, words: &mut [i32]) {
    let (header, rest) = words.split_at_mut(header::WORDS);
    learned::learn(p, header, &mut rest[links_end(p) - header::WORDS..]);
}

/// Returns words as bytes.
pub(crate) fn as_bytes(words: &mut [i32]) -> &mut [i8] {
    let len = core::mem::size_of_val(words);
    // SAFETY: the result has the same address, size and exclusive borrow as `words`, and any byte
    // is a valid `i8`.
    unsafe { core::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), len) }
}
