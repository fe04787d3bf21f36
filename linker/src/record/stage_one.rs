//! Stage One's tape: the columns, parameters and ranges that the kernel is recorded with.
//!
//! The declared ranges are what whoever launches the kernel must keep. Offsets into global memory
//! are not bounded here: they are scalars, and every access is checked when it is replayed.

use super::{Recorder, Recording};
use crate::check::Refused;
use crate::tape::{Range, Tape};
use avsg_device::defer::Refresh;
use avsg_device::hash::{fits_way, last_way};
use avsg_device::params::{ID_LIMIT, Params};
use avsg_device::share::NOBODY;
use avsg_device::stage_one::{Request, Work, record, stage_one_with};
use avsg_device::state::{EMPTY, INVALID, State};

/// Records Stage One for a geometry, as vector cores run it: with [`Refresh::Late`]. State columns are `id`, `life`, `link` and `header`, working
/// columns have their field's name, global arrays `gm_` before it.
///
/// # Errors
/// If the kernel does what a tape cannot say; [`crate::check`] says the rest.
pub fn record_stage_one(p: &Params) -> Result<Tape, Refused> {
    record_stage_one_with(p, Refresh::Late)
}

/// [`record_stage_one`], with a choice of when hits are refreshed.
///
/// # Errors
/// As there.
pub fn record_stage_one_with(p: &Params, when: Refresh) -> Result<Tape, Refused> {
    let recording = Recording::new("stage_one");
    let m = recording.recorder();
    let mut state = state(m, p);
    let mut work = work(m, p);
    let mut request = request(m, p);
    stage_one_with(m, p, &mut state, &mut work, &mut request, when);
    recording.finish()
}

/// An id that was found valid.
const ID: Range = Range { lo: 0, hi: ID_LIMIT - 1 };
/// An id, or -1.
const ID_OR_EMPTY: Range = Range { lo: EMPTY, hi: ID_LIMIT - 1 };
/// A link word.
const LINK: Range = Range { lo: 0, hi: 2 * INVALID - 1 };

/// Declares a table's columns.
pub fn state<'a, 't>(m: Recorder<'t>, p: &Params) -> State<'a, Recorder<'t>> {
    State {
        id: m.column("id", p.slots, ID_OR_EMPTY),
        life: m.life("life", p.slots),
        link: m.column("link", p.links(), LINK),
        header: m.output("header", Range::ANY),
    }
}

/// Declares the working columns.
pub fn work<'a, 't>(m: Recorder<'t>, p: &Params) -> Work<'a, Recorder<'t>> {
    let (k, step) = (p.k, p.k * p.tokens);
    let (lane, slot) = (Range::below(k), Range::below(p.slots));
    let row = Range::new(-ID_LIMIT, i32::MAX);
    let word = Range::new(0, INVALID - 1);
    let way = if fits_way(p) { Range::new(0, last_way(p)) } else { ID_OR_EMPTY };
    Work {
        ids: m.column("ids", k, Range::ANY),
        // Scattered by lane, so its length is a power of two.
        slot: m.column("slot", k.next_power_of_two(), Range::new(NOBODY, slot.hi)),
        part_way: m.column("part_way", k, way),
        wanted: m.column("wanted", k, Range::new(NOBODY, ID.hi)),
        pending: m.list("pending", k, [ID, lane]),
        next: m.list("next", k, [ID, lane]),
        miss: m.list("miss", k, [ID, Range::below(step), row]),
        dead: m.list("dead", k, [slot]),
        way: m.column("way", k, way),
        new_link: m.column("new_link", k, word),
        open: m.list("open", k, [way, lane]),
        open_next: m.list("open_next", k, [way, lane]),
        // Scattered by place, so its length is a power of two.
        at: m.column("at", k.next_power_of_two(), Range::new(-1, Range::below(p.links()).hi)),
        void: m.list("void", k, [Range::ANY]),
        far: m.list("far", step, []),
        outside: m.list("outside", step, []),
    }
}

/// Declares a request's parameters and global arrays.
pub fn request<'a, 't>(m: Recorder<'t>, p: &Params) -> Request<'a, Recorder<'t>> {
    let at = |name| m.param(name, Range::new(0, i32::MAX));
    let words = |name| m.output(name, Range::ANY);
    let length = Range::new(0, ID_LIMIT);
    // A block's first row must not overflow.
    let rows = i32::MAX / i32::try_from(p.page.max(1)).unwrap_or(i32::MAX);
    Request {
        tokens: m.param("tokens", Range::new(0, Range::below(p.tokens).hi + 1)),
        k: m.param("k", Range::new(0, Range::below(p.k).hi + 1)),
        generation: m.param("generation", Range::ANY),
        stable: m.param("stable", length),
        limit: m.param("limit", length),
        rows: m.param("rows", Range::new(0, rows)),
        ids: m.input("gm_ids", Range::ANY),
        ids_at: at("ids_at"),
        ids_stride: at("ids_stride"),
        blocks: m.input("gm_blocks", Range::ANY),
        blocks_at: at("blocks_at"),
        blocks_len: at("blocks_len"),
        slot: words("gm_slot"),
        slot_at: at("slot_at"),
        slot_stride: at("slot_stride"),
        valid: words("gm_valid"),
        valid_at: at("valid_at"),
        miss_pos: words("gm_miss_pos"),
        miss_id: words("gm_miss_id"),
        miss_slot: words("gm_miss_slot"),
        miss_row: words("gm_miss_row"),
        miss_at: at("miss_at"),
        record: words("gm_record"),
        record_at: m.param("record_at", Range::new(0, i32::MAX - record_words())),
        shared: m.param("shared", Range::new(0, 1)),
        part_at: m.param("part_at", Range::new(0, Range::below(p.k).hi)),
        part_len: m.param("part_len", Range::new(0, Range::below(p.k).hi + 1)),
        late: m.param("late", Range::new(0, Range::below(p.tokens).hi + 1)),
    }
}

fn record_words() -> i32 {
    i32::try_from(record::WORDS).unwrap_or(i32::MAX)
}
