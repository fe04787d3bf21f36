//! Lives a workload on an engine by host arrays, as a runtime would.

use avsg::Result;
use avsg::engine::{Engine, Fresh};
use avsg::plan::Plan;

use super::player::Player;
use super::{Workload, verify};
use crate::batch::Owned;
use crate::found::Found;
use crate::fresh::FreshRows;

/// The most requests of a batch; more than the states, so some are padded.
const MAX_REQUESTS: usize = 6;

/// Lives it on an engine of its shape. Returns every slot and miss list, to compare machines by.
///
/// # Panics
/// If a result is not exact.
pub fn run(workload: &Workload, mut engine: Engine) -> Vec<i32> {
    let setting = workload.shape.setting(MAX_REQUESTS);
    let write = |engine: &Engine, layer: usize, row: usize, bytes: &[u8]| {
        engine.pool().write_row(layer, row, bytes).unwrap();
    };
    let mut plan = engine.new_plan(setting.batch_rows(), setting.requests).unwrap();
    let mut player = Player::new(setting, &mut |l, row, bytes| write(&engine, l, row, bytes));
    let mut log = Vec::new();
    for step in &workload.steps {
        let turn = player.turn(step, &mut |l, row, bytes| write(&engine, l, row, bytes));
        let fresh = turn.has_fresh().then_some(&turn.fresh[..]);
        let at_once = step.form.is_multiple_of(2);
        transfer(&mut engine, &mut plan, &turn.batch, fresh, at_once).unwrap();
        let found = Found::of(&plan, &turn.batch.cu_q);
        player.check(&turn, &found, |state, layer, slot, bytes| {
            engine.buffer().slot_bytes(state, layer, slot, bytes).unwrap();
        });
        verify::cuts(&engine, &plan);
        found.note(&mut log);
        append(&mut engine, &turn.whole, &turn.fresh).unwrap();
    }
    player.check_pool(|layer, row, bytes| engine.pool().read_row(layer, row, bytes).unwrap());
    log
}

/// Plans a batch and transfers every layer: layer 0 by a step and the others after it, or all after a
/// plan of its own, the last one first.
///
/// # Errors
/// If the engine refuses or fails.
pub fn transfer(
    engine: &mut Engine,
    plan: &mut Plan,
    batch: &Owned,
    fresh: Option<&[FreshRows]>,
    at_once: bool,
) -> Result<()> {
    let layers = engine.pool().layers();
    let with = |layer: usize, run: &mut dyn FnMut(Option<&Fresh<'_>>) -> Result<()>| {
        let Some(fresh) = fresh else { return run(None) };
        run(Some(&Fresh { segments: &fresh[layer].segments() }))
    };
    if at_once {
        with(0, &mut |fresh| engine.step(&batch.batch(), plan, 0, fresh))?;
        (1..layers).try_for_each(|l| with(l, &mut |fresh| engine.transfer(plan, l, fresh)))
    } else {
        engine.plan(&batch.batch(), plan)?;
        (0..layers).rev().try_for_each(|l| with(l, &mut |fresh| engine.transfer(plan, l, fresh)))
    }
}

/// Brings a step's rows of every layer to the pool.
///
/// # Errors
/// If the engine refuses or fails.
pub fn append(engine: &mut Engine, batch: &Owned, fresh: &[FreshRows]) -> Result<()> {
    for (layer, fresh) in fresh.iter().enumerate() {
        engine.append(&batch.batch(), layer, &Fresh { segments: &fresh.segments() })?;
    }
    Ok(())
}
