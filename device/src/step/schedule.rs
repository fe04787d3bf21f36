//! The working columns of a core, and schedules: in which order, and how many links at once, a kind of machine
//! does the work of a token.
//!
//! Every schedule gives the same results (`tests/kernels/deferral.rs`). What differs is what is dear: an access to a
//! single lane, or a lane more.

use super::request::Request;
use crate::machine::Machine;
use crate::machine::declare::Columns;
use crate::table::hash::{max_sequence, sequence_fits};
use crate::table::params::{ID_LIMIT, Params};
use crate::table::state::{EMPTY, INVALID, State};
use core::ops::RangeInclusive;

/// The slot of an id that is not valid, while the cores that share a token probe it. It is -1 afterwards.
pub const INVALID_ID: i32 = -2;

/// Valid ids.
pub const IDS: RangeInclusive<i32> = 0..=ID_LIMIT - 1;

/// Words that a probe sequence may be.
#[inline(always)]
pub fn sequences(p: &Params) -> RangeInclusive<i32> {
    if sequence_fits(p) { 0..=max_sequence(p) } else { EMPTY..=ID_LIMIT - 1 }
}

/// Lanes of a token.
#[inline(always)]
pub fn lanes(p: &Params) -> RangeInclusive<i32> {
    0..=p.k as i32 - 1
}

/// Working columns in fast memory.
pub struct Work<'a, M: Machine, S: Schedule> {
    /// The token's ids.
    pub ids: M::Column<'a>,
    /// Their slots; -1 where not found or not valid.
    pub slot: M::Column<'a>,
    /// (id, lane) of ids not found yet.
    pub pending: M::List<'a, 2>,
    /// (id, lane) of ids not found in this round either.
    pub next: M::List<'a, 2>,
    /// (id, token · K + lane, row) of the token's misses, in token order.
    pub miss: M::List<'a, 3>,
    /// The misses' slots: CollectDead's victims.
    pub dead: M::List<'a, 1>,
    /// The probe sequence of each miss, see [`crate::hash::sequence`].
    pub sequence: M::Column<'a>,
    /// The word of each miss's new link.
    pub new_link: M::Column<'a>,
    /// Where each miss's new link goes: a position, -1 where no link is reusable.
    pub link_position: M::Column<'a>,
    /// The token's ids that are padding or out of range.
    pub invalid: M::List<'a, 1>,
    /// Counts the request's ids at or above its sequence length.
    pub out_of_range: M::List<'a, 0>,
    /// Counts the request's misses whose row is outside the pool.
    pub out_of_pool: M::List<'a, 0>,
    /// What the schedule alone uses.
    pub extra: S::Extra<'a, M>,
}

impl<'a, M: Machine, S: Schedule> Work<'a, M, S> {
    /// The columns from whoever has them.
    #[inline(always)]
    pub fn declare(p: &Params, c: &mut impl Columns<'a, M>) -> Self {
        let (k, step) = (p.k, p.k * p.tokens);
        let id_and_lane = || [("x", IDS), ("lane", lanes(p))];
        let slot = p.slots as i32 - 1;
        let row = ("row", -ID_LIMIT..=i32::MAX);
        // Scattered by lane or by entry, so their lengths are powers of two.
        let scattered = k.next_power_of_two();
        Self {
            ids: c.column("ids", k, i32::MIN..=i32::MAX),
            slot: c.column("slot", scattered, INVALID_ID..=slot),
            pending: c.list("pending", k, id_and_lane()),
            next: c.list("next", k, id_and_lane()),
            miss: c.list("miss", k, [("x", IDS), ("position", 0..=step as i32 - 1), row]),
            dead: c.list("dead", k, [("victim", 0..=slot)]),
            sequence: c.column("sequence", k, sequences(p)),
            new_link: c.column("new_link", k, 0..=INVALID - 1),
            link_position: c.column("link_position", scattered, -1..=p.links() as i32 - 1),
            invalid: c.list("invalid", k, [("id", i32::MIN..=i32::MAX)]),
            out_of_range: c.list("out_of_range", step, []),
            out_of_pool: c.list("out_of_pool", step, []),
            extra: S::declare(p, c),
        }
    }
}

/// The steps of a token that a kind of machine does in its own way.
pub trait Schedule: Sized {
    /// Working columns that no other schedule needs.
    type Extra<'a, M: Machine>;
    /// How many columns they are, each of a list's counted.
    const EXTRA_COLUMNS: usize;

    /// Those columns from whoever has them.
    fn declare<'a, M: Machine>(p: &Params, c: &mut impl Columns<'a, M>) -> Self::Extra<'a, M>;

    /// Probes the ids of a token: leaves slots in `work.slot`, misses in `work.pending` as (id, lane), and ids
    /// that are not valid in `work.invalid`.
    fn probe<M: Machine>(
        m: M,
        p: &Params,
        state: &State<'_, M>,
        work: &mut Work<'_, M, Self>,
        request: &mut Request<'_, M>,
        token: M::Scalar,
    );

    /// Refreshes hits before victims are chosen: all that could be taken for one.
    fn refresh<M: Machine>(
        m: M,
        p: &Params,
        state: &mut State<'_, M>,
        work: &mut Work<'_, M, Self>,
        request: &Request<'_, M>,
        token: M::Scalar,
    );

    /// Sets the lifetimes of a tile's new slots, or leaves that to [`Self::refresh_new`].
    fn set_new<M: Machine>(
        m: M,
        p: &Params,
        tile: M::Tile,
        state: &mut State<'_, M>,
        slot: M::V,
        all: M::Mask,
    );

    /// Sets the lifetimes of a token's new slots that [`Self::set_new`] left out.
    fn refresh_new<M: Machine>(
        m: M,
        p: &Params,
        state: &mut State<'_, M>,
        work: &mut Work<'_, M, Self>,
        request: &Request<'_, M>,
        token: M::Scalar,
    );

    /// Finds for each of `work.sequence`, as many as `work.dead` is long, the first link that is reusable: its
    /// position to `work.link_position`, -1 where none is.
    fn find_links<M: Machine>(m: M, p: &Params, state: &State<'_, M>, work: &mut Work<'_, M, Self>);
}
