//! Verifies the results of a step without the engine's own state: by the batch, by the contents of
//! the slots according to earlier results, and by the current bytes of all rows.

use std::collections::HashMap;
use std::fmt::Debug;

use avsg::device::request::status;
use avsg::engine::Engine;
use avsg::plan::Plan;

use super::pool_model::PoolModel;
use super::setting::EngineSetting;
use crate::batch::OwnedBatch;
use crate::content::fill_row;
use crate::exact::{assert_exact, for_each_id};
use crate::step_result::{RequestResult, StepResult};

/// The input of one request, by which its results are verified.
pub struct RequestInput {
    /// State, or none for a padded request.
    pub state: Option<usize>,
    pub tokens: usize,
    /// `stable_len`, or none for a read-only request.
    pub stable: Option<usize>,
    pub seq: usize,
    /// Whether the table must be empty before the step.
    pub cold: bool,
    /// Number of tokens that become final after the step.
    pub accepted: usize,
    /// Number of rows that the append writes on each layer.
    pub appended: usize,
    /// Block table as it was passed.
    pub blocks: Vec<i32>,
}

impl RequestInput {
    pub fn padded(tokens: usize) -> Self {
        let (state, stable, blocks) = (None, None, Vec::new());
        Self { state, tokens, stable, seq: 0, cold: false, accepted: 0, appended: 0, blocks }
    }
}

/// The expected slots: their ids according to the results, and the bytes that copying only the
/// misses gives.
pub struct SlotModel {
    /// Id of each slot or -1, indexed by state and slot.
    ids: Vec<Vec<i32>>,
    /// Indexed by state, layer and slot.
    bytes: Vec<Vec<Vec<Vec<u8>>>>,
}

impl SlotModel {
    pub fn new(setting: &EngineSetting) -> Self {
        let (states, slots) = (setting.states, setting.params.slots as usize);
        let layer = vec![vec![0; setting.format.bytes()]; slots];
        let bytes = vec![vec![layer; setting.layers]; states];
        Self { ids: vec![vec![-1; slots]; states], bytes }
    }
}

/// Checks a step after the transfer of all layers. `read(state, layer, slot, bytes)` reads a slot.
pub fn check_step(
    result: &StepResult,
    owned: &OwnedBatch,
    inputs: &[RequestInput],
    pool_model: &PoolModel,
    slot_model: &mut SlotModel,
    read: impl FnMut(usize, usize, usize, &mut [u8]),
) {
    assert_eq!((result.requests.len(), result.valid.len()), (inputs.len(), owned.rows()));
    for (r, input) in inputs.iter().enumerate() {
        match input.state {
            None => check_padded(result, owned.cu_q[r] as usize, r, input),
            Some(state) => {
                check_request(result, owned, r, input, pool_model, &mut slot_model.ids[state])
            }
        }
    }
    check_contents(result, owned, inputs, pool_model, slot_model, read);
}

/// Checks that the cores' shares of a plan's misses cover every miss and differ by at most one row.
///
/// # Panics
/// If the shares are wrong.
pub fn check_shares(engine: &Engine, plan: &Plan) {
    let mut shares = vec![0; engine.config().cores];
    for r in 0..plan.requests() {
        let cuts: Vec<usize> = engine.cuts(plan, r).collect();
        assert!(cuts.len() == shares.len() + 1 && cuts[0] == 0 && cuts.is_sorted(), "{cuts:?}");
        assert_eq!(cuts.last(), Some(&plan.misses(r).id.len()), "the shares cover the miss list");
        cuts.windows(2).zip(&mut shares).for_each(|(pair, share)| *share += pair[1] - pair[0]);
    }
    let (lowest, highest) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
    assert!(highest - lowest <= 1, "shares differ by at most one row: {shares:?}");
}

/// Checks that a padded request has neither slots nor misses.
fn check_padded(result: &StepResult, first: usize, r: usize, input: &RequestInput) {
    for row in first..first + input.tokens {
        assert!(result.row(row).iter().all(|&s| s == -1) && result.valid[row] == 0, "row {row}");
    }
    let RequestResult { misses, status, .. } = &result.requests[r];
    assert!(misses[1].is_empty() && *status == 0, "request {r} is padded");
}

/// What an id selects in a step.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Padding,
    /// The id is not below the sequence length.
    OutOfRange,
    /// A host row, or -1 - n for fresh row n of the request.
    Row(i32),
    /// The host row is outside of the pool.
    OutOfPool,
}

fn kind(id: i32, input: &RequestInput, pool_model: &PoolModel) -> Kind {
    match (usize::try_from(id), input.stable) {
        (Err(_), _) => Kind::Padding,
        (Ok(id), _) if id >= input.seq => Kind::OutOfRange,
        (Ok(id), Some(stable)) if id >= stable => Kind::Row(-1 - (id - stable) as i32),
        (Ok(id), _) => pool_model
            .host_row(id, &input.blocks)
            .map_or(Kind::OutOfPool, |row| Kind::Row(row as i32)),
    }
}

fn check_request(
    result: &StepResult,
    owned: &OwnedBatch,
    r: usize,
    input: &RequestInput,
    pool_model: &PoolModel,
    held_ids: &mut [i32],
) {
    if input.cold {
        held_ids.fill(-1);
    }
    if let Some(stable) = input.stable {
        held_ids.iter_mut().filter(|id| **id >= stable as i32).for_each(|id| *id = -1);
    }
    let (request_result, first) = (&result.requests[r], owned.cu_q[r] as usize);
    let [positions, missed_ids, missed_slots, host_rows] = &request_result.misses;
    // The id of each returned slot, for all tokens of the request.
    let mut id_of_slot: HashMap<i32, i32> = HashMap::new();
    let (mut next, mut expected_status) = (0, 0);
    for g in 0..input.tokens {
        let (ids, slots) = (owned.row(first + g), result.row(first + g));
        let before = held_ids.to_vec();
        let (from, mut valid) = (next, 0);
        for (lane, (&id, &slot)) in ids.iter().zip(slots).enumerate() {
            let kind = kind(id, input, pool_model);
            let missed = positions.get(next) == Some(&((g * slots.len() + lane) as i32));
            let require = |right: bool, what: &dyn Debug| {
                let place = || format!("token {g}, lane {lane}, id {id}, slot {slot}");
                assert!(right, "request {r}, {}, {kind:?}: {what:?}", place());
            };
            expected_status |= match kind {
                Kind::OutOfRange => status::ID_OUT_OF_RANGE,
                Kind::OutOfPool if slot == -1 => status::ROW_OUT_OF_POOL,
                _ => 0,
            };
            if slot == -1 {
                require(!matches!(kind, Kind::Row(_)) && !missed, &"the id has no slot");
                continue;
            }
            valid += 1;
            require((0..held_ids.len() as i32).contains(&slot), &"a slot is in [0, S)");
            require(!matches!(kind, Kind::Padding | Kind::OutOfRange), &"the id has a slot");
            if missed {
                let listed = (missed_ids[next], missed_slots[next], Kind::Row(host_rows[next]));
                require(listed == (id, slot, kind), &("miss list", listed));
                let other = id_of_slot.insert(slot, id);
                require(other.is_none(), &("the slot of a miss is in use", other));
                held_ids[slot as usize] = id;
                next += 1;
            } else {
                let held = before[slot as usize];
                require(held == id, &("the slot of a hit held another id before the token", held));
                let other = id_of_slot.insert(slot, id);
                require(other.is_none_or(|other| other == id), &("the slot belongs to", other));
            }
        }
        assert!(slots[ids.len()..].iter().all(|&s| s == -1), "lanes from k on have no slot");
        assert_eq!(result.valid[first + g], valid, "request {r}, token {g}: valid ids");
        let misses = request_result.token_misses[g] as usize;
        assert_eq!(misses, next - from, "request {r}, token {g}: number of misses");
        for id in &missed_ids[from..next] {
            let count = |list: &[i32]| list.iter().filter(|x| *x == id).count();
            let listed = count(&missed_ids[from..next]);
            assert_eq!(listed, count(ids), "each occurrence of the missed id {id} is a miss");
        }
    }
    assert_eq!(next, missed_ids.len(), "request {r}: the miss list has each miss once, in order");
    assert_eq!(request_result.status, expected_status, "request {r}: status");
}

/// Checks that every returned slot contains the current bytes of its id and that no other slot has
/// changed.
fn check_contents(
    result: &StepResult,
    owned: &OwnedBatch,
    inputs: &[RequestInput],
    pool_model: &PoolModel,
    slot_model: &mut SlotModel,
    mut read: impl FnMut(usize, usize, usize, &mut [u8]),
) {
    let mut got = vec![0; slot_model.bytes[0][0][0].len()];
    for layer in 0..slot_model.bytes[0].len() {
        let row =
            |state: usize, id: i32| (id, pool_model.version(state, id as usize) + layer as u32);
        for (r, input) in inputs.iter().enumerate() {
            let Some(state) = input.state else { continue };
            let [_, ids, slots, _] = &result.requests[r].misses;
            for (&id, &slot) in ids.iter().zip(slots) {
                let (id, version) = row(state, id);
                fill_row(id, version, &mut slot_model.bytes[state][layer][slot as usize]);
            }
        }
        for_each_id(
            &owned.batch(),
            got.len(),
            |at| result.row(at),
            |state, slot, bytes| {
                read(state, layer, slot, bytes);
                true
            },
            |r, id| row(inputs[r].state.expect("not padded"), id),
            |selected| {
                // `request` has checked which ids have no slot.
                if selected.slot != -1 {
                    assert_exact(selected, layer);
                }
            },
        );
        for (state, layers) in slot_model.bytes.iter().enumerate() {
            for (slot, expected) in layers[layer].iter().enumerate() {
                read(state, layer, slot, &mut got);
                let place = || format!("state {state}, layer {layer}, slot {slot}");
                assert!(got == *expected, "{}: not the last copied row", place());
            }
        }
    }
}
