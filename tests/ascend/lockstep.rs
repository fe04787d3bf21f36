//! One workload on two engines: the Ascend device, with device arrays or host arrays, and the CPU device.
//! Two pools begin with the same rows, and after every step everything is compared.

use std::path::PathBuf;
use std::sync::Arc;

use avsg::ascend::acl::owned::{Context, RawStream};
use avsg::ascend::{AscendOptions, RegisteredPool};
use avsg::device::params::Params;
use avsg::engine::MachineChoice;
use avsg::engine::{Config, DeviceFresh, Engine};
use avsg::plan::Plan;
use avsg::pool::{HostPool, Pages, PoolConfig};
use avsg::rows::RowFormat;
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::device_arrays::DeviceArrays;
use avsg_testkit::fresh::FreshRows;
use avsg_testkit::step_result::StepResult;
use avsg_testkit::workload::{append, transfer};
use avsg_testkit::{fixture, memory};

/// The version of a row that nobody has made yet.
const UNMADE: u32 = 9_999;

/// What both engines are.
#[derive(Clone, Debug)]
pub struct Form {
    pub params: Params,
    pub states: usize,
    pub cores: usize,
    pub one_launch: bool,
    /// Requests of every batch, and the most rows of one.
    pub requests: usize,
    pub rows: usize,
    /// Block table entries of a request.
    pub blocks: usize,
    pub layers: usize,
    pub segments: &'static [usize],
    pub pool_rows: usize,
    /// Rows below it are in the pool from the beginning, with the layer as their version.
    pub made: usize,
}

impl Form {
    fn k(&self) -> usize {
        self.params.k as usize
    }

    pub fn config(&self) -> Config {
        // The one machine that is not measured first: engines are made by the hundred here.
        let machine = MachineChoice::Emu;
        Config { cores: self.cores, machine, ..Config::new(self.params, self.states) }
    }

    pub fn format(&self) -> RowFormat {
        RowFormat::segments(self.segments).unwrap()
    }

    fn pool_config(&self) -> PoolConfig {
        // Several chunks, so that rows of a request lie in more than one.
        let chunk_bytes = (self.pool_rows * self.segments[0] / 5).next_multiple_of(4096);
        let config = PoolConfig::new(self.layers, self.pool_rows, self.format());
        PoolConfig { pages: Pages::Plain, chunk_bytes, ..config }
    }

    fn fill(&self, pool: &HostPool) {
        fixture::fill(pool, self.pool_rows, |layer, row| {
            (row as i32, if row < self.made { layer as u32 } else { UNMADE })
        });
    }

    /// A pool for engines on the device, several perhaps.
    pub fn pool(&self, context: &Arc<Context>) -> RegisteredPool {
        let pool = RegisteredPool::create(context, &self.pool_config()).unwrap();
        self.fill(pool.pool());
        pool
    }
}

/// Both engines.
pub struct Pair {
    pub ascend: Engine,
    pub cpu: Engine,
    pub ascend_plan: Plan,
    cpu_plan: Plan,
    context: Arc<Context>,
    /// Where the arrays of each step are on the device: what a graph is captured with.
    pub device: DeviceArrays,
    form: Form,
    /// This step's batch.
    pub step: OwnedBatch,
    /// Its rows, by layer.
    fresh: Vec<FreshRows>,
    /// What the device found in it, and what the CPU did.
    pub found: StepResult,
    pub cpu_found: StepResult,
    /// Whether nobody else writes the pool.
    alone: bool,
    /// Slots that were compared.
    pub compared: usize,
}

impl Pair {
    /// With a pool of its own, by these kernels, or without any the library's own.
    pub fn new(form: &Form, context: &Arc<Context>, kernels: impl Into<Option<PathBuf>>) -> Self {
        Self { alone: true, ..Self::on(form, context, kernels, form.pool(context)) }
    }

    /// On a pool of the form, which others write as well.
    pub fn on(
        form: &Form,
        context: &Arc<Context>,
        kernels: impl Into<Option<PathBuf>>,
        pool: RegisteredPool,
    ) -> Self {
        let options = AscendOptions {
            one_launch: Some(form.one_launch),
            kernels: kernels.into(),
            ..AscendOptions::new(context.clone())
        };
        let ascend = Engine::on_ascend(form.config(), pool, &options).unwrap();
        let pool = HostPool::new(&form.pool_config()).unwrap();
        form.fill(&pool);
        let cpu = Engine::new(form.config(), pool).unwrap();
        let rows = vec![FreshRows::new(&form.format(), form.rows); form.layers];
        let room = OwnedBatch::zeroed(form.k(), form.requests, form.rows, form.blocks);
        Self {
            ascend_plan: ascend.new_plan(form.rows, form.requests).unwrap(),
            cpu_plan: cpu.new_plan(form.rows, form.requests).unwrap(),
            ascend,
            cpu,
            context: Arc::clone(context),
            device: DeviceArrays::new(context, &room, &rows).unwrap(),
            form: form.clone(),
            step: OwnedBatch::new(form.k(), 0),
            fresh: Vec::new(),
            found: StepResult::default(),
            cpu_found: StepResult::default(),
            alone: false,
            compared: 0,
        }
    }

    /// Takes the next step and brings its arrays and rows to the device.
    pub fn bring(&mut self, mut step: OwnedBatch, fresh: Vec<FreshRows>) {
        self.device.write(&step, &fresh).unwrap();
        // Behind the last row lies junk, on the host as there.
        step.ids.resize(self.form.rows * self.form.k(), -9);
        (self.step, self.fresh) = (step, fresh);
    }

    /// Puts the whole step into a stream: what is captured once.
    pub fn enqueue(&mut self, stream: RawStream) -> avsg::Result<()> {
        let batch = self.device.batch();
        let rows: Vec<_> = (0..self.form.layers).map(|layer| self.device.fresh(layer)).collect();
        let fresh: Vec<_> = rows.iter().map(|rows| DeviceFresh { segments: rows }).collect();
        let (engine, plan) = (&mut self.ascend, &mut self.ascend_plan);
        // SAFETY: the arrays have the sizes that the batch says and live until the test has waited.
        unsafe {
            engine.enqueue_step(&batch, plan, 0, Some(&fresh[0]), stream)?;
            for (layer, fresh) in fresh.iter().enumerate().skip(1) {
                engine.enqueue_transfer(plan, layer, Some(fresh), stream)?;
            }
            for (layer, fresh) in fresh.iter().enumerate() {
                engine.enqueue_append(&batch, layer, fresh, stream)?;
            }
        }
        Ok(())
    }

    /// Compares a step in a stream, which is done.
    pub fn compare(&mut self) {
        self.read();
        self.compare_found();
    }

    /// Compares a step in a stream, which is done, where the device may have started cold since: its
    /// slots may be others then, but what they hold may not.
    pub fn compare_rows(&mut self) {
        self.read();
        self.step_on_cpu();
        let bytes: usize = self.form.segments.iter().sum();
        let (mut there, mut here) = (vec![0; bytes], vec![0; bytes]);
        for (r, pair) in self.step.cu_q.windows(2).enumerate() {
            for row in pair[0] as usize..pair[1] as usize {
                let slots = self.found.row(row).iter().zip(self.cpu_found.row(row));
                for (&other, &slot) in slots {
                    assert_eq!(other < 0, slot < 0, "row {row}");
                    let Ok(slot) = usize::try_from(slot) else { continue };
                    let (state, other) = (self.step.state[r] as usize, other as usize);
                    for layer in 0..self.form.layers {
                        self.ascend.buffer().slot_bytes(state, layer, other, &mut there).unwrap();
                        self.cpu.buffer().slot_bytes(state, layer, slot, &mut here).unwrap();
                        assert!(there == here, "layer {layer}, row {row}, slot {other}");
                    }
                    self.compared += 1;
                }
            }
        }
        self.compare_pools();
    }

    /// Does the step by host arrays, and compares it.
    pub fn step_by_host(&mut self) {
        run(&mut self.ascend, &mut self.ascend_plan, &self.step, &self.fresh).unwrap();
        self.found = StepResult::from_plan(&self.ascend_plan, &self.step.cu_q);
        self.compare_found();
        for r in 0..self.form.requests {
            let cuts = self.ascend.cuts(&self.ascend_plan, r);
            assert!(cuts.eq(self.cpu.cuts(&self.cpu_plan, r)), "cuts of request {r}");
        }
    }

    /// Reads what a step in a stream, which is done, left in the device's arrays.
    pub fn read(&mut self) {
        let there = self.ascend_plan.device_arrays().expect("a device's plan");
        let (context, k) = (Some(&*self.context), self.form.k());
        // SAFETY: the arrays are the plan's, which planned the step; its stream was waited for.
        self.found = unsafe { StepResult::from_arrays(context, &there, k, &self.step.cu_q) };
    }

    fn step_on_cpu(&mut self) {
        run(&mut self.cpu, &mut self.cpu_plan, &self.step, &self.fresh).unwrap();
        self.cpu_found = StepResult::from_plan(&self.cpu_plan, &self.step.cu_q);
    }

    fn compare_found(&mut self) {
        self.step_on_cpu();
        assert_eq!(self.found, self.cpu_found);
        for layer in 0..self.form.layers {
            let there = memory::read_slots(&self.ascend, Some(&self.context), layer);
            let here = memory::read_slots(&self.cpu, None, layer);
            let differ = there.iter().zip(&here).position(|(there, here)| there != here);
            let len = there.len() == here.len();
            assert!(len && differ.is_none(), "layer {layer}, byte {differ:?} of the slots");
            self.compared += self.form.states * self.form.params.slots as usize;
        }
        let slots = self.form.params.slots as usize;
        for state in 0..self.form.states {
            // Between lifetimes and links lie 64 bytes that a machine may scribble on.
            let parts = |table: &[i32]| {
                let pad = 16 + slots + slots / 4;
                [&table[..pad], &table[pad + 16..]].concat()
            };
            let (there, here) = (parts(self.ascend.table(state)), parts(self.cpu.table(state)));
            assert!(there == here, "table {state}");
        }
        if self.alone {
            self.compare_pools();
        }
    }

    /// Every row of the pools. With others at work on one, call it when all are done.
    pub fn compare_pools(&self) {
        let bytes: usize = self.form.segments.iter().sum();
        let (mut there, mut here) = (vec![0; bytes], vec![0; bytes]);
        for layer in 0..self.form.layers {
            for row in 0..self.form.pool_rows {
                self.ascend.pool().read_row(layer, row, &mut there).unwrap();
                self.cpu.pool().read_row(layer, row, &mut here).unwrap();
                assert!(there == here, "layer {layer}, row {row} of the pool");
            }
        }
    }
}

/// One step on one engine: every layer is transferred, then appended.
fn run(
    engine: &mut Engine,
    plan: &mut Plan,
    step: &OwnedBatch,
    fresh: &[FreshRows],
) -> avsg::Result<()> {
    transfer(engine, plan, step, Some(fresh), true)?;
    append(engine, step, fresh)
}
