//! An engine on the Ascend device, with device arrays or host arrays, and one on the CPU. Both run
//! the same steps on pools that start with the same rows, and after each step their results are
//! compared.

use std::path::PathBuf;
use std::sync::Arc;

use avsg::Result;
use avsg::ascend::acl::Context;
use avsg::ascend::{AscendOptions, RegisteredPool};
use avsg::engine::{Config, DeviceFresh, Engine, MachineChoice, RawStream};
use avsg::plan::Plan;
use avsg::pool::{HostPool, Pages, PoolConfig};
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::device_arrays::DeviceArrays;
use avsg_testkit::fresh::FreshRows;
use avsg_testkit::step_result::StepResult;
use avsg_testkit::workload::{EngineSetting, append, transfer};
use avsg_testkit::{fixture, memory};

use super::harness::without_scratch;

/// Configuration of both engines.
#[derive(Clone, Debug)]
pub struct PairConfig {
    pub setting: EngineSetting,
    pub cores: usize,
    pub one_launch: bool,
}

impl PairConfig {
    pub fn engine_config(&self) -> Config {
        // `Emu` is the only machine that an engine does not measure first. The tests create
        // hundreds of engines.
        let machine = MachineChoice::Emu;
        let config = Config::new(self.setting.params, self.setting.states);
        Config { cores: self.cores, machine, ..config }
    }

    fn pool_config(&self) -> PoolConfig {
        let (format, rows) = (self.setting.format.clone(), self.setting.pool_rows());
        // The pool has several chunks, so that the rows of a request lie in more than one.
        let chunk_bytes = (rows * format.as_slice()[0].bytes / 5).next_multiple_of(4096);
        let config = PoolConfig::new(self.setting.layers, rows, format);
        PoolConfig { pages: Pages::Plain, chunk_bytes, ..config }
    }

    /// Writes rows with the layer as their version.
    fn fill(&self, pool: &HostPool) {
        fixture::fill(pool, self.setting.pool_rows(), |layer, row| (row as i32, layer as u32));
    }
}

/// An engine on the Ascend device and one on the CPU.
pub struct EnginePair {
    pub ascend: Engine,
    pub cpu: Engine,
    pub ascend_plan: Plan,
    cpu_plan: Plan,
    context: Arc<Context>,
    /// Device memory for the arrays of every step. A captured graph holds its addresses.
    pub device_arrays: DeviceArrays,
    setting: EngineSetting,
    /// The batch of the current step.
    pub batch: OwnedBatch,
    /// Fresh rows of the current step, by layer.
    fresh: Vec<FreshRows>,
    pub ascend_result: StepResult,
    pub cpu_result: StepResult,
    /// Slots that were compared so far.
    pub compared_slots: usize,
}

impl EnginePair {
    /// Creates a pair. Without `kernels` the device runs the emitted ones.
    pub fn new(
        config: &PairConfig,
        context: &Arc<Context>,
        kernels: impl Into<Option<PathBuf>>,
    ) -> Result<Self> {
        let pool = RegisteredPool::create(context, &config.pool_config())?;
        config.fill(pool.pool());
        let options = AscendOptions {
            one_launch: Some(config.one_launch),
            kernels: kernels.into(),
            ..AscendOptions::new(context.clone())
        };
        let ascend = Engine::on_ascend(config.engine_config(), pool, &options)?;
        let pool = HostPool::new(&config.pool_config()).unwrap();
        config.fill(&pool);
        let cpu = Engine::new(config.engine_config(), pool).unwrap();
        let setting = &config.setting;
        let (k, rows, requests) =
            (setting.params.k as usize, setting.max_rows(), setting.max_requests);
        let fresh = vec![FreshRows::new(&setting.format, rows); setting.layers];
        let blocks = setting.rows_per_request.checked_div(setting.params.page as usize);
        let block_stride = blocks.unwrap_or(0);
        let largest = OwnedBatch {
            blocks: vec![0; requests * block_stride],
            block_stride,
            ..OwnedBatch::uniform(k, requests, setting.params.tokens as usize, 0)
        };
        Ok(Self {
            ascend_plan: ascend.new_plan(rows, requests)?,
            cpu_plan: cpu.new_plan(rows, requests).unwrap(),
            ascend,
            cpu,
            context: Arc::clone(context),
            device_arrays: DeviceArrays::new(context, &largest, &fresh)?,
            setting: setting.clone(),
            batch: OwnedBatch::new(k, 0),
            fresh: Vec::new(),
            ascend_result: StepResult::default(),
            cpu_result: StepResult::default(),
            compared_slots: 0,
        })
    }

    /// Sets the current step and copies its arrays and rows to the device.
    pub fn upload_step(&mut self, mut batch: OwnedBatch, fresh: Vec<FreshRows>) {
        self.device_arrays.write(&batch, &fresh).unwrap();
        // The ids after the last row are invalid, on the host as on the device.
        batch.ids.resize(self.setting.max_rows() * batch.k, -9);
        (self.batch, self.fresh) = (batch, fresh);
    }

    /// Queues the whole step in a stream, which may be capturing.
    pub fn enqueue(&mut self, stream: RawStream) -> Result<()> {
        let batch = self.device_arrays.batch();
        let rows: Vec<_> =
            (0..self.setting.layers).map(|layer| self.device_arrays.fresh(layer)).collect();
        let (all, layers) = (rows.concat(), (0..rows.len()).collect::<Vec<usize>>());
        let later = DeviceFresh { segments: &all[rows[0].len()..] };
        let (engine, plan) = (&mut self.ascend, &mut self.ascend_plan);
        // SAFETY: the arrays have the sizes in `batch` and are dropped after the test has waited
        // for the stream.
        unsafe {
            let first = DeviceFresh { segments: &rows[0] };
            engine.enqueue_step(&batch, plan, 0, Some(&first), stream)?;
            engine.enqueue_transfer(plan, &layers[1..], Some(&later), stream)?;
            let fresh = DeviceFresh { segments: &all };
            engine.enqueue_append(&batch, 0, &layers, &fresh, stream)?;
        }
        Ok(())
    }

    /// Runs the step on the CPU and compares it with the device's, whose stream was waited for.
    pub fn compare(&mut self) {
        self.read_result();
        self.compare_result();
    }

    /// Runs the step on the CPU and compares the rows only. It is meant for steps before which the
    /// device may have started cold, so that its slots may differ from the CPU's.
    pub fn compare_rows(&mut self) {
        self.read_result();
        self.step_on_cpu();
        let bytes = self.setting.format.bytes();
        let (mut ascend_row, mut cpu_row) = (vec![0; bytes], vec![0; bytes]);
        for (r, pair) in self.batch.cu_q.windows(2).enumerate() {
            for row in pair[0] as usize..pair[1] as usize {
                let slots = self.ascend_result.row(row).iter().zip(self.cpu_result.row(row));
                for (&ascend, &cpu) in slots {
                    assert_eq!(ascend < 0, cpu < 0, "row {row}");
                    let Ok(cpu) = usize::try_from(cpu) else { continue };
                    let (state, ascend) = (self.batch.state[r] as usize, ascend as usize);
                    for layer in 0..self.setting.layers {
                        let (on_ascend, on_cpu) = (self.ascend.buffer(), self.cpu.buffer());
                        on_ascend.slot_bytes(state, layer, ascend, &mut ascend_row).unwrap();
                        on_cpu.slot_bytes(state, layer, cpu, &mut cpu_row).unwrap();
                        assert!(ascend_row == cpu_row, "layer {layer}, row {row}, slot {ascend}");
                    }
                    self.compared_slots += 1;
                }
            }
        }
        self.compare_pools();
    }

    /// Runs the step on both engines with host arrays and compares them.
    pub fn step_from_host(&mut self) {
        self.run_from_host().unwrap();
        self.ascend_result = StepResult::from_plan(&self.ascend_plan, &self.batch.cu_q);
        self.compare_result();
        for r in 0..self.setting.max_requests {
            let cuts = self.ascend.cuts(&self.ascend_plan, r);
            assert!(cuts.eq(self.cpu.cuts(&self.cpu_plan, r)), "cuts of request {r}");
        }
    }

    /// Runs the step on the device with host arrays.
    pub fn run_from_host(&mut self) -> Result<()> {
        run_step(&mut self.ascend, &mut self.ascend_plan, &self.batch, &self.fresh)
    }

    /// Reads the result of a step from the device's arrays. Its stream must have been waited for.
    pub fn read_result(&mut self) {
        let arrays = self.ascend_plan.device_arrays().expect("a device's plan");
        let (context, k) = (Some(&*self.context), self.setting.params.k as usize);
        // SAFETY: the arrays are those of the plan of this step, whose stream was waited for.
        self.ascend_result =
            unsafe { StepResult::from_arrays(context, &arrays, k, &self.batch.cu_q) };
    }

    fn step_on_cpu(&mut self) {
        run_step(&mut self.cpu, &mut self.cpu_plan, &self.batch, &self.fresh).unwrap();
        self.cpu_result = StepResult::from_plan(&self.cpu_plan, &self.batch.cu_q);
    }

    fn compare_result(&mut self) {
        self.step_on_cpu();
        assert_eq!(self.ascend_result, self.cpu_result);
        for layer in 0..self.setting.layers {
            let ascend = memory::read_slots(&self.ascend, Some(&self.context), layer);
            let cpu = memory::read_slots(&self.cpu, None, layer);
            let differ = ascend.iter().zip(&cpu).position(|(ascend, cpu)| ascend != cpu);
            let same_length = ascend.len() == cpu.len();
            assert!(same_length && differ.is_none(), "layer {layer}, byte {differ:?} of the slots");
            self.compared_slots += self.setting.states * self.setting.params.slots as usize;
        }
        let slots = self.setting.params.slots as usize;
        for state in 0..self.setting.states {
            let parts = |table: &[i32]| without_scratch(table, slots);
            let (ascend, cpu) = (
                parts(self.ascend.read_table(0, state).unwrap()),
                parts(self.cpu.read_table(0, state).unwrap()),
            );
            assert!(ascend == cpu, "table {state}");
        }
        self.compare_pools();
    }

    /// Compares every row of the pools.
    fn compare_pools(&self) {
        let [ascend, cpu] =
            [&self.ascend, &self.cpu].map(|engine| memory::read_rows(engine.pool()));
        let differ = ascend.iter().zip(&cpu).position(|(ascend, cpu)| ascend != cpu);
        assert_eq!(differ, None, "byte of the rows of the pool");
    }
}

/// Runs one step on one engine: transfers every layer, then appends to every layer.
fn run_step(
    engine: &mut Engine,
    plan: &mut Plan,
    batch: &OwnedBatch,
    fresh: &[FreshRows],
) -> Result<()> {
    transfer(engine, plan, batch, Some(fresh), true)?;
    append(engine, batch, fresh)
}
