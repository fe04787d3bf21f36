//! The operator itself on the device.

use anyhow::{Context as _, Result, bail};
use avsg::Error;
use avsg::ascend::acl::owned::DeviceMemory;
use avsg::ascend::{AscendOptions, RegisteredPool};
use avsg::engine::{Batch, Config, DeviceArray, DeviceBatch, Engine};
use avsg::pool::PoolConfig;
use avsg::rows::RowFormat;
use avsg_testkit::content::{check_row, fill_row};

use super::Patient;

const ROW: usize = 1152;

fn engine(p: &Patient) -> Result<Engine> {
    let rows = 8 * p.params.slots as usize;
    let pool = PoolConfig::new(1, rows, RowFormat::single(ROW)?);
    let pool = RegisteredPool::create(&p.context, &pool)?;
    let mut bytes = [0; ROW];
    for row in 0..rows {
        fill_row(row as i32, 1, &mut bytes);
        pool.pool().write_row(0, row, &bytes)?;
    }
    let options = AscendOptions::new(p.context.clone()).with_kernels(&p.kernels);
    Ok(Engine::on_ascend(Config { cores: p.cores, ..Config::new(p.params, 1) }, pool, &options)?)
}

/// Whether the second of two kernels sees a host row that was rewritten between them.
pub fn rewritten_row(p: &Patient) -> Result<bool> {
    let mut engine = engine(p)?;
    let mut plan = engine.new_plan(1, 1)?;
    let ids: Vec<i32> = (0..p.params.k as i32).collect();
    let (rows, mut bytes, mut seen) = (engine.pool().rows() as i32, [0; ROW], true);
    for version in 1..=3 {
        for &id in &ids {
            fill_row(id, version, &mut bytes);
            engine.pool().write_row(0, id as usize, &bytes)?;
        }
        // Another generation: everything is fetched again.
        let batch = Batch {
            ids: &ids,
            ids_stride: ids.len(),
            k: ids.len(),
            cu_q: &[0, 1],
            state: &[0],
            generation: &[version as i32],
            stable_len: &[-1],
            seq_len: &[rows],
            block_table: &[],
            block_stride: 0,
        };
        engine.step(&batch, &mut plan, 0, None)?;
        for (&id, &slot) in ids.iter().zip(plan.slots(0)) {
            let slot = usize::try_from(slot).ok().context("an id without a slot")?;
            engine.buffer().slot_bytes(0, 0, slot, &mut bytes)?;
            seen &= check_row(id, version, &bytes);
        }
    }
    Ok(seen)
}

/// A batch of one request in device memory.
struct Arrays {
    memory: DeviceMemory,
    batch: DeviceBatch,
}

/// The word at which the ids begin; the small arrays lie before it, a line each.
const IDS: usize = 5 * 16;

impl Arrays {
    fn new(p: &Patient, rows: usize) -> Result<Self> {
        let k = p.params.k as usize;
        let memory = DeviceMemory::zeroed(&p.context, 4 * (IDS + k))?;
        let at =
            |word: usize, len| DeviceArray { address: memory.address() + 4 * word as u64, len };
        let batch = DeviceBatch {
            requests: 1,
            k,
            ids: at(IDS, k),
            ids_stride: k,
            cu_q: at(0, 2),
            state: at(16, 1),
            generation: at(32, 1),
            stable_len: at(48, 1),
            seq_len: at(64, 1),
            ..DeviceBatch::default()
        };
        let mut arrays = Self { memory, batch };
        for (word, value) in [(1, 1), (32, 1), (48, -1), (64, rows as i32)] {
            arrays.write(word, &[value])?;
        }
        Ok(arrays)
    }

    fn write(&mut self, word: usize, values: &[i32]) -> Result<()> {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_ne_bytes()).collect();
        Ok(self.memory.write(4 * word, &bytes)?)
    }
}

/// Microseconds of (plan, transfer), the least of some steps that miss everything.
fn times(p: &Patient) -> Result<(f64, f64)> {
    let mut engine = engine(p)?;
    let k = p.params.k as usize;
    let mut arrays = Arrays::new(p, engine.pool().rows())?;
    let mut plan = engine.new_plan(1, 1)?;
    let (mut plan_us, mut copy_us) = (f64::MAX, f64::MAX);
    for step in 0..if p.simulated { 2 } else { 20 } {
        let ids: Vec<i32> = (0..k).map(|i| ((i * 8 + step) % (8 * k)) as i32).collect();
        arrays.write(IDS, &ids)?;
        arrays.write(32, &[step as i32])?;
        let (batch, stream) = (arrays.batch, p.probe.stream.raw());
        // SAFETY: the arrays have the sizes that the batch says; `time` waits for the stream.
        let matched =
            p.probe.time(|| unsafe { Ok(engine.enqueue_plan(&batch, &mut plan, stream)?) })?;
        // SAFETY: as above.
        let copied =
            p.probe.time(|| unsafe { Ok(engine.enqueue_transfer(&plan, 0, None, stream)?) })?;
        (plan_us, copy_us) = (plan_us.min(matched), copy_us.min(copied));
    }
    engine.close()?;
    Ok((plan_us, copy_us))
}

/// Microseconds of Stage One.
pub fn matching(p: &Patient) -> Result<f64> {
    let (plan, _) = times(p)?;
    p.hardware()?;
    Ok(plan)
}

/// Gigabytes per second of Stage Two when everything misses.
pub fn bandwidth(p: &Patient) -> Result<f64> {
    let (_, copy) = times(p)?;
    p.hardware()?;
    Ok((p.params.k as usize * ROW) as f64 / copy / 1e3)
}

/// What a wait returns after a kernel read memory that is not the device's.
pub fn fault_code(p: &Patient) -> Result<i32> {
    let mut engine = engine(p)?;
    let arrays = Arrays::new(p, engine.pool().rows())?;
    let host = [0i32; 4096];
    let mut plan = engine.new_plan(1, 1)?;
    let ids = DeviceArray { address: host.as_ptr() as u64, len: host.len() };
    let batch = DeviceBatch { ids, ..arrays.batch };
    // SAFETY: that the ids are the host's is what is asked; the device refuses the address.
    let queued = unsafe { engine.enqueue_plan(&batch, &mut plan, p.probe.stream.raw()) };
    match queued.and_then(|()| p.probe.stream.synchronize(p.probe.timeout)) {
        Err(Error::Acl { code, .. }) => Ok(code),
        Err(error) => Err(error.into()),
        Ok(()) => bail!("the kernel read unregistered host memory and nobody noticed"),
    }
}
