//! The order in which slots become victims, and the work on all lifetimes of a step.
//!
//! Constant lifetimes are this order. Learned ones ([`crate::learned`]) are replaced by the values that the
//! table has for them: a slot that the running step uses has the largest value, whatever the table holds,
//! so it is no victim while another slot is left.

use crate::machine::Machine;
use crate::machine::control::{sweep, when};
use crate::machine::phase::Phase;
use crate::step::request::Share;
use crate::step::schedule::{Order, Schedule, Token, Work};
use crate::table::learned::{self, LIFETIMES, MAX_VALUE, NEW, WAS_USED, part};
use crate::table::params::Params;
use crate::table::state::{State, header};

/// Makes all lifetimes one step older (Alg. 1, line 3). They stop at -128: a byte that wrapped would revive
/// slots, and CollectDead would return slots that this step hits.
///
/// Of the cores that share a request, those that do not own it choose no victims. They read no learned
/// lifetime, and write none of the words that the owner reads.
#[inline(always)]
pub fn decay<M: Machine, S: Schedule>(
    m: M,
    p: &Params,
    state: &mut State<'_, M>,
    work: &mut Work<'_, M, S>,
    share: &Share<M::Scalar>,
) {
    let State { life, header, learned, .. } = state;
    let (Some(order), Some(learned)) = (&mut work.order, learned) else {
        m.phase(Phase::Decay, "one less for every lifetime");
        return m.age(life, m.scalar(1), m.scalar(i32::from(i8::MIN)));
    };
    if !S::SHARES {
        load_values(m, order, learned);
        return age_and_sample(m, p, life, header, order, learned);
    }
    m.phase(Phase::Decay, "the owner of the request works on learned lifetimes");
    let owner = m.name_scalar("owner", m.not(m.gt(share.at, m.scalar(0))));
    when!(m, owner, || {
        load_values(m, order, learned);
        age_and_sample(m, p, life, header, order, learned);
    });
}

/// Fills `order.value_of` with what the table has for each lifetime.
#[inline(always)]
fn load_values<M: Machine>(m: M, order: &mut Order<'_, M>, learned: &M::Output<'_>) {
    m.phase(Phase::Decay, "the value of each lifetime");
    let all = m.scalar(LIFETIMES as i32);
    let values = m.scalar(part::VALUES as i32);
    m.copy_in(&mut order.learned_values, &m.written(learned), values, all);
    sweep!(m, all, |t| {
        // Any word of global memory becomes a value, and that of a slot in use is the largest.
        let value = m.low_bits(m.load(t, &order.learned_values), 8);
        let value = m.select(m.eq_to(value, MAX_VALUE + 1), m.splat(MAX_VALUE), value);
        let unused = m.name_mask("unused", m.is_negative(m.iota(t) + (-128 - i32::from(NEW))));
        m.store(t, &mut order.value_of, m.select(unused, value, m.splat(MAX_VALUE + 1)));
    });
}

/// Publishes which slots of the last step's sample that step used, ages all lifetimes, and publishes those
/// of this step's sample.
#[inline(always)]
fn age_and_sample<M: Machine>(
    m: M,
    p: &Params,
    life: &mut M::Life<'_>,
    header: &M::Output<'_>,
    order: &mut Order<'_, M>,
    learned: &mut M::Output<'_>,
) {
    let slots = learned::sample_slots(p) as i32;
    let n = m.scalar(slots);
    let word = |at: i32| m.read_output(header, m.scalar(at));
    let last = p.slots as i32 - slots;
    let first = |at: i32| m.max(m.min(word(at), m.scalar(last)), m.scalar(0));
    m.phase(Phase::Decay, "the slots of the last step's sample that it used");
    let before = m.name_scalar("lastSample", first(header::LAST_SAMPLE));
    let sample_at = m.scalar(learned::sample_part(p) as i32);
    m.copy_in(&mut order.sample, &m.written(learned), sample_at, n);
    sweep!(m, n, |t| {
        let life = m.gather_life(life, m.iota(t) + before);
        let unused = m.name_mask("unused", m.is_negative(life + (-1 - i32::from(NEW))));
        let sampled = m.low_bits(m.load(t, &order.sample), 8);
        m.store(t, &mut order.sample, m.select(unused, sampled, sampled | WAS_USED));
    });
    m.copy_out(learned, m.scalar(part::RESULT as i32), &order.sample, n);
    m.phase(Phase::Decay, "the next class for slots whose time in a class is over, and a sample");
    let moves_from = m.name_scalar("movesFrom", word(header::MOVES_FROM));
    m.age(life, m.scalar(16), moves_from);
    let now = m.name_scalar("sampleFrom", first(header::SAMPLE));
    sweep!(m, n, |t| {
        let life = m.gather_life(life, m.iota(t) + now);
        m.store(t, &mut order.sample, life + 128);
    });
    m.copy_out(learned, sample_at, &order.sample, n);
}

/// Finds the values of all slots, if a token has misses and lifetimes are learned.
#[inline(always)]
pub fn find_values<M: Machine, S: Schedule>(s: &mut Token<'_, '_, M, S>) {
    let m = s.m;
    if let Some(order) = &mut s.work.order {
        m.phase(Phase::CollectDead, "the value of each slot");
        when!(m, m.gt(m.len(&s.work.miss), m.scalar(0)), || {
            m.map_life(&mut order.value, &s.state.life, &order.value_of);
        });
    }
}

/// Runs `body` on the bytes by which victims are chosen, the smallest first.
#[inline(always)]
pub fn with_values<M: Machine, R>(
    state: &State<'_, M>,
    order: Option<&Order<'_, M>>,
    body: impl for<'l> FnOnce(&M::Life<'l>) -> R,
) -> R {
    match order {
        Some(order) => body(&order.value),
        None => body(&state.life),
    }
}
