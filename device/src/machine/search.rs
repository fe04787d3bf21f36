//! Searches over whole columns, in the kernel language.
//!
//! These are the bodies of [`Machine::find`] and [`Machine::find_free`]. They define what the two
//! operations mean, and a CPU runs them as they are. On a vector core an operation costs much and
//! an additional lane costs little, so it examines all links of many ids at once.

use super::Machine;
use super::control::{repeat, sweep};
use super::links::Links;

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
    [link, held]: [&M::Column<'_>; 2],
) {
    first_match(m, links, slot, sequence, n, |t, position| {
        let named = m.low_bits(m.gather(link, position), links.slot_bits);
        (named, m.eq(m.gather(held, named), m.load(t, id)))
    });
}

/// Writes, for each of the first `n` probe sequences, the position of its first reusable link to
/// `position`, or -1 if it has none. A link is reusable if its fingerprint is not that of the id in
/// its slot.
#[inline(always)]
pub fn find_free<M: Machine>(
    m: M,
    links: &Links,
    position: &mut M::Column<'_>,
    sequence: &M::Column<'_>,
    n: M::Scalar,
    [link, held]: [&M::Column<'_>; 2],
) {
    let (p, q) = links.multipliers;
    first_match(m, links, position, sequence, n, |_, position| {
        let word = m.gather(link, position);
        let owner = m.gather(held, m.low_bits(word, links.slot_bits));
        let fingerprint =
            m.low_bits(m.shr(m.madd(owner, p, q), links.fingerprint_shift), links.fingerprint_bits);
        (position, !m.eq(m.shr(word, links.slot_bits), fingerprint))
    });
}

/// Returns the position of link r of a probe sequence.
#[inline(always)]
pub fn position<M: Machine>(m: M, position_bits: u32, sequence: M::V, r: M::Scalar) -> M::V {
    // Values of one name may take one register: a sweep with few registers has more lanes.
    let named = |v| m.name_vector("position", v);
    let step = named(m.mul_scalar(named(m.shr(sequence, position_bits)), r));
    let first = m.name_vector("firstLink", m.low_bits(sequence, position_bits));
    named(m.low_bits(named(first + step), position_bits))
}

/// Writes, for each of the first `n` probe sequences, the word that `examine` returns for its first
/// link with a set mask lane to `result`, or -1 if there is none.
#[inline(always)]
fn first_match<M: Machine>(
    m: M,
    links: &Links,
    result: &mut M::Column<'_>,
    sequence: &M::Column<'_>,
    n: M::Scalar,
    examine: impl Fn(M::Tile, M::V) -> (M::V, M::Mask),
) {
    sweep!(m, n, |t| m.store(t, result, m.splat(-1)));
    repeat!(m, links.retries + 1, m.scalar(links.retries as i32 + 1), |r| {
        sweep!(m, n, |t| {
            let known = m.load(t, result);
            let at = position(m, links.position_bits, m.load(t, sequence), r);
            let (word, matches) = examine(t, at);
            m.store(t, result, m.select(matches & m.is_negative(known), word, known));
        });
    });
}
