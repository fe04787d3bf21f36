//! Deferral: of a request's last token, only the hits that could be taken for victims are refreshed before
//! victims are chosen.
//!
//! Where a scattered write is a scalar one, refreshing all hits of a token is the longest piece of its way
//! to the miss list, and nearly all of it can wait until that list is published: then other cores can help
//! ([`refresh_late`] takes any part of the slots). Let b be the least t with count(life <= t) >= n_g +
//! [`SPARE`]. If no more than [`SPARE`] hits have a lifetime of at most b, then n_g slots up to b are no
//! hits, and no victim has a lifetime above b. A refresh raises a lifetime; so a hit above b is no victim
//! before or after its own, and no count up to b contains it. Hence the outcome is the same to the last bit
//! (`tests/kernels/deferral.rs`). If there are more, as where S = K, all are refreshed at once. `paper` defers
//! nothing: its extra decays fall on what was refreshed before.

use crate::hash::fits_way;
use crate::machine::Machine;
use crate::params::{Lifetime, Params, Table};
use crate::probe::{refresh, refresh_listed};
use crate::stage_one::Work;
use crate::state::{State, header};

/// Who runs Stage One, to whom what is dear: an access to a single lane, or a lane more. Both get the same
/// results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refresh {
    /// CPUs: hits are refreshed before victims are chosen, and links looked at one by one. Less work in all.
    AtOnce,
    /// Vector cores: of the token that a request names, most hits after Stage One, by [`refresh_late`]; Probe
    /// looks at two links at once, UpdateState and Probe for a shared token at all of them.
    Late,
}

impl Refresh {
    /// Whether anything is deferred on this table.
    #[inline(always)]
    pub fn defers(self, p: &Params) -> bool {
        self == Self::Late && p.table == Table::Wide
    }

    /// Whether all links of an id are looked at at once, and so whether cores can share a token.
    #[inline(always)]
    pub fn searches(self, p: &Params) -> bool {
        self.defers(p) && fits_way(p)
    }

    /// Whether Probe looks at two links at once: where their number is even.
    #[inline(always)]
    pub fn pairs(self, p: &Params) -> bool {
        self.defers(p) && p.retries % 2 == 1
    }
}

/// Hits up to b, at most, that may be refreshed alone: real traces have a handful.
pub const SPARE: i32 = 64;

/// Refreshes the hits that could be taken for victims, or all if `now` is 1. `work.miss` holds the misses,
/// `work.slot` the hits; `work.dead` is overwritten.
#[inline(always)]
pub fn refresh_early<M: Machine>(
    m: M,
    p: &Params,
    state: &mut State<'_, M>,
    work: &mut Work<'_, M>,
    k: M::Scalar,
    now: M::Scalar,
) {
    let need = m.len(&work.miss);
    // Without misses there are no victims.
    let waits = m.if_gt(need, m.scalar(0), 1) * (m.scalar(1) - now);
    let hint = m.peek(&state.header, m.scalar(header::THRESHOLD));
    let life = &state.life;
    let bound = m.bisect(
        hint,
        (need + SPARE) * waits,
        #[inline(always)]
        |t| m.count_le(life, t),
    );
    m.clear(&mut work.dead);
    m.append_low(&mut work.dead, &work.slot, k * waits, &state.life, bound);
    let early = m.len(&work.dead);
    let all = m.if_gt(early, m.scalar(SPARE), 1);
    refresh(m, p, state, work, k * m.max(now, all));
    refresh_listed(m, p, state, work, early * (m.scalar(1) - all));
}

/// Refreshes the slots that a token was given, as bytes of a table: what [`Refresh::Late`] left out. New slots
/// are among them, whose lifetimes are as a hit would make them; -1 is nobody's.
pub fn refresh_late(p: &Params, life: &mut [i8], slots: &[i32]) {
    for &slot in slots {
        let Some(life) = usize::try_from(slot).ok().and_then(|slot| life.get_mut(slot)) else {
            continue;
        };
        *life = match &p.lifetime {
            Lifetime::Constant(l) => *l,
            Lifetime::Frequency(f) => f.hit[usize::from(life.cast_unsigned())],
        };
    }
}
