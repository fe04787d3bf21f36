//! The kernels, each alone: the same steps on the device and on the CPU must give the same words
//! and bytes.

use anyhow::{Context as _, Result};
use avsg::Error;
use avsg::ascend::{AscendOptions, RegisteredPool};
use avsg::device::kernels::KernelName;
use avsg::engine::{Config, Engine, Fresh, MachineChoice};
use avsg::plan::{Misses, Plan};
use avsg::pool::{HostPool, PoolConfig};
use avsg::rows::RowFormat;
use avsg_measure::batch::OwnedBatch;
use avsg_measure::content::{check_row, fill_row};
use avsg_measure::fresh::FreshRows;

use super::harness::{Harness, ROW};
use super::placed::Placed;
use super::report::Line;
use super::watch::progress;

const STATES: usize = 2;
const STEPS: usize = 3;

/// Results of the device that differ from the CPU's.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Differs(String);

/// Returns how a kernel behaved: `good`; `wrong` if its results are not the CPU's; `faulted` if it raised an exception;
/// `hung` if it did not end; `not_run` if something else failed before it.
pub fn run(harness: &Harness, kernel: KernelName) -> Line {
    let done = match kernel {
        KernelName::Reset => reset(harness),
        KernelName::Plan => steps(harness, kernel, None),
        KernelName::Transfer | KernelName::Step => transfer(harness, kernel),
        KernelName::Append => append(harness),
    };
    match done {
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

/// Returns the version of a row in the host pool.
fn version(row: usize) -> u32 {
    1 + row as u32 % 3
}

/// Returns a pool in which row x holds id x.
fn config_of_pool(harness: &Harness) -> Result<PoolConfig> {
    Ok(PoolConfig::new(1, 8 * harness.params.slots as usize, RowFormat::single(ROW)?))
}

fn fill(pool: &HostPool, version: impl Fn(usize) -> u32) -> Result<()> {
    let mut bytes = [0; ROW];
    for row in 0..pool.rows() {
        fill_row(row as i32, version(row), &mut bytes);
        pool.write_row(0, row, &bytes)?;
    }
    Ok(())
}

/// Creates an engine on the device, which runs avsg_reset.
pub fn engine(harness: &Harness, states: usize, version: impl Fn(usize) -> u32) -> Result<Engine> {
    let config = Config { cores: harness.cores, ..Config::new(harness.params, states) };
    configured(harness, config, version)
}

fn configured(harness: &Harness, config: Config, version: impl Fn(usize) -> u32) -> Result<Engine> {
    let pool = RegisteredPool::create(&harness.context, &config_of_pool(harness)?)?;
    fill(pool.pool(), version)?;
    let options = AscendOptions {
        timeout_ms: harness.timeout,
        one_launch: Some(true),
        ..harness.engine_options()
    };
    progress("avsg_reset");
    Ok(Engine::on_ascend(config, pool, &options)?)
}

/// An engine on the device and one on the CPU, with a plan each.
struct Pair {
    engines: [Engine; 2],
    plans: [Plan; 2],
    /// The slots of both engines, if they are not theirs.
    placed: Option<Placed>,
}

impl Pair {
    fn new(harness: &Harness, mut placed: Option<Placed>) -> Result<Self> {
        let machine = MachineChoice::Emu;
        let config = |cores| Config { cores, machine, ..Config::new(harness.params, STATES) };
        let mut place = |config: Config, on_device| match &mut placed {
            Some(placed) => placed.configure(config, on_device),
            None => Ok(config),
        };
        let device = configured(harness, place(config(harness.cores), true)?, version)?;
        let pool = HostPool::new(&config_of_pool(harness)?)?;
        fill(&pool, version)?;
        let engines = [device, Engine::new(place(config(1), false)?, pool)?];
        let plans = [engines[0].new_plan(STATES, STATES)?, engines[1].new_plan(STATES, STATES)?];
        Ok(Self { engines, plans, placed })
    }

    /// Compares the results and the tables of both engines after a step.
    fn compare(&mut self, batch: &OwnedBatch) -> Result<()> {
        let [device, cpu] = &self.plans;
        for row in 0..batch.rows() {
            first_difference("slot", device.slots(row), cpu.slots(row))?;
        }
        first_difference("number of valid ids", device.valid(), cpu.valid())?;
        let lists = |plan: &Plan, state| {
            let Misses { position, id, slot, row } = plan.misses(state);
            [position, id, slot, row, &[plan.status(state), plan.token_misses(state, 0) as i32]]
                .concat()
        };
        if (0..STATES).any(|state| lists(device, state) != lists(cpu, state)) {
            return Err(Differs("the miss lists differ from the CPU's".into()).into());
        }
        self.compare_tables()
    }

    fn compare_tables(&mut self) -> Result<()> {
        let [device, cpu] = &mut self.engines;
        for state in 0..STATES {
            let (device, cpu) = (device.read_table(0, state)?, cpu.read_table(0, state)?);
            first_difference("word of a table", device, cpu)?;
        }
        Ok(())
    }

    /// Checks that the slots of the device have the rows of the ids.
    fn check_slots(&self, batch: &OwnedBatch) -> Result<()> {
        if let Some(placed) = &self.placed {
            return placed.first_difference()?.map_or(Ok(()), |byte| {
                Err(Differs(format!("byte {byte} of the slots differs from the CPU's")).into())
            });
        }
        let (buffer, mut bytes) = (self.engines[0].buffer(), [0; ROW]);
        for state in 0..STATES {
            for (&id, &slot) in batch.row(state).iter().zip(self.plans[0].slots(state)) {
                let slot = usize::try_from(slot).context("an id has no slot")?;
                buffer.slot_bytes(state, 0, slot, &mut bytes)?;
                if !check_row(id, version(id as usize), &bytes) {
                    return Err(Differs(format!("slot {slot} has not the row of id {id}")).into());
                }
            }
        }
        Ok(())
    }

    fn close(self) -> Result<()> {
        let [device, _] = self.engines;
        Ok(device.close()?)
    }
}

fn first_difference(what: &str, device: &[i32], cpu: &[i32]) -> Result<()> {
    let at = device.iter().zip(cpu).position(|(a, b)| a != b);
    at.map_or(Ok(()), |at| {
        let text = format!("{what} {at} is {}, and the CPU's is {}", device[at], cpu[at]);
        Err(Differs(text).into())
    })
}

/// Returns the batch of a step: two requests of one token. A third of the ids is new in each step.
fn batch(harness: &Harness, step: usize) -> OwnedBatch {
    let (k, rows) = (harness.params.k as usize, 8 * harness.params.slots as usize);
    let mut batch = OwnedBatch::new(k, 0);
    for request in 0..STATES {
        // Seven and the number of rows have no common factor, so the ids of a row differ.
        let ids = (0..k).map(|i| ((i + step * k / 3 + request * 11) * 7 % rows) as i32).collect();
        batch.push([request as i32, 1, -1, rows as i32], &[ids]);
    }
    batch
}

fn reset(harness: &Harness) -> Result<()> {
    let mut pair = Pair::new(harness, None)?;
    pair.compare_tables()?;
    pair.close()
}

/// Runs both stages, in one launch or in two: first with slots of the engines, then with slots in blocks
/// by a table.
fn transfer(harness: &Harness, kernel: KernelName) -> Result<()> {
    steps(harness, kernel, None)?;
    let placed = Placed::new(harness, STATES, ROW)?;
    let done = steps(harness, kernel, Some(placed));
    done.context("with slots by a table of blocks and a slot_base")
}

/// Runs several steps up to the end of a kernel: the plan, the transfer in a launch of its own, or both
/// stages in one launch.
fn steps(harness: &Harness, kernel: KernelName, placed: Option<Placed>) -> Result<()> {
    let mut pair = Pair::new(harness, placed)?;
    for step in 0..STEPS {
        let batch = batch(harness, step);
        for (engine, plan) in pair.engines.iter_mut().zip(&mut pair.plans) {
            if kernel == KernelName::Step {
                progress("avsg_step");
                engine.step(&batch.batch(), plan, 0, None)?;
                continue;
            }
            progress("avsg_plan");
            engine.plan(&batch.batch(), plan)?;
            if kernel == KernelName::Transfer {
                progress("avsg_transfer");
                engine.transfer(plan, 0, None)?;
            }
        }
        let mut same = pair.compare(&batch);
        if kernel != KernelName::Plan {
            same = same.and_then(|()| pair.check_slots(&batch));
        }
        same.with_context(|| format!("step {step}"))?;
    }
    pair.close()
}

/// Writes the fresh row of one token into the pool.
fn append(harness: &Harness) -> Result<()> {
    let mut engine = engine(harness, STATES, version)?;
    let (rows, new) = (engine.pool().rows(), 9);
    let mut batch = OwnedBatch::new(harness.params.k as usize, 0);
    let mut fresh = FreshRows::new(engine.pool().format(), STATES);
    let appended = [rows / 2, rows / 3];
    for (request, &id) in appended.iter().enumerate() {
        let ids = vec![-1; harness.params.k as usize];
        batch.push([request as i32, 1, id as i32, id as i32 + 1], &[ids]);
        fresh.put(request, id as i32, new);
    }
    progress("avsg_append");
    engine.append(&batch.batch(), 0, &Fresh { segments: &fresh.segments() })?;
    let mut bytes = [0; ROW];
    for row in 0..rows {
        engine.pool().read_row(0, row, &mut bytes)?;
        let expected = if appended.contains(&row) { new } else { version(row) };
        if !check_row(row as i32, expected, &bytes) {
            return Err(Differs(format!("row {row} of the pool is wrong")).into());
        }
    }
    Ok(engine.close()?)
}
