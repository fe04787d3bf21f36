//! Verifies the results of a step without the engine's own state: by the batch, by the rows that the slots contain
//! according to earlier results, and by the current contents of all rows.

use std::collections::HashMap;
use std::fmt::Debug;

use avsg::device::request::status;
use avsg::engine::Engine;
use avsg::plan::Plan;

use super::pool_model::PoolModel;
use super::shape::EngineSetting;
use crate::batch::{BatchRequest, OwnedBatch, requests};
use crate::content::check_row;
use crate::step_result::StepResult;

/// The expected contents of one slot.
#[derive(Clone, Copy)]
struct Slot {
    /// The id that the slot holds, or -1.
    id: i32,
    /// The id and the version on layer 0 of the row that was copied into it last, if one was.
    copied: Option<(i32, u32)>,
}

/// The expected slots according to the results, indexed by state and slot.
pub struct SlotModel(Vec<Vec<Slot>>);

impl SlotModel {
    pub fn new(setting: &EngineSetting) -> Self {
        let empty = Slot { id: -1, copied: None };
        Self(vec![vec![empty; setting.params.slots as usize]; setting.states])
    }

    /// Checks the results of a step. `cold` tells of each request whether its table must be empty before.
    pub fn check_step(
        &mut self,
        result: &StepResult,
        batch: &OwnedBatch,
        cold: &[bool],
        pool_model: &PoolModel,
    ) {
        assert_eq!((result.requests.len(), result.valid.len()), (cold.len(), batch.rows()));
        for (r, request) in requests(batch).enumerate() {
            let slots = request.state.map_or(&mut [][..], |state| &mut self.0[state]);
            for slot in slots.iter_mut() {
                if cold[r] || request.stable.is_some_and(|stable| slot.id >= stable as i32) {
                    slot.id = -1;
                }
            }
            check_request(result, batch, (r, &request), pool_model, slots);
        }
    }

    /// Checks that every slot contains the row that was copied into it last, or zeros, after the transfer of all
    /// layers. `read(state, layer, slot, bytes)` reads a slot.
    pub fn check_contents(
        &self,
        setting: &EngineSetting,
        mut read: impl FnMut(usize, usize, usize, &mut [u8]),
    ) {
        let mut bytes = vec![0; setting.format.bytes()];
        for (state, slots) in self.0.iter().enumerate() {
            for (slot, expected) in slots.iter().enumerate() {
                for layer in 0..setting.layers {
                    read(state, layer, slot, &mut bytes);
                    let right = match expected.copied {
                        Some((id, version)) => check_row(id, version + layer as u32, &bytes),
                        None => bytes.iter().all(|byte| *byte == 0),
                    };
                    assert!(right, "state {state}, layer {layer}, slot {slot}: other bytes");
                }
            }
        }
    }
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

fn kind(id: i32, request: &BatchRequest<'_>, pool_model: &PoolModel) -> Kind {
    match (usize::try_from(id), request.stable) {
        _ if request.state.is_none() => Kind::Padding,
        (Ok(id), _) if id >= request.seq => Kind::OutOfRange,
        (Ok(id), Some(stable)) if id >= stable => Kind::Row(-1 - (id - stable) as i32),
        (Ok(id), _) => match pool_model.host_row(id, request.blocks) {
            Some(row) => Kind::Row(row as i32),
            None => Kind::OutOfPool,
        },
        (Err(_), _) => Kind::Padding,
    }
}

/// Checks that exactly the ids that select a row have a slot, and that the slot holds the row on every layer.
pub fn check_rows(
    result: &StepResult,
    batch: &OwnedBatch,
    pool_model: &PoolModel,
    mut read: impl FnMut(usize, usize, usize, &mut [u8]),
) {
    let mut bytes = vec![0; pool_model.setting.format.bytes()];
    for request in requests(batch) {
        for row in request.rows.clone() {
            for (&id, &slot) in batch.row(row).iter().zip(result.row(row)) {
                let has_row = matches!(kind(id, &request, pool_model), Kind::Row(_));
                assert_eq!(slot >= 0, has_row, "row {row}, id {id}, slot {slot}");
                let Some(state) = request.state.filter(|_| has_row) else { continue };
                for layer in 0..pool_model.setting.layers {
                    read(state, layer, slot as usize, &mut bytes);
                    let version = pool_model.version(state, id as usize) + layer as u32;
                    let right = check_row(id, version, &bytes);
                    assert!(right, "layer {layer}, row {row}, id {id}, slot {slot}: other bytes");
                }
            }
        }
    }
}

/// Checks the results of one request by the slots of its state, of which a padded request has none.
fn check_request(
    result: &StepResult,
    batch: &OwnedBatch,
    (r, request): (usize, &BatchRequest<'_>),
    pool_model: &PoolModel,
    held: &mut [Slot],
) {
    let request_result = &result.requests[r];
    let [positions, missed_ids, missed_slots, host_rows] = &request_result.misses;
    // The id of each returned slot, for all tokens of the request.
    let mut id_of_slot: HashMap<i32, i32> = HashMap::new();
    let (mut next, mut expected_status) = (0, 0);
    for (g, row) in request.rows.clone().enumerate() {
        let (ids, slots) = (batch.row(row), result.row(row));
        let before = held.to_vec();
        let (from, mut valid) = (next, 0);
        for (lane, (&id, &slot)) in ids.iter().zip(slots).enumerate() {
            let kind = kind(id, request, pool_model);
            let missed = positions.get(next) == Some(&((g * slots.len() + lane) as i32));
            let require = |right: bool, what: &dyn Debug| {
                let place = [r, g, lane];
                assert!(
                    right,
                    "request, token, lane {place:?}, id {id} in {slot}, {kind:?}: {what:?}"
                );
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
            require((0..held.len() as i32).contains(&slot), &"a slot is in [0, S)");
            require(!matches!(kind, Kind::Padding | Kind::OutOfRange), &"the id has a slot");
            let state = request.state.expect("the id of a padded request is padding");
            let current = || Some((id, pool_model.version(state, id as usize)));
            let other = id_of_slot.insert(slot, id);
            if missed {
                let listed = (missed_ids[next], missed_slots[next], Kind::Row(host_rows[next]));
                require(listed == (id, slot, kind), &("miss list", listed));
                require(other.is_none(), &("the slot of a miss is in use", other));
                held[slot as usize] = Slot { id, copied: current() };
                next += 1;
            } else {
                let Slot { id: held, copied } = before[slot as usize];
                require(held == id, &("the slot of a hit held another id before the token", held));
                require(copied == current(), &("the slot of a hit contains an old row", copied));
                require(other.is_none_or(|other| other == id), &("the slot belongs to", other));
            }
        }
        assert!(slots[ids.len()..].iter().all(|&s| s == -1), "lanes from k on have no slot");
        assert_eq!(result.valid[row], valid, "request {r}, token {g}: valid ids");
        let misses = (next - from) as i32;
        assert_eq!(request_result.token_misses[g], misses, "request {r}, token {g}: misses");
        for id in &missed_ids[from..next] {
            let count = |list: &[i32]| list.iter().filter(|x| *x == id).count();
            let listed = count(&missed_ids[from..next]);
            assert_eq!(listed, count(ids), "each occurrence of the missed id {id} is a miss");
        }
    }
    assert_eq!(next, missed_ids.len(), "request {r}: the miss list has each miss once, in order");
    assert_eq!(request_result.status, expected_status, "request {r}: status");
}
