//! Searches over whole columns, in the kernel language.
//!
//! These are the bodies of [`Machine::find`] and [`Machine::find_free`]: they define what the two ops mean, and a CPU
//! runs them as they are. A vector core, to which an operation is dear and a lane more is not, looks at all links of
//! many ids at once.

use super::Machine;
use super::links::Links;

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
        let named = m.low_bits(m.gather(link, position), links.slot_bits);
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
        let owner = m.gather(held, m.low_bits(word, links.slot_bits));
        let fingerprint =
            m.low_bits(m.shr(m.madd(owner, p, q), links.fingerprint_shift), links.fingerprint_bits);
        (position, !m.eq(m.shr(word, links.slot_bits), fingerprint))
    });
}

/// The position of link number r of a probe sequence.
#[inline(always)]
pub fn position<M: Machine>(m: M, position_bits: u32, sequence: M::V, r: M::Scalar) -> M::V {
    let stride = m.shr(sequence, position_bits);
    m.low_bits(m.low_bits(sequence, position_bits) + m.mul_scalar(stride, r), position_bits)
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
                    m.store(t, found, m.select(fits & m.is_negative(known), word, known));
                },
            );
        },
    );
}
