//! What a step's results must be (design §3), judged from outside: by the batch that went in, by the
//! slots' contents as earlier results told them, and by the rows' current bytes.

use std::collections::HashMap;

use crate::content::{check_row, fill_row};
use avsg::device::stage_one::status;
use avsg::engine::Engine;
use avsg::plan::Plan;

use super::world::World;
use crate::batch::Owned;

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
    /// Its block table as it was passed.
    pub blocks: Vec<i32>,
}

impl Want {
    pub fn padded(tokens: usize) -> Self {
        let (state, stable, blocks) = (None, None, Vec::new());
        Self { state, tokens, stable, seq: 0, cold: false, accepted: 0, blocks }
    }
}

/// What slots hold: ids as results told them, and the bytes that copying just the misses gives.
pub struct Mirror {
    holds: Vec<Vec<i32>>,
    /// By state, layer and slot.
    bytes: Vec<Vec<Vec<Vec<u8>>>>,
}

impl Mirror {
    pub fn new(engine: &Engine) -> Self {
        let (states, slots) = (engine.config().states, engine.config().params.slots as usize);
        let layer = vec![vec![0; engine.pool().format().bytes()]; slots];
        let bytes = vec![vec![layer; engine.pool().layers()]; states];
        Self { holds: vec![vec![-1; slots]; states], bytes }
    }
}

/// Checks a whole step, after its transfers.
pub fn step(
    engine: &Engine,
    plan: &Plan,
    owned: &Owned,
    wants: &[Want],
    world: &World,
    mirror: &mut Mirror,
) {
    assert_eq!((plan.requests(), plan.rows()), (wants.len(), *owned.cu_q.last().unwrap() as usize));
    for (r, want) in wants.iter().enumerate() {
        match want.state {
            None => padded(plan, owned.cu_q[r] as usize, r, want),
            Some(state) => request(plan, owned, r, want, world, &mut mirror.holds[state]),
        }
    }
    contents(engine, plan, owned, wants, world, mirror);
    let mut shares = vec![0; engine.config().cores];
    for r in 0..wants.len() {
        let cuts: Vec<usize> = engine.cuts(plan, r).collect();
        assert!(cuts.len() == shares.len() + 1 && cuts[0] == 0 && cuts.is_sorted(), "{cuts:?}");
        assert_eq!(cuts.last(), Some(&plan.misses(r).id.len()), "cuts cover the list");
        cuts.windows(2).zip(&mut shares).for_each(|(pair, share)| *share += pair[1] - pair[0]);
    }
    let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
    assert!(most - least <= 1, "shares differ by at most one row: {shares:?}");
}

/// A padded request has no slot and no copy.
fn padded(plan: &Plan, first: usize, r: usize, want: &Want) {
    for row in first..first + want.tokens {
        assert!(plan.slots(row).iter().all(|&s| s == -1) && plan.valid()[row] == 0, "row {row}");
    }
    assert!(plan.misses(r).id.is_empty() && plan.status(r) == 0, "request {r} is padded");
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

fn request(plan: &Plan, owned: &Owned, r: usize, want: &Want, world: &World, holds: &mut [i32]) {
    if want.cold {
        holds.fill(-1);
    }
    if let Some(stable) = want.stable {
        holds.iter_mut().filter(|id| **id >= stable as i32).for_each(|id| *id = -1);
    }
    let (misses, first) = (plan.misses(r), owned.cu_q[r] as usize);
    // Which id each returned slot stands for, all tokens of the request together.
    let mut bound: HashMap<i32, i32> = HashMap::new();
    let (mut next, mut bits) = (0, 0);
    for g in 0..want.tokens {
        let (ids, slots) = (owned.row(first + g), plan.slots(first + g));
        let before = holds.to_vec();
        let (from, mut valid) = (next, 0);
        for (lane, (&id, &slot)) in ids.iter().zip(slots).enumerate() {
            let at = format!("request {r}, token {g}, lane {lane}, id {id}, slot {slot}");
            let kind = kind(id, want, world);
            let missed = misses.position.get(next) == Some(&((g * slots.len() + lane) as i32));
            bits |= if kind == Kind::Far { status::ID_OUT_OF_RANGE } else { 0 };
            if slot == -1 {
                assert!(!matches!(kind, Kind::Row(_)) && !missed, "{at}: {kind:?}");
                bits |= if kind == Kind::NoRow { status::ROW_OUT_OF_POOL } else { 0 };
                continue;
            }
            valid += 1;
            assert!((0..holds.len() as i32).contains(&slot), "{at}: slots are in [0, S)");
            assert!(!matches!(kind, Kind::Padding | Kind::Far), "{at}: {kind:?}");
            if missed {
                assert_eq!((misses.id[next], misses.slot[next]), (id, slot), "{at}: miss list");
                assert_eq!(Kind::Row(misses.row[next]), kind, "{at}: host row");
                assert_eq!(bound.insert(slot, id), None, "{at}: the slot is in use");
                holds[slot as usize] = id;
                next += 1;
            } else {
                assert_eq!(before[slot as usize], id, "{at}: a hit's slot held the id before");
                let other = bound.insert(slot, id);
                assert!(other.is_none_or(|other| other == id), "{at}: the slot is {other:?}'s");
            }
        }
        assert!(slots[ids.len()..].iter().all(|&s| s == -1), "lanes past k are padding");
        assert_eq!(plan.valid()[first + g], valid, "request {r}, token {g}: valid ids");
        assert_eq!(plan.token_misses(r, g), next - from, "request {r}, token {g}: n_g");
        for id in &misses.id[from..next] {
            let times = |list: &[i32]| list.iter().filter(|x| *x == id).count();
            assert_eq!(times(&misses.id[from..next]), times(ids), "misses of id {id}");
        }
    }
    assert_eq!(next, misses.id.len(), "request {r}: the list holds each miss once, in order");
    assert_eq!(plan.status(r), bits, "request {r}: status");
}

/// Every returned slot holds its id's current bytes, and no other slot has changed.
fn contents(
    engine: &Engine,
    plan: &Plan,
    owned: &Owned,
    wants: &[Want],
    world: &World,
    mirror: &mut Mirror,
) {
    let mut got = vec![0; engine.pool().format().bytes()];
    for (r, want) in wants.iter().enumerate() {
        let Some(state) = want.state else { continue };
        let misses = plan.misses(r);
        for layer in 0..engine.pool().layers() {
            let version = |id: i32| world.version(state, id as usize) + layer as u32;
            for (&id, &slot) in misses.id.iter().zip(misses.slot) {
                fill_row(id, version(id), &mut mirror.bytes[state][layer][slot as usize]);
            }
            for row in owned.cu_q[r] as usize..owned.cu_q[r + 1] as usize {
                let chosen = owned.row(row).iter().zip(plan.slots(row));
                for (&id, &slot) in chosen.filter(|&(_, &slot)| slot >= 0) {
                    engine.buffer().slot_bytes(state, layer, slot as usize, &mut got).unwrap();
                    assert!(
                        check_row(id, version(id), &got),
                        "layer {layer}, id {id}, slot {slot}"
                    );
                }
            }
        }
    }
    for (state, layers) in mirror.bytes.iter().enumerate() {
        for (layer, slots) in layers.iter().enumerate() {
            for (slot, want) in slots.iter().enumerate() {
                engine.buffer().slot_bytes(state, layer, slot, &mut got).unwrap();
                assert!(got == *want, "state {state}, layer {layer}, slot {slot}: touched");
            }
        }
    }
}

/// A step's results as numbers.
pub fn note(plan: &Plan, log: &mut Vec<i32>) {
    (0..plan.rows()).for_each(|row| log.extend(plan.slots(row)));
    for r in 0..plan.requests() {
        let misses = plan.misses(r);
        log.extend([misses.position, misses.id, misses.slot, misses.row].concat());
        log.push(plan.status(r));
    }
}
