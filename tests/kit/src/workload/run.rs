//! Runs a workload on an engine that takes host arrays, as an inference runtime would.

use avsg::Result;
use avsg::engine::Engine;
use avsg::plan::Plan;

use super::driver::WorkloadDriver;
use super::{Workload, verify};
use crate::batch::OwnedBatch;
use crate::fresh::FreshRows;
use crate::held::Held;
use crate::step_result::StepResult;

/// Runs a workload on an engine of its shape and checks every step. Returns the results of all
/// steps, so that engines can be compared.
///
/// # Panics
/// If a result is wrong.
pub fn run(workload: &Workload, engine: &mut Engine) -> Vec<StepResult> {
    let setting = workload.shape.setting();
    let write = |engine: &Engine, layer: usize, row: usize, bytes: &[u8]| {
        engine.pool().write_row(layer, row, bytes).unwrap();
    };
    let mut plan = engine.new_plan(setting.max_rows(), setting.max_requests).unwrap();
    let mut driver =
        WorkloadDriver::new(setting, &mut |l, row, bytes| write(engine, l, row, bytes));
    let mut results = Vec::new();
    for step in &workload.steps {
        let step_input = driver.next_step(step, &mut |l, row, bytes| write(engine, l, row, bytes));
        let fresh = step_input.has_fresh().then_some(&step_input.fresh[..]);
        let at_once = step.form.is_multiple_of(2);
        let held = Held::before(engine, &step_input.batch);
        transfer(engine, &mut plan, &step_input.batch, fresh, at_once).unwrap();
        held.check(&plan, &step_input.batch);
        let mut result = StepResult::from_plan(&plan, &step_input.batch.cu_q);
        use_slots_of_states(engine, &step_input.batch, &mut result);
        driver.check(&step_input, &result, |state, layer, slot, bytes| {
            engine.buffer().slot_bytes(state, layer, slot, bytes).unwrap();
        });
        verify::check_shares(engine, &plan);
        append(engine, &step_input.append_batch, &step_input.fresh).unwrap();
        results.push(result);
    }
    driver.check_pool(|layer, row, bytes| engine.pool().read_row(layer, row, bytes).unwrap());
    results
}

/// Replaces global indices, which an engine with `slot_base` returns, by the slots of each request's state.
fn use_slots_of_states(engine: &Engine, batch: &OwnedBatch, result: &mut StepResult) {
    let Some(base) = engine.config().slot_base else { return };
    for (request, rows) in batch.state.iter().zip(batch.cu_q.windows(2)) {
        let index = |slot| engine.buffer().index(*request as usize, slot);
        let all: Vec<_> = (0..engine.config().params.slots as usize).map(index).collect();
        let of_request = rows[0] as usize * result.k..rows[1] as usize * result.k;
        for slot in result.slots[of_request].iter_mut().filter(|slot| **slot >= 0) {
            let index = Some((*slot - base) as usize);
            *slot = all.iter().position(|found| *found == index).expect("a slot of it") as i32;
        }
    }
}

/// Plans a batch and transfers every layer. With `at_once`, `step` plans and transfers layer 0 and
/// the other layers follow, from the last one on; otherwise `plan` comes first, and a transfer of all layers is begun
/// and waited for when its fresh rows are gone.
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
    let layers: Vec<usize> = (0..engine.pool().layers()).collect();
    let of = |layer: usize| fresh.map(|rows| &rows[layer..=layer]);
    if at_once {
        with(of(0), |fresh| engine.step(&batch.batch(), plan, 0, fresh))?;
        layers[1..]
            .iter()
            .rev()
            .try_for_each(|&layer| with(of(layer), |fresh| engine.transfer(plan, &[layer], fresh)))
    } else {
        engine.plan(&batch.batch(), plan)?;
        with(fresh, |fresh| engine.begin(plan, &layers, fresh))?;
        engine.wait(plan)
    }
}

/// Calls `run` with the fresh rows of a list of layers.
fn with<T>(rows: Option<&[FreshRows]>, run: impl FnOnce(Option<&[&[u8]]>) -> T) -> T {
    let segments = rows.map(FreshRows::segments_of);
    run(segments.as_deref())
}

/// Appends the fresh rows of a step to the pool on every layer.
///
/// # Errors
/// If the engine refuses or fails.
pub fn append(engine: &mut Engine, batch: &OwnedBatch, fresh: &[FreshRows]) -> Result<()> {
    let layers: Vec<usize> = (0..fresh.len()).collect();
    engine.append(&batch.batch(), &layers, &FreshRows::segments_of(fresh))
}
