//! The working columns of a core, and schedules: the order of the work on a token, and the number
//! of links that are examined at once, for one kind of machine.
//!
//! Every schedule gives the same results (`tests/kernels/conformance.rs`). They differ in what is
//! cheap on their machine: access to a single lane, or an additional lane in a vector.

use super::request::Request;
use crate::machine::Machine;
use crate::machine::Memory;
use crate::machine::declare::Columns;
use crate::table::hash::{max_sequence, sequence_fits};
use crate::table::learned::{self, LIFETIMES};
use crate::table::params::{ID_LIMIT, Lifetime, Params};
use crate::table::state::{EMPTY, INVALID, State};
use core::ops::RangeInclusive;

/// The range of valid ids.
pub const IDS: RangeInclusive<i32> = 0..=ID_LIMIT - 1;

/// Returns the range of the word of a probe sequence.
#[inline(always)]
pub fn sequences(p: &Params) -> RangeInclusive<i32> {
    if sequence_fits(p) { 0..=max_sequence(p) } else { EMPTY..=ID_LIMIT - 1 }
}

/// Returns the range of the lane numbers of a token.
#[inline(always)]
pub fn lanes(p: &Params) -> RangeInclusive<i32> {
    0..=p.k as i32 - 1
}

/// The working columns of a core, in fast memory.
pub struct Work<'a, M: Memory, S: Schedule> {
    /// The ids of the token.
    pub ids: M::Column<'a>,
    /// The slots of the ids; -1 for an id that is not found or not valid.
    pub slot: M::Column<'a>,
    /// (id, lane) of the ids that are not found yet.
    pub pending: M::List<'a, 2>,
    /// (id, lane) of the ids that this round does not find either.
    pub next: M::List<'a, 2>,
    /// (id, token · K + lane, row) of the misses of the token, in token order.
    pub miss: M::List<'a, 3>,
    /// The slots of the misses, which CollectDead chose. While hits are refreshed, the slots of
    /// hits.
    pub dead: M::List<'a, 1>,
    /// The probe sequence of each miss, see [`crate::hash::sequence`].
    pub sequence: M::Column<'a>,
    /// The word of each miss's new link.
    pub new_link: M::Column<'a>,
    /// The position of each miss's new link; -1 if no link is reusable.
    pub link_position: M::Column<'a>,
    /// The ids of the token that are padding or out of range.
    pub invalid: M::List<'a, 1>,
    /// Counts the ids of the request that are at or above its sequence length.
    pub out_of_range: M::List<'a, 0>,
    /// Counts the misses of the request whose row is outside of the pool.
    pub out_of_pool: M::List<'a, 0>,
    /// The columns for learned lifetimes.
    pub order: Option<Order<'a, M>>,
    /// The columns that only this schedule uses.
    pub own: S::Own<'a, M>,
}

impl<'a, M: Memory, S: Schedule> Work<'a, M, S> {
    /// Declares the columns of a schedule.
    #[inline(always)]
    pub fn declare(schedule: S, p: &Params, c: &mut impl Columns<'a, M>) -> Self {
        let (k, step) = (p.k, p.k * p.tokens);
        let id_and_lane = || [("x", IDS), ("lane", lanes(p))];
        let slot = p.slots as i32 - 1;
        let row = ("row", -ID_LIMIT..=i32::MAX);
        // A column that is scattered, by lane or by entry, has a power of two as its length.
        let scattered = k.next_power_of_two();
        let positions = if S::SCATTERS_POSITIONS { scattered } else { k };
        Self {
            ids: c.column("ids", k, i32::MIN..=i32::MAX),
            slot: c.column("slot", scattered, EMPTY..=slot),
            pending: c.list("pending", k, id_and_lane()),
            next: c.list("next", k, id_and_lane()),
            miss: c.list("miss", k, [("x", IDS), ("position", 0..=step as i32 - 1), row]),
            dead: c.list("dead", k, [("victim", 0..=slot)]),
            sequence: c.column("sequence", k, sequences(p)),
            new_link: c.column("new_link", k, 0..=INVALID - 1),
            link_position: c.column("link_position", positions, -1..=p.links() as i32 - 1),
            invalid: c.list("invalid", k, [("id", i32::MIN..=i32::MAX)]),
            out_of_range: c.list("out_of_range", step, []),
            out_of_pool: c.list("out_of_pool", step, []),
            order: Order::declare(p, c),
            own: schedule.declare(p, c),
        }
    }
}

/// The working columns for learned lifetimes.
pub struct Order<'a, M: Memory> {
    /// What the table has for each lifetime.
    pub learned_values: M::Column<'a>,
    /// The lifetimes + 128 of the slots of a sample.
    pub sample: M::Column<'a>,
    /// The value of each lifetime, indexed by the lifetime + 128.
    pub value_of: M::Column<'a>,
    /// The value of each slot, less 128.
    pub value: M::Life<'a>,
}

impl<'a, M: Memory> Order<'a, M> {
    /// Declares the columns, if lifetimes are learned.
    #[inline(always)]
    pub fn declare(p: &Params, c: &mut impl Columns<'a, M>) -> Option<Self> {
        let values = LIFETIMES as u32;
        (p.lifetime == Lifetime::Learned).then(|| Self {
            learned_values: c.column("learned_values", values, i32::MIN..=i32::MAX),
            sample: c.column("sample", learned::sample_slots(p) as u32, i32::MIN..=i32::MAX),
            value_of: c.column("value_of", values, 0..=i32::from(u8::MAX)),
            value: c.life("value", p.slots),
        })
    }
}

/// A token of a request, and what its phases work on: the machine, the table with its parameters, the working
/// columns and the request.
#[expect(missing_docs, reason = "the types say it")]
pub struct Token<'s, 'a, M: Machine, S: Schedule> {
    pub m: M,
    pub p: &'s Params,
    pub state: &'s mut State<'a, M>,
    pub work: &'s mut Work<'a, M, S>,
    pub request: &'s mut Request<'a, M>,
    /// The number of the token in the request.
    pub number: M::Scalar,
}

/// The parts of the work on a token that depend on the kind of machine. Who runs or records Stage One passes the
/// value: [`crate::one_request`] for CPUs, `avsg_linker::record` for devices.
pub trait Schedule: Copy {
    /// The working columns that no other schedule uses.
    type Own<'a, M: Memory>;
    /// Whether several cores may share a request.
    const SHARES: bool;
    /// Whether the positions of links are scattered.
    const SCATTERS_POSITIONS: bool;

    /// Declares these columns.
    fn declare<'a, M: Memory>(self, p: &Params, c: &mut impl Columns<'a, M>) -> Self::Own<'a, M>;

    /// Does what need not wait for the prepared table.
    #[inline(always)]
    fn begin<M: Machine>(self, _: &mut Token<'_, '_, M, Self>) {}

    /// Probes the ids of the token. Leaves the slots in `work.slot`, the misses in `work.pending` as
    /// (id, lane), and the ids that are not valid in `work.invalid`.
    fn probe<M: Machine>(self, s: &mut Token<'_, '_, M, Self>);

    /// Refreshes hits before victims are chosen: at least all hits that could otherwise be chosen
    /// as victims. Leaves the values of slots in `work.order`.
    fn refresh<M: Machine>(self, s: &mut Token<'_, '_, M, Self>);

    /// Gives the slots of `work.dead` to `work.miss`, publishes the slots of the token, and enters the
    /// new links. See `update_state`.
    fn update<M: Machine>(self, s: &mut Token<'_, '_, M, Self>);
}
