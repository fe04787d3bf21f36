//! The kernels, each alone: the same steps on the device and on the CPU must give the same words
//! and bytes, in each geometry of the checks.

use anyhow::{Context as _, Result};
use avsg::Error;
use avsg::ascend::acl::Stream;
use avsg::ascend::{AscendOptions, RegisteredPool};
use avsg::device::kernels::KernelName;
use avsg::device::learned::START;
use avsg::device::params::{Lifetime, Params};
use avsg::engine::{Config, DeviceFresh, Engine, Fresh, MachineChoice};
use avsg::plan::{Misses, Plan};
use avsg::pool::{HostPool, PoolConfig};
use avsg::rows::RowFormat;
use avsg_measure::batch::OwnedBatch;
use avsg_measure::content::fill_row;
use avsg_measure::device_arrays::DeviceArrays;
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
        let done = check(harness, kernel, None).and_then(|()| match kernel {
            KernelName::Transfer | KernelName::Step => {
                let placed = Placed::new(harness, STATES, ROW)?;
                let done = check(harness, kernel, Some(placed));
                done.context("with slots by a table of blocks and a slot_base")
            }
            _ => Ok(()),
        });
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

    /// Runs both engines to the end of a kernel.
    fn run(&mut self, harness: &Harness, kernel: KernelName, batch: &OwnedBatch) -> Result<()> {
        for (engine, plan) in self.engines.iter_mut().zip(&mut self.plans) {
            let needed = (kernel == KernelName::Transfer).then_some(KernelName::Plan);
            for kernel in needed.into_iter().chain([kernel]) {
                progress(&kernel.entry().to_string_lossy());
                match kernel {
                    KernelName::Reset => {}
                    KernelName::Plan => engine.plan(&batch.batch(), plan)?,
                    KernelName::Transfer => engine.transfer(plan, 0, None)?,
                    KernelName::Step => engine.step(&batch.batch(), plan, 0, None)?,
                    KernelName::Append => {
                        let mut fresh = FreshRows::new(engine.pool().format(), batch.rows());
                        let ids = batch.stable.iter().zip(&batch.seq);
                        let ids = ids.flat_map(|(&stable, &seq)| stable..seq).enumerate();
                        ids.for_each(|(row, id)| fresh.put(row, id, 9));
                        if engine.device() == "cpu" {
                            let segments = &fresh.segments();
                            engine.append(&batch.batch(), 0, &Fresh { segments })?;
                        } else {
                            enqueue_append(harness, engine, batch, &[fresh])?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns what a kernel wrote with one of the engines, by the names of its parts.
    fn written(
        &mut self,
        engine: usize,
        kernel: KernelName,
        batch: &OwnedBatch,
    ) -> Result<Vec<(String, Vec<i32>)>> {
        let (on_device, plan) = (engine == 0, &self.plans[engine]);
        let (engine, mut all, mut bytes) = (&mut self.engines[engine], Vec::new(), [0; ROW]);
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
        }
        for row in (0..engine.pool().rows()).filter(|_| kernel == KernelName::Append) {
            engine.pool().read_row(0, row, &mut bytes)?;
            all.push((format!("row {row} of the pool: word"), words(&bytes)));
        }
        match &self.placed {
            Some(placed) => {
                all.push(("word of the slots".to_owned(), words(&placed.bytes(on_device)?)));
            }
            None if copies => {
                let tokens = batch.rows() / STATES;
                for row in 0..batch.rows() {
                    for (id, &slot) in batch.row(row).iter().zip(plan.slots(row)) {
                        let at = usize::try_from(slot).unwrap_or(usize::MAX);
                        let read = engine.buffer().slot_bytes(row / tokens, 0, at, &mut bytes);
                        let found = read.map_or(Vec::new(), |()| words(&bytes));
                        all.push((format!("slot {slot} with the row of id {id}: word"), found));
                    }
                }
            }
            None => {}
        }
        Ok(all)
    }
}

/// Runs the kernel of an append, which takes arrays of the device.
fn enqueue_append(
    harness: &Harness,
    engine: &mut Engine,
    batch: &OwnedBatch,
    rows: &[FreshRows],
) -> Result<()> {
    let arrays = DeviceArrays::new(&harness.context, batch, rows)?;
    arrays.write(batch, rows)?;
    let (stream, segments) = (Stream::new(&harness.context)?, arrays.fresh(0));
    let fresh = DeviceFresh { segments: &segments };
    // SAFETY: the arrays have the lengths that the batch states, and live until the stream was synchronized.
    unsafe { engine.enqueue_append(&arrays.batch(), batch.rows(), &[0], &fresh, stream.raw())? };
    Ok(stream.synchronize(harness.timeout as i32)?)
}

fn words(bytes: &[u8]) -> Vec<i32> {
    bytes.as_chunks().0.iter().map(|word| i32::from_ne_bytes(*word)).collect()
}

/// Returns the batch of a step, whose host blocks are in reverse order. A third of the ids is new for each token. An
/// append has no ids, and its tokens are the last ones of two sequences.
fn batch(harness: &Harness, kernel: KernelName, step: usize) -> OwnedBatch {
    let Params { k, tokens, page, .. } = harness.params;
    let (k, tokens, rows) = (k as usize, tokens as usize, rows_of_pool(harness));
    let mut batch = OwnedBatch::new(k, 0);
    batch.block_stride = rows.checked_div(page as usize).unwrap_or(0);
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
fn check(harness: &Harness, kernel: KernelName, placed: Option<Placed>) -> Result<()> {
    let learns = harness.params.lifetime == Lifetime::Learned && kernel != KernelName::Transfer;
    let steps = match kernel {
        KernelName::Reset | KernelName::Append => 1,
        _ if learns && placed.is_none() => START as usize + 3,
        _ => 3,
    };
    let mut pair = Pair::new(harness, placed)?;
    for step in 0..steps {
        let batch = batch(harness, kernel, step);
        pair.run(harness, kernel, &batch)?;
        let (device, cpu) = (pair.written(0, kernel, &batch)?, pair.written(1, kernel, &batch)?);
        for ((what, device), (_, cpu)) in device.iter().zip(&cpu) {
            let ends = 0..device.len().max(cpu.len());
            if let Some(at) = ends.into_iter().find(|&at| device.get(at) != cpu.get(at)) {
                let word = |all: &[i32]| all.get(at).map_or("missing".to_owned(), i32::to_string);
                let (device, cpu) = (word(device), word(cpu));
                let text = format!("step {step}: {what} {at} is {device}, and the CPU's is {cpu}");
                return Err(Differs(text).into());
            }
        }
    }
    let [device, _] = pair.engines;
    Ok(device.close()?)
}
