//! The kernels, each alone: the same steps on the device and on the CPU must give the same words
//! and bytes, in each geometry of the checks.

use anyhow::{Context as _, Result};
use avsg::Error;
use avsg::ascend::RegisteredPool;
use avsg::ascend::acl::Stream;
use avsg::device::kernels::KernelName;
use avsg::device::learned::START;
use avsg::device::params::Lifetime;
use avsg::engine::{Config, Engine, MachineChoice};
use avsg::plan::{Misses, Plan};
use avsg::pool::{HostPool, PoolConfig};
use avsg::rows::RowFormat;
use avsg_measure::batch::OwnedBatch;
use avsg_measure::device_arrays::DeviceArrays;
use avsg_measure::disk::write_rows;
use avsg_measure::fresh::FreshRows;

use super::harness::{Harness, ROW};
use super::placed::Placed;
use super::probe::words;
use super::report::Line;
use super::watch::progress;

const STATES: usize = 2;

/// Results of the device that differ from the CPU's.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Differs(String);

/// Returns how kernels behaved: `good`; `wrong` if the results of one are not the CPU's; `faulted` if one raised an
/// exception; `hung` if one did not end; `not_run` if something else failed before it. The reason names the kernel.
pub fn run(harness: &Harness, kernels: &[KernelName]) -> Line {
    let each = |&kernel: &KernelName| {
        let mut done = check(harness, kernel, false);
        if [KernelName::Transfer, KernelName::Step].contains(&kernel) {
            let place = "with slots by a table of blocks and a slot_base";
            done = done.and_then(|()| check(harness, kernel, true).context(place));
        }
        done.with_context(|| kernel.entry().to_string_lossy().into_owned())
    };
    match kernels.iter().try_for_each(each) {
        Ok(()) => Line::new(Ok("good".into())),
        Err(error) => Line::bad(status(&error), format!("{error:#}")),
    }
}

/// Returns the status of a kernel whose check failed.
fn status(error: &anyhow::Error) -> &'static str {
    if error.chain().any(|cause| cause.is::<Differs>()) {
        return "wrong";
    }
    match error.chain().find_map(|cause| cause.downcast_ref()) {
        Some(Error::Device { .. }) => "wrong",
        // The wait for a stream or an event took too long, or the device's watchdog ended a kernel.
        Some(Error::Acl { code: 507_046 | 507_047 | 507_014 | 507_034, .. }) => "hung",
        Some(Error::Acl { code: 507_000..=507_999, .. }) => "faulted",
        _ => "not_run",
    }
}

/// Returns a pool in which row x holds id x, unless requests have host blocks.
fn config_of_pool(harness: &Harness) -> Result<PoolConfig> {
    Ok(PoolConfig::new(1, 8 * harness.params.slots as usize, RowFormat::single(ROW)?))
}

/// Creates an engine on the device for one state, which runs avsg_reset.
pub fn engine(harness: &Harness) -> Result<Engine> {
    configured(harness, Config { cores: harness.cores, ..Config::new(harness.params, 1) })
}

fn configured(harness: &Harness, config: Config) -> Result<Engine> {
    let pool = RegisteredPool::create(&harness.context, &config_of_pool(harness)?)?;
    write_rows(pool.pool())?;
    progress("avsg_reset");
    Ok(Engine::on_ascend(config, pool, &harness.engine_options())?)
}

/// Runs an engine to the end of a kernel.
fn run_one(
    harness: &Harness,
    engine: &mut Engine,
    plan: &mut Plan,
    kernel: KernelName,
    batch: &OwnedBatch,
) -> Result<()> {
    progress(&kernel.entry().to_string_lossy());
    match kernel {
        KernelName::Reset => {}
        KernelName::Plan => engine.plan(&batch.batch(), plan)?,
        KernelName::Transfer => engine.transfer(plan, &[0], None)?,
        KernelName::Step => engine.step(&batch.batch(), plan, 0, None)?,
        KernelName::Append => {
            let mut fresh = FreshRows::new(engine.pool().format(), batch.rows());
            let ids = batch.stable.iter().zip(&batch.seq);
            let ids = ids.flat_map(|(&stable, &seq)| stable..seq).enumerate();
            ids.for_each(|(row, id)| fresh.put(row, id, 9));
            if engine.device() == "cpu" {
                return Ok(engine.append(&batch.batch(), &[0], &fresh.segments())?);
            }
            // The kernel of an append takes arrays of the device.
            let (rows, stream) = (batch.rows(), Stream::new(&harness.context)?);
            let arrays = DeviceArrays::new(&harness.context, batch, std::slice::from_ref(&fresh))?;
            arrays.write(batch, &[fresh])?;
            let (batch, fresh) = (arrays.batch(), arrays.fresh(0));
            // SAFETY: the arrays have the lengths that the batch states, and live until the stream was synchronized.
            unsafe { engine.enqueue_append(&batch, rows, &[0], &fresh, stream.raw())? };
            stream.synchronize(harness.timeout as i32)?;
        }
    }
    Ok(())
}

/// Returns what a kernel wrote with an engine, by the names of its parts.
fn written(
    engine: &mut Engine,
    plan: &Plan,
    kernel: KernelName,
    batch: &OwnedBatch,
) -> Result<Vec<(String, Vec<i32>)>> {
    let (mut all, mut bytes) = (Vec::new(), [0; ROW]);
    let copies = [KernelName::Transfer, KernelName::Step].contains(&kernel);
    if copies || kernel == KernelName::Plan {
        let slots = (0..batch.rows()).flat_map(|row| plan.slots(row));
        let lists = (0..STATES).flat_map(|request| {
            let Misses { position, id, slot, row } = plan.misses(request);
            [position, id, slot, row, &[plan.status(request)]].concat()
        });
        all.push(("slot".to_owned(), slots.copied().collect()));
        all.push(("number of valid ids".to_owned(), plan.valid().to_vec()));
        all.push(("number of misses".to_owned(), plan.row_misses().to_vec()));
        all.push(("word of the miss lists".to_owned(), lists.collect()));
    }
    for state in 0..STATES {
        all.push(("word of a table".to_owned(), engine.read_table(0, state)?.to_vec()));
        for slot in (0..engine.config().params.slots as usize).filter(|_| copies) {
            engine.buffer().slot_bytes(state, 0, slot, &mut bytes)?;
            all.push((format!("slot {slot} of state {state}: word"), words(&bytes)));
        }
    }
    for row in (0..engine.pool().rows()).filter(|_| kernel == KernelName::Append) {
        engine.pool().read_row(0, row, &mut bytes)?;
        all.push((format!("row {row} of the pool: word"), words(&bytes)));
    }
    Ok(all)
}

/// Returns the batch of a step, whose host blocks are in reverse order. A third of the ids is new for each token. An
/// append has no ids, and its tokens are the last ones of two sequences.
fn batch(harness: &Harness, kernel: KernelName, step: usize, rows: usize) -> OwnedBatch {
    let [k, tokens] = [harness.params.k, harness.params.tokens].map(|n| n as usize);
    let mut batch = OwnedBatch::new(k, 0);
    batch.block_stride = rows.checked_div(harness.params.page as usize).unwrap_or(0);
    for request in 0..STATES {
        // Seven and the number of rows have no common factor, so the ids of a row differ.
        let id = |token: usize, i: usize| {
            ((i + (step * tokens + token) * k / 3 + request * 11) * 7 % rows) as i32
        };
        let row = |token| (0..k).map(|i| id(token, i)).collect();
        let (mut lengths, mut ids) = ([-1, rows as i32], (0..tokens).map(row).collect());
        if kernel == KernelName::Append {
            let stable = rows / (2 + request);
            lengths = [stable, stable + tokens].map(|length| length as i32);
            ids = vec![vec![-1; k]; tokens];
        }
        batch.push([request as i32, 1, lengths[0], lengths[1]], &ids);
        batch.blocks.extend((0..batch.block_stride as i32).rev());
    }
    batch
}

/// Compares what a kernel writes in each of several steps up to its end: the tables of new engines, the plan, the
/// transfer in a launch of its own, both stages in one launch, or the rows of an append. Learned lifetimes are used
/// from step `START` on.
fn check(harness: &Harness, kernel: KernelName, is_placed: bool) -> Result<()> {
    let learns = harness.params.lifetime == Lifetime::Learned && kernel != KernelName::Transfer;
    let steps = match kernel {
        KernelName::Reset | KernelName::Append => 1,
        _ if learns && !is_placed => START as usize + 3,
        _ => 3,
    };
    // The slots of both engines outlive them.
    let mut placed = is_placed.then(|| Placed::new(harness, STATES)).transpose()?;
    let mut config = |cores, on_device| {
        let machine = MachineChoice::Emu;
        let config = Config { cores, machine, ..Config::new(harness.params, STATES) };
        match &mut placed {
            Some(placed) => placed.configure(config, on_device),
            None => Ok(config),
        }
    };
    let device = configured(harness, config(harness.cores, true)?)?;
    let pool = HostPool::new(&config_of_pool(harness)?)?;
    write_rows(&pool)?;
    let mut engines = [device, Engine::new(config(1, false)?, pool)?];
    let new_plan = |e: &Engine| e.new_plan(STATES * harness.params.tokens as usize, STATES);
    let mut plans = [new_plan(&engines[0])?, new_plan(&engines[1])?];
    for step in 0..steps {
        let (batch, mut found) =
            (batch(harness, kernel, step, engines[0].pool().rows()), Vec::new());
        for (engine, plan) in engines.iter_mut().zip(&mut plans) {
            if kernel == KernelName::Transfer {
                run_one(harness, engine, plan, KernelName::Plan, &batch)?;
            }
            run_one(harness, engine, plan, kernel, &batch)?;
            found.push(written(engine, plan, kernel, &batch)?);
        }
        for ((what, device), (_, cpu)) in found[0].iter().zip(&found[1]) {
            let ends = 0..device.len().max(cpu.len());
            if let Some(at) = ends.into_iter().find(|&at| device.get(at) != cpu.get(at)) {
                let word = |all: &[i32]| all.get(at).map_or("missing".to_owned(), i32::to_string);
                let (device, cpu) = (word(device), word(cpu));
                let text = format!("step {step}: {what} {at} is {device}, and the CPU's is {cpu}");
                return Err(Differs(text).into());
            }
        }
    }
    let [device, _] = engines;
    Ok(device.close()?)
}
