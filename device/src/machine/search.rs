//! Searches over whole columns, in the kernel language.
//!
//! These are the bodies of [`Machine::find`], [`Machine::find_free`], [`Machine::sort_out`] and
//! [`Machine::append_low`]: what they mean, and how a CPU runs them. A vector core, to which an operation
//! is dear and a lane more is not, looks at all links of many ids at once.

use super::Machine;
use super::links::Links;

/// What [`sort_out`] finds in the place of the slot of an id that is not valid.
pub const INVALID_ID: i32 = -2;

/// For each of the first `n` ids of `id`: the slot that the first of its links names whose slot holds the id, -1
/// where none does. `sequence` holds their probe sequences; `table` is the links and the ids of slots.
#[inline(always)]
pub fn find<M: Machine>(
    m: M,
    links: &Links,
    slot: &mut M::Column<'_>,
    [sequence, id]: [&M::Column<'_>; 2],
    n: M::Scalar,
    [link, held]: [&M::Column<'_>; 2],
) {
    first(m, links, slot, sequence, n, |t, position| {
        let named = m.low(m.gather(link, position), links.slot_bits);
        (named, m.eq(m.gather(held, named), m.load(t, id)))
    });
}

/// For each of the first `n` probe sequences: the position of the first of its links that is reusable, -1 where
/// none is. A link is reusable if its print is not that of the id which its slot holds.
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
    first(m, links, position, sequence, n, |_, position| {
        let word = m.gather(link, position);
        let owner = m.gather(held, m.low(word, links.slot_bits));
        let print = m.low(m.shr(m.dot(owner, p, q), links.print_shift), links.print_bits);
        (position, !m.eq(m.shr(word, links.slot_bits), print))
    });
}

/// The position of link number r of a probe sequence.
#[inline(always)]
pub fn position<M: Machine>(m: M, position_bits: u32, sequence: M::V, r: M::Scalar) -> M::V {
    let stride = m.shr(sequence, position_bits);
    m.low(m.low(sequence, position_bits) + m.times(stride, r), position_bits)
}

/// For each of the first `n` probe sequences what `look` finds at the first link that will do.
#[inline(always)]
fn first<M: Machine>(
    m: M,
    links: &Links,
    found: &mut M::Column<'_>,
    sequence: &M::Column<'_>,
    n: M::Scalar,
    look: impl Fn(M::Tile, M::V) -> (M::V, M::Mask),
) {
    m.sweep(
        n,
        #[inline(always)]
        |t| m.store(t, found, m.splat(-1)),
    );
    m.repeat(
        links.retries + 1,
        m.scalar(links.retries as i32 + 1),
        #[inline(always)]
        |r| {
            m.sweep(
                n,
                #[inline(always)]
                |t| {
                    let known = m.load(t, found);
                    let at = position(m, links.position_bits, m.load(t, sequence), r);
                    let (word, fits) = look(t, at);
                    m.store(t, found, m.select(fits & m.neg(known), word, known));
                },
            );
        },
    );
}

/// Sorts the first `n` of `ids` out by their slots: those with slot -1 go to `pending`, as (id, lane), those with slot
/// [`INVALID_ID`] to `invalid`. `slot` then has -1 for both.
#[inline(always)]
pub fn sort_out<M: Machine>(
    m: M,
    pending: &mut M::List<'_, 2>,
    invalid: &mut M::List<'_, 1>,
    ids: &M::Column<'_>,
    slot: &mut M::Column<'_>,
    n: M::Scalar,
) {
    m.sweep(
        n,
        #[inline(always)]
        |t| {
            let (id, found) = (m.load(t, ids), m.load(t, slot));
            let not_valid = m.eq_to(found, INVALID_ID);
            // A pending id is valid, so it has no sign to lose; other lanes are not appended.
            let x = m.low(id, 31);
            m.append(t, pending, m.eq_to(found, -1), [x, m.iota(t)]);
            m.append(t, invalid, not_valid, [id]);
            m.store(t, slot, m.select(not_valid, m.splat(-1), found));
        },
    );
}

/// Appends the first `n` of `slots` that are not negative and whose lifetime is at most `t`, in order.
#[inline(always)]
pub fn append_low<M: Machine>(
    m: M,
    list: &mut M::List<'_, 1>,
    slots: &M::Column<'_>,
    n: M::Scalar,
    life: &M::Life<'_>,
    t: M::Scalar,
) {
    let above = t + 1;
    m.sweep(
        n,
        #[inline(always)]
        |tile| {
            let slot = m.load(tile, slots);
            let low = m.neg(m.life_at(life, slot) - above);
            m.append(tile, list, low & !m.neg(slot), [slot]);
        },
    );
}
