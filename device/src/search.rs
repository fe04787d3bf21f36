//! Search: for a column of ids, the first of each one's links that will do.
//!
//! These are the bodies of [`Machine::find`] and [`Machine::find_free`] in the kernel language: what they
//! mean, and how a CPU would run them. A vector core, to which an op is dear and a lane more is not, looks
//! at all links of many ids at once.

use crate::hash;
use crate::machine::Machine;
use crate::params::Params;
use crate::state::State;

/// For each of the first `n` ids of `wanted` the slot that the first of its links names whose slot holds the id:
/// to `slot`, -1 where none does. `way` are their ways.
#[inline(always)]
pub fn find<M: Machine>(
    m: M,
    p: &Params,
    slot: &mut M::Column<'_>,
    [way, wanted]: [&M::Column<'_>; 2],
    n: M::Scalar,
    state: &State<'_, M>,
) {
    first(m, p, slot, way, n, |t, at| {
        let named = m.low(m.gather(&state.link, at), p.slot_bits());
        (named, m.eq(m.gather(&state.id, named), m.load(t, wanted)))
    });
}

/// For each of the first `n` ways the position of the first of its links that is reusable, as
/// [`crate::update_state::reusable`] has it: to `at`, -1 where none is.
#[inline(always)]
pub fn find_free<M: Machine>(
    m: M,
    p: &Params,
    at: &mut M::Column<'_>,
    way: &M::Column<'_>,
    n: M::Scalar,
    state: &State<'_, M>,
) {
    first(m, p, at, way, n, |_, at| {
        (at, crate::update_state::reusable(m, p, state, m.gather(&state.link, at)))
    });
}

/// For each of the first `n` ways what `look` finds at the first link that will do.
#[inline(always)]
fn first<M: Machine>(
    m: M,
    p: &Params,
    found: &mut M::Column<'_>,
    way: &M::Column<'_>,
    n: M::Scalar,
    look: impl Fn(M::Tile, M::V) -> (M::V, M::Mask),
) {
    m.sweep(
        n,
        #[inline(always)]
        |t| m.store(t, found, m.splat(-1)),
    );
    m.repeat(
        p.retries + 1,
        m.scalar(p.retries as i32 + 1),
        #[inline(always)]
        |r| {
            m.sweep(
                n,
                #[inline(always)]
                |t| {
                    let known = m.load(t, found);
                    let (word, fits) = look(t, hash::along(m, p, m.load(t, way), r));
                    m.store(t, found, m.select(fits & m.neg(known), word, known));
                },
            );
        },
    );
}
