//! Runs a workload on an engine that takes host arrays, as an inference runtime would.

use avsg::Result;
use avsg::engine::{Engine, Fresh};
use avsg::plan::Plan;

use super::driver::WorkloadDriver;
use super::{Workload, verify};
use crate::batch::OwnedBatch;
use crate::fresh::FreshRows;
use crate::held::Held;
use crate::step_result::StepResult;

/// Maximum number of requests per batch. It exceeds the number of states, so some requests are
/// padded.
const MAX_REQUESTS: usize = 6;

/// Runs a workload on an engine of its shape and checks every step. Returns the slots, miss lists
/// and status bits of all steps, so that engines can be compared.
///
/// # Panics
/// If a result is wrong.
pub fn run(workload: &Workload, mut engine: Engine) -> Vec<i32> {
    let setting = workload.shape.setting(MAX_REQUESTS);
    let write = |engine: &Engine, layer: usize, row: usize, bytes: &[u8]| {
        engine.pool().write_row(layer, row, bytes).unwrap();
    };
    let mut plan = engine.new_plan(setting.max_rows(), setting.max_requests).unwrap();
    let mut driver =
        WorkloadDriver::new(setting, &mut |l, row, bytes| write(&engine, l, row, bytes));
    let mut log = Vec::new();
    for step in &workload.steps {
        let step_input = driver.next_step(step, &mut |l, row, bytes| write(&engine, l, row, bytes));
        let fresh = step_input.has_fresh().then_some(&step_input.fresh[..]);
        let at_once = step.form.is_multiple_of(2);
        let held = Held::before(&mut engine, &step_input.batch);
        transfer(&mut engine, &mut plan, &step_input.batch, fresh, at_once).unwrap();
        held.check(&plan, &step_input.batch);
        let result = StepResult::from_plan(&plan, &step_input.batch.cu_q);
        driver.check(&step_input, &result, |state, layer, slot, bytes| {
            engine.buffer().slot_bytes(state, layer, slot, bytes).unwrap();
        });
        verify::check_shares(&engine, &plan);
        result.append_to(&mut log);
        append(&mut engine, &step_input.append_batch, &step_input.fresh).unwrap();
    }
    driver.check_pool(|layer, row, bytes| engine.pool().read_row(layer, row, bytes).unwrap());
    log
}

/// Plans a batch and transfers every layer. With `at_once`, `step` plans and transfers layer 0 and
/// the other layers follow, from the last one on; otherwise `plan` comes first, and one call transfers all
/// layers.
///
/// # Errors
/// If the engine refuses or fails.
pub fn transfer(
    engine: &mut Engine,
    plan: &mut Plan,
    batch: &OwnedBatch,
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
        (1..layers).rev().try_for_each(|l| with(l, &mut |fresh| engine.transfer(plan, l, fresh)))
    } else {
        engine.plan(&batch.batch(), plan)?;
        let (layers, segments): (Vec<usize>, _) =
            ((0..layers).collect(), fresh.map(FreshRows::segments_of));
        let fresh = segments.as_deref().map(|segments| Fresh { segments });
        engine.transfer_layers(plan, &layers, fresh.as_ref())
    }
}

/// Appends the fresh rows of a step to the pool on every layer.
///
/// # Errors
/// If the engine refuses or fails.
pub fn append(engine: &mut Engine, batch: &OwnedBatch, fresh: &[FreshRows]) -> Result<()> {
    let (layers, segments): (Vec<usize>, _) =
        ((0..fresh.len()).collect(), FreshRows::segments_of(fresh));
    engine.append_layers(&batch.batch(), &layers, &Fresh { segments: &segments })
}
