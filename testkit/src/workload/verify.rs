//! What a step's results must be (design §3), judged from outside: by the batch that went in, by the
//! slots' contents as earlier results told them, and by the rows' current bytes.

use std::collections::HashMap;

use avsg::device::request::status;
use avsg::engine::Engine;
use avsg::plan::Plan;

use super::setting::Setting;
use super::world::World;
use crate::batch::Owned;
use crate::content::fill_row;
use crate::exact::{expect_right, look};
use crate::found::Found;

/// What a request asked for.
pub struct Want {
    /// None for a padded request.
    pub state: Option<usize>,
    pub tokens: usize,
    /// None for a read-only step.
    pub stable: Option<usize>,
    pub seq: usize,
    /// Whether the table must start empty.
    pub cold: bool,
    /// By how much its final tokens grow after the step.
    pub accepted: usize,
    /// How many rows it brings to the pool.
    pub appended: usize,
    /// Its block table as it was passed.
    pub blocks: Vec<i32>,
}

impl Want {
    pub fn padded(tokens: usize) -> Self {
        let (state, stable, blocks) = (None, None, Vec::new());
        Self { state, tokens, stable, seq: 0, cold: false, accepted: 0, appended: 0, blocks }
    }
}

/// What slots hold: ids as results told them, and the bytes that copying just the misses gives.
pub struct Mirror {
    holds: Vec<Vec<i32>>,
    /// By state, layer and slot.
    bytes: Vec<Vec<Vec<Vec<u8>>>>,
}

impl Mirror {
    pub fn new(setting: &Setting) -> Self {
        let (states, slots) = (setting.states, setting.params.slots as usize);
        let layer = vec![vec![0; setting.format.bytes()]; slots];
        let bytes = vec![vec![layer; setting.layers]; states];
        Self { holds: vec![vec![-1; slots]; states], bytes }
    }
}

/// Checks a whole step, after its transfers. `read` reads the slot of a state and layer.
pub fn step(
    found: &Found,
    owned: &Owned,
    wants: &[Want],
    world: &World,
    mirror: &mut Mirror,
    read: impl FnMut(usize, usize, usize, &mut [u8]),
) {
    assert_eq!((found.requests.len(), found.valid.len()), (wants.len(), owned.rows()));
    for (r, want) in wants.iter().enumerate() {
        match want.state {
            None => padded(found, owned.cu_q[r] as usize, r, want),
            Some(state) => request(found, owned, r, want, world, &mut mirror.holds[state]),
        }
    }
    contents(found, owned, wants, world, mirror, read);
}

/// Every core copies as many of a plan's misses as another, or one more, and all cores copy all.
///
/// # Panics
/// If they do not.
pub fn cuts(engine: &Engine, plan: &Plan) {
    let mut shares = vec![0; engine.config().cores];
    for r in 0..plan.requests() {
        let cuts: Vec<usize> = engine.cuts(plan, r).collect();
        assert!(cuts.len() == shares.len() + 1 && cuts[0] == 0 && cuts.is_sorted(), "{cuts:?}");
        assert_eq!(cuts.last(), Some(&plan.misses(r).id.len()), "cuts cover the list");
        cuts.windows(2).zip(&mut shares).for_each(|(pair, share)| *share += pair[1] - pair[0]);
    }
    let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
    assert!(most - least <= 1, "shares differ by at most one row: {shares:?}");
}

/// A padded request has no slot and no copy.
fn padded(found: &Found, first: usize, r: usize, want: &Want) {
    for row in first..first + want.tokens {
        assert!(found.row(row).iter().all(|&s| s == -1) && found.valid[row] == 0, "row {row}");
    }
    let of = &found.requests[r];
    assert!(of.misses[1].is_empty() && of.status == 0, "request {r} is padded");
}

/// What an id is at this moment.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Padding,
    Far,
    Row(i32),
    NoRow,
}

fn kind(id: i32, want: &Want, world: &World) -> Kind {
    match (usize::try_from(id), want.stable) {
        (Err(_), _) => Kind::Padding,
        (Ok(id), _) if id >= want.seq => Kind::Far,
        (Ok(id), Some(stable)) if id >= stable => Kind::Row(-1 - (id - stable) as i32),
        (Ok(id), _) => {
            world.host_row(id, &want.blocks).map_or(Kind::NoRow, |row| Kind::Row(row as i32))
        }
    }
}

fn request(found: &Found, owned: &Owned, r: usize, want: &Want, world: &World, holds: &mut [i32]) {
    if want.cold {
        holds.fill(-1);
    }
    if let Some(stable) = want.stable {
        holds.iter_mut().filter(|id| **id >= stable as i32).for_each(|id| *id = -1);
    }
    let (of, first) = (&found.requests[r], owned.cu_q[r] as usize);
    let [positions, missed_ids, missed_slots, host_rows] = &of.misses;
    // Which id each returned slot stands for, all tokens of the request together.
    let mut bound: HashMap<i32, i32> = HashMap::new();
    let (mut next, mut bits) = (0, 0);
    for g in 0..want.tokens {
        let (ids, slots) = (owned.row(first + g), found.row(first + g));
        let before = holds.to_vec();
        let (from, mut valid) = (next, 0);
        for (lane, (&id, &slot)) in ids.iter().zip(slots).enumerate() {
            let at = || format!("request {r}, token {g}, lane {lane}, id {id}, slot {slot}");
            let kind = kind(id, want, world);
            let missed = positions.get(next) == Some(&((g * slots.len() + lane) as i32));
            bits |= if kind == Kind::Far { status::ID_OUT_OF_RANGE } else { 0 };
            if slot == -1 {
                assert!(!matches!(kind, Kind::Row(_)) && !missed, "{}: {kind:?}", at());
                bits |= if kind == Kind::NoRow { status::ROW_OUT_OF_POOL } else { 0 };
                continue;
            }
            valid += 1;
            assert!((0..holds.len() as i32).contains(&slot), "{}: slots are in [0, S)", at());
            assert!(!matches!(kind, Kind::Padding | Kind::Far), "{}: {kind:?}", at());
            if missed {
                assert_eq!(
                    (missed_ids[next], missed_slots[next]),
                    (id, slot),
                    "{}: miss list",
                    at()
                );
                assert_eq!(Kind::Row(host_rows[next]), kind, "{}: host row", at());
                assert_eq!(bound.insert(slot, id), None, "{}: the slot is in use", at());
                holds[slot as usize] = id;
                next += 1;
            } else {
                assert_eq!(before[slot as usize], id, "{}: a hit's slot held the id before", at());
                let other = bound.insert(slot, id);
                assert!(other.is_none_or(|other| other == id), "{}: the slot is {other:?}'s", at());
            }
        }
        assert!(slots[ids.len()..].iter().all(|&s| s == -1), "lanes past k are padding");
        assert_eq!(found.valid[first + g], valid, "request {r}, token {g}: valid ids");
        assert_eq!(of.by_token[g] as usize, next - from, "request {r}, token {g}: n_g");
        for id in &missed_ids[from..next] {
            let times = |list: &[i32]| list.iter().filter(|x| *x == id).count();
            assert_eq!(times(&missed_ids[from..next]), times(ids), "misses of id {id}");
        }
    }
    assert_eq!(next, missed_ids.len(), "request {r}: the list holds each miss once, in order");
    assert_eq!(of.status, bits, "request {r}: status");
}

/// Every returned slot holds its id's current bytes, and no other slot has changed.
fn contents(
    found: &Found,
    owned: &Owned,
    wants: &[Want],
    world: &World,
    mirror: &mut Mirror,
    mut read: impl FnMut(usize, usize, usize, &mut [u8]),
) {
    let mut got = vec![0; mirror.bytes[0][0][0].len()];
    for layer in 0..mirror.bytes[0].len() {
        let row = |state: usize, id: i32| (id, world.version(state, id as usize) + layer as u32);
        for (r, want) in wants.iter().enumerate() {
            let Some(state) = want.state else { continue };
            let [_, ids, slots, _] = &found.requests[r].misses;
            for (&id, &slot) in ids.iter().zip(slots) {
                let (id, version) = row(state, id);
                fill_row(id, version, &mut mirror.bytes[state][layer][slot as usize]);
            }
        }
        look(
            &owned.batch(),
            got.len(),
            |at| found.row(at),
            |state, slot, bytes| {
                read(state, layer, slot, bytes);
                true
            },
            |r, id| row(wants[r].state.expect("not padded"), id),
            |seen| {
                // Which ids may go without a slot, `request` has said.
                if seen.slot != -1 {
                    expect_right(seen, layer);
                }
            },
        );
        for (state, layers) in mirror.bytes.iter().enumerate() {
            for (slot, want) in layers[layer].iter().enumerate() {
                read(state, layer, slot, &mut got);
                assert!(got == *want, "state {state}, layer {layer}, slot {slot}: touched");
            }
        }
    }
}
