//! The kernels, each alone: the same steps on the device and on the CPU must give the same words
//! and bytes, in each geometry of the checks.

use anyhow::{Context as _, Result};
use avsg::Error;
use avsg::ascend::{AscendOptions, RegisteredPool};
use avsg::device::kernels::KernelName;
use avsg::device::learned::START;
use avsg::device::params::{Lifetime, Params};
use avsg::engine::{Config, Engine, Fresh, MachineChoice};
use avsg::plan::{Misses, Plan};
use avsg::pool::{HostPool, PoolConfig};
use avsg::rows::RowFormat;
use avsg_measure::batch::OwnedBatch;
use avsg_measure::content::fill_row;
use avsg_measure::fresh::FreshRows;

use super::harness::{Harness, ROW};
use super::placed::Placed;
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
    let mut each = kernels.iter().map(|&kernel| {
        let done = match kernel {
            KernelName::Reset => reset(harness),
            KernelName::Plan => steps(harness, kernel, None),
            KernelName::Transfer | KernelName::Step => transfer(harness, kernel),
            KernelName::Append => append(harness),
        };
        done.with_context(|| kernel.entry().to_string_lossy().into_owned())
    });
    match each.try_for_each(|done| done) {
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
    Ok(PoolConfig::new(1, rows_of_pool(harness), RowFormat::single(ROW)?))
}

fn rows_of_pool(harness: &Harness) -> usize {
    8 * harness.params.slots as usize
}

fn fill(pool: &HostPool) -> Result<()> {
    let mut bytes = [0; ROW];
    for row in 0..pool.rows() {
        fill_row(row as i32, 1, &mut bytes);
        pool.write_row(0, row, &bytes)?;
    }
    Ok(())
}

/// Creates an engine on the device, which runs avsg_reset.
pub fn engine(harness: &Harness, states: usize) -> Result<Engine> {
    configured(harness, Config { cores: harness.cores, ..Config::new(harness.params, states) })
}

fn configured(harness: &Harness, config: Config) -> Result<Engine> {
    let pool = RegisteredPool::create(&harness.context, &config_of_pool(harness)?)?;
    fill(pool.pool())?;
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
        let device = configured(harness, place(config(harness.cores), true)?)?;
        let pool = HostPool::new(&config_of_pool(harness)?)?;
        fill(&pool)?;
        let engines = [device, Engine::new(place(config(1), false)?, pool)?];
        let new_plan = |e: &Engine| e.new_plan(STATES * harness.params.tokens as usize, STATES);
        let plans = [new_plan(&engines[0])?, new_plan(&engines[1])?];
        Ok(Self { engines, plans, placed })
    }

    /// Compares the results and the tables of both engines after a step.
    fn compare(&mut self, batch: &OwnedBatch) -> Result<()> {
        let [device, cpu] = &self.plans;
        let slots =
            |plan: &Plan| (0..batch.rows()).flat_map(|row| plan.slots(row)).copied().collect();
        let slots: [Vec<i32>; 2] = [device, cpu].map(slots);
        first_difference("slot", &slots[0], &slots[1])?;
        first_difference("number of valid ids", device.valid(), cpu.valid())?;
        first_difference("number of misses", device.row_misses(), cpu.row_misses())?;
        let lists = |plan: &Plan, state| {
            let Misses { position, id, slot, row } = plan.misses(state);
            [position, id, slot, row, &[plan.status(state)]].concat()
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

    /// Checks that the slots of the device have the rows that the CPU's have.
    fn check_slots(&self, batch: &OwnedBatch) -> Result<()> {
        if let Some(placed) = &self.placed {
            return placed.first_difference()?.map_or(Ok(()), |byte| {
                Err(Differs(format!("byte {byte} of the slots differs from the CPU's")).into())
            });
        }
        let mut found = [[0; ROW]; 2];
        for (state, rows) in batch.cu_q.windows(2).enumerate() {
            for row in rows[0] as usize..rows[1] as usize {
                for (&id, &slot) in batch.row(row).iter().zip(self.plans[0].slots(row)) {
                    let slot = usize::try_from(slot).context("an id has no slot")?;
                    for (engine, bytes) in self.engines.iter().zip(&mut found) {
                        engine.buffer().slot_bytes(state, 0, slot, bytes)?;
                    }
                    if found[0] != found[1] {
                        let text = format!("slot {slot} has not the row of id {id}");
                        return Err(Differs(text).into());
                    }
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

/// Returns the requests of a step, whose host blocks are in reverse order. `request` returns the stable and the
/// sequence length of one, and `id` the ids of its tokens.
fn batch(
    harness: &Harness,
    lengths: impl Fn(usize) -> [i32; 2],
    id: impl Fn(usize, usize, usize) -> i32,
) -> OwnedBatch {
    let Params { k, tokens, page, .. } = harness.params;
    let mut batch = OwnedBatch::new(k as usize, 0);
    batch.block_stride = rows_of_pool(harness).checked_div(page as usize).unwrap_or(0);
    for request in 0..STATES {
        let row = |token| (0..k as usize).map(|i| id(request, token, i)).collect();
        let [stable, seq] = lengths(request);
        let rows: Vec<Vec<i32>> = (0..tokens as usize).map(row).collect();
        batch.push([request as i32, 1, stable, seq], &rows);
        batch.blocks.extend((0..batch.block_stride as i32).rev());
    }
    batch
}

/// Returns the batch of a step, of which a third of the ids is new for each token.
fn selecting(harness: &Harness, step: usize) -> OwnedBatch {
    let (k, tokens) = (harness.params.k as usize, harness.params.tokens as usize);
    let rows = rows_of_pool(harness);
    batch(
        harness,
        |_| [-1, rows as i32],
        |request, token, i| {
            // Seven and the number of rows have no common factor, so the ids of a row differ.
            ((i + (step * tokens + token) * k / 3 + request * 11) * 7 % rows) as i32
        },
    )
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
/// stages in one launch. Learned lifetimes are used from step `START` on.
fn steps(harness: &Harness, kernel: KernelName, placed: Option<Placed>) -> Result<()> {
    let learns = harness.params.lifetime == Lifetime::Learned && kernel != KernelName::Transfer;
    let steps = if learns && placed.is_none() { START + 3 } else { 3 };
    let mut pair = Pair::new(harness, placed)?;
    for step in 0..steps as usize {
        let batch = selecting(harness, step);
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

/// Writes fresh rows into the pool: those of the last tokens of two sequences.
fn append(harness: &Harness) -> Result<()> {
    let mut pair = Pair::new(harness, None)?;
    let (rows, tokens) = (rows_of_pool(harness), harness.params.tokens as usize);
    let first = |request| rows / (2 + request);
    let lengths = |request| [first(request) as i32, (first(request) + tokens) as i32];
    let batch = batch(harness, lengths, |_, _, _| -1);
    let mut fresh = FreshRows::new(pair.engines[0].pool().format(), STATES * tokens);
    for row in 0..STATES * tokens {
        fresh.put(row, (first(row / tokens) + row % tokens) as i32, 9);
    }
    progress("avsg_append");
    for engine in &mut pair.engines {
        engine.append(&batch.batch(), 0, &Fresh { segments: &fresh.segments() })?;
    }
    let mut found = [[0; ROW]; 2];
    for row in 0..rows {
        for (engine, bytes) in pair.engines.iter().zip(&mut found) {
            engine.pool().read_row(0, row, bytes)?;
        }
        if found[0] != found[1] {
            return Err(Differs(format!("row {row} of the pool is wrong")).into());
        }
    }
    pair.close()
}
