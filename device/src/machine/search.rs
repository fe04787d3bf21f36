//! Searches for links, in the kernel language.
//!
//! [`find`] and [`find_free`] are what [`Machine::find`] and [`Machine::find_free`] mean: a CPU runs
//! them. A schedule that divides the work in another way calls the
//! steps of a search: [`passes`], [`position`], [`candidate`] and [`left_behind`].

use super::Machine;
use super::control::{repeat, sweep};
use super::links::{Links, bits_below};

/// Writes, for each of the first `n` ids of `id`, a slot that holds the id to `slot`: the slot
/// named by the first such link of its probe sequence, or -1 if no link names one. `sequence` holds
/// the probe sequences of the ids; the last argument is the links and the ids of slots.
#[inline(always)]
pub fn find<M: Machine>(
    m: M,
    links: &Links,
    slot: &mut M::Column<'_>,
    [sequence, id]: [&M::Column<'_>; 2],
    n: M::Scalar,
    table: [&M::Column<'_>; 2],
) {
    passes(m, links, slot, n, |slot, r| {
        sweep!(m, n, |t| {
            let at = position(m, links.position_bits, m.load(t, sequence), r);
            let (named, hit) = candidate(m, links.slots, table, at, m.load(t, id));
            let later = m.load(t, slot);
            m.store(t, slot, m.select(hit, named, later));
        });
    });
}

/// Writes, for each of the first `n` probe sequences, the position of its first link that was
/// [`left_behind`] to `free`, or -1 if it has none.
#[inline(always)]
pub fn find_free<M: Machine>(
    m: M,
    links: &Links,
    free: &mut M::Column<'_>,
    sequence: &M::Column<'_>,
    n: M::Scalar,
    table: [&M::Column<'_>; 2],
) {
    let ((p, q), shift, bits) =
        (links.multipliers, links.fingerprint_shift, links.fingerprint_bits);
    let fingerprint = |id| m.low_bits(m.shr(m.madd(id, p, q), shift), bits);
    passes(m, links, free, n, |free, r| {
        sweep!(m, n, |t| {
            let at = position(m, links.position_bits, m.load(t, sequence), r);
            let (_, left) = left_behind(m, links.slots, table, at, fingerprint);
            let later = m.load(t, free);
            m.store(t, free, m.select(left, at, later));
        });
    });
}

/// Runs `pass` on link r of all probe sequences for r = R, …, 1, 0, after it has set the first `n`
/// words of `result` to -1. A pass replaces what those over later links have found, so what the
/// first link that matches gives remains.
#[inline(always)]
pub fn passes<M: Machine>(
    m: M,
    links: &Links,
    result: &mut M::Column<'_>,
    n: M::Scalar,
    mut pass: impl FnMut(&mut M::Column<'_>, M::Scalar),
) {
    let retries = links.retries;
    sweep!(m, n, |t| m.store(t, result, m.splat(-1)));
    repeat!(m, retries + 1, m.scalar(retries as i32 + 1), |done| {
        pass(result, m.scalar(retries as i32) - done);
    });
}

/// Returns the slot that the link at position `at` names, and whether it holds the id.
#[inline(always)]
pub fn candidate<M: Machine>(
    m: M,
    slots: u32,
    [link, held]: [&M::Column<'_>; 2],
    at: M::V,
    id: M::V,
) -> (M::V, M::Mask) {
    let slot = m.name_vector("candidate", named_slot(m, slots, link, at));
    (slot, holds(m, held, slot, id))
}

/// Returns the slot that the link at position `at` names.
#[inline(always)]
pub fn named_slot<M: Machine>(m: M, slots: u32, link: &M::Column<'_>, at: M::V) -> M::V {
    slot_of(m, slots, m.gather(link, at))
}

/// Returns the slot in the word of a link. Only slots enter links, so it is below S.
#[inline(always)]
pub fn slot_of<M: Machine>(m: M, slots: u32, word: M::V) -> M::V {
    let slot = m.low_bits(word, bits_below(slots));
    if slots.is_power_of_two() { slot } else { m.below(slot, slots) }
}

/// Returns whether a slot holds the id.
#[inline(always)]
pub fn holds<M: Machine>(m: M, held: &M::Column<'_>, slot: M::V, id: M::V) -> M::Mask {
    m.name_mask("hit", m.eq(m.gather(held, slot), id))
}

/// Returns the slot that the link at position `at` names, and whether an earlier occupant of the
/// slot left the link behind (Eq. 4): its fingerprint is not that of the id in the slot. A link that was never used
/// has the invalid bit above its fingerprint, so it equals the fingerprint of no id.
#[inline(always)]
pub fn left_behind<M: Machine>(
    m: M,
    slots: u32,
    [link, held]: [&M::Column<'_>; 2],
    at: M::V,
    fingerprint: impl Fn(M::V) -> M::V,
) -> (M::V, M::Mask) {
    let word = m.gather(link, at);
    let (slot, known) = (slot_of(m, slots, word), m.shr(word, bits_below(slots)));
    (slot, !m.eq(known, fingerprint(m.gather(held, slot))))
}

/// Returns the position of link r of a probe sequence.
#[inline(always)]
pub fn position<M: Machine>(m: M, position_bits: u32, sequence: M::V, r: M::Scalar) -> M::V {
    let step = m.name_vector("step", m.mul_scalar(m.shr(sequence, position_bits), r));
    let first = m.name_vector("firstLink", m.low_bits(sequence, position_bits));
    m.name_vector("position", m.low_bits(first + step, position_bits))
}
