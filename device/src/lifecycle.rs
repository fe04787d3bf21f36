//! Lifecycle: how a table starts cold, and how it ages from step to step.

use crate::machine::Machine;
use crate::params::{Lifetime, Params};
use crate::state::{EMPTY, INVALID, State, header};

/// Empties the table if the request's generation is not the table's: a join, a leave, a preemption
/// or a recomputation needs no launch of its own. Sweeps of length 0 otherwise.
#[inline(always)]
pub fn reset<M: Machine>(m: M, p: &Params, state: &mut State<'_, M>, generation: M::Scalar) {
    let at = m.scalar(header::GENERATION);
    let known = m.peek(&state.header, at);
    m.sweep(
        m.if_ne(known, generation, p.slots as i32),
        #[inline(always)]
        |t| {
            let slot = m.iota(t);
            m.store(t, &mut state.id, m.splat(EMPTY));
            m.set_life(t, &mut state.life, slot, p.empty_life(), !m.neg(slot));
        },
    );
    m.sweep(
        m.if_ne(known, generation, p.links() as i32),
        #[inline(always)]
        |t| m.store(t, &mut state.link, m.splat(INVALID)),
    );
    m.put(&mut state.header, at, generation);
}

/// A step's decay: one less for every slot. A lifetime saturates at -128 as a field: an 8-bit wrap
/// would revive slots and hand out the step's own hits. Frequency lifetimes also leave the range
/// that means "in use" here, instead of at the end of the request that used them.
#[inline(always)]
pub fn decay<M: Machine>(m: M, p: &Params, state: &mut State<'_, M>) {
    let settle = matches!(p.lifetime, Lifetime::Frequency(_));
    m.age(&mut state.life, m.scalar(1), settle);
}
