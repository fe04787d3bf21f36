//! A random workload of the testkit on an engine on the Ascend device, with device arrays or host arrays, and one on
//! the CPU. Both run the same steps on pools that start with the same rows, and after each step their results are
//! compared. All steps have the same form, so that a captured step can be replayed with the arrays of the next ones.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use avsg::Result;
use avsg::ascend::acl::{Context, Graph, Stream};
use avsg::ascend::{AscendOptions, RegisteredPool};
use avsg::engine::{Config, Engine, MachineChoice, RawStream};
use avsg::plan::Plan;
use avsg::pool::{HostPool, Pages, PoolConfig};
use avsg::rows::RowFormat;
use avsg_sim::{Options, Session};
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::device_arrays::DeviceArrays;
use avsg_testkit::fresh::FreshRows;
use avsg_testkit::memory;
use avsg_testkit::splitmix::SplitMix64;
use avsg_testkit::step_result::StepResult;
use avsg_testkit::workload::{
    DEVICE_SHAPES, EngineSetting, Shape, StepInput, WorkloadDriver, append, random_step, transfer,
};

use crate::harness::{in_session, install_kernels, without_scratch};

/// Milliseconds that a wait for a stream may take. It ends at once if a kernel hangs.
const TIMEOUT_MS: i32 = 1000;
/// Blocks per request.
const BLOCKS: usize = 8;

/// How a step is submitted to the device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Submission {
    HostArrays,
    QueuedInStream,
    CapturedGraph,
}

/// Returns the setting of both engines: block tables, two segments, two layers. Other tests use the same
/// geometry, so that its kernels are compiled once.
pub fn setting() -> EngineSetting {
    let params = Shape::from(DEVICE_SHAPES[1]).params();
    EngineSetting {
        params,
        states: 3,
        layers: 2,
        format: RowFormat::segments(&[40, 8]).unwrap(),
        rows_per_request: BLOCKS * params.page as usize,
        max_requests: 4,
    }
}

/// Runs a test on a random workload with the Rust kernels on five cores, which must not leak a resource.
pub fn in_a_stream<T>(
    options: Options,
    seed: u64,
    one_launch: bool,
    test: impl FnOnce(&Session, RandomWorkload) -> T,
) -> T {
    in_session(options, |session, context| {
        let workload = RandomWorkload::on_rust_kernels(session, context, (5, one_launch), seed);
        test(session, workload.unwrap())
    })
}

/// A random workload on a pair of engines.
pub struct RandomWorkload {
    pub ascend: Engine,
    cpu: Engine,
    ascend_plan: Plan,
    cpu_plan: Plan,
    pub context: Arc<Context>,
    /// The captured step, if there is one.
    graph: Option<Graph>,
    /// The stream that steps are queued in.
    pub stream: Rc<Stream>,
    /// Device memory for the arrays of every step. A captured graph holds its addresses.
    device_arrays: DeviceArrays,
    setting: EngineSetting,
    driver: WorkloadDriver,
    rng: SplitMix64,
    step_input: Option<StepInput>,
    /// The batch of the current step, with the ids that are on the device after those of its last row.
    batch: OwnedBatch,
}

impl RandomWorkload {
    /// Creates engines on a number of cores, with one launch or two, whose device runs the Rust kernels.
    pub fn on_rust_kernels(
        session: &Session,
        context: &Arc<Context>,
        launches: (usize, bool),
        seed: u64,
    ) -> Result<Self> {
        let kernels = install_kernels(session, &Config::new(setting().params, 1));
        Self::new(context, launches, kernels, seed)
    }

    /// Creates such engines. Without `kernels` the device runs the emitted ones.
    pub fn new(
        context: &Arc<Context>,
        (cores, one_launch): (usize, bool),
        kernels: impl Into<Option<PathBuf>>,
        seed: u64,
    ) -> Result<Self> {
        let setting = setting();
        // `Emu` is the only machine that an engine does not measure first. The tests create
        // hundreds of engines.
        let machine = MachineChoice::Emu;
        let config = Config { cores, machine, ..Config::new(setting.params, setting.states) };
        // The pool has several chunks, so that the rows of a request lie in more than one.
        let (pages, chunk_bytes) = (Pages::Plain, 4096);
        let pool = PoolConfig::new(setting.layers, setting.pool_rows(), setting.format.clone());
        let pool = PoolConfig { pages, chunk_bytes, ..pool };
        let registered = RegisteredPool::create(context, &pool)?;
        let (kernels, one_launch) = (kernels.into(), Some(one_launch));
        let options = AscendOptions { kernels, one_launch, ..AscendOptions::new(context.clone()) };
        let ascend = Engine::on_ascend(config.clone(), registered, &options)?;
        let cpu = Engine::new(config, HostPool::new(&pool).unwrap()).unwrap();
        let (rows, requests) = (setting.max_rows(), setting.max_requests);
        let fresh = vec![FreshRows::new(&setting.format, rows); setting.layers];
        let (k, tokens) = (setting.params.k as usize, setting.params.tokens as usize);
        let largest = OwnedBatch {
            blocks: vec![0; requests * BLOCKS],
            block_stride: BLOCKS,
            ..OwnedBatch::uniform(k, requests, tokens, 0)
        };
        let driver = WorkloadDriver::new(setting.clone(), &mut write([&ascend, &cpu]));
        Ok(Self {
            ascend_plan: ascend.new_plan(rows, requests)?,
            cpu_plan: cpu.new_plan(rows, requests).unwrap(),
            context: Arc::clone(context),
            stream: Rc::new(Stream::new(context)?),
            graph: None,
            device_arrays: DeviceArrays::new(context, &largest, &fresh)?,
            ascend,
            cpu,
            setting,
            driver,
            rng: SplitMix64::new(seed),
            step_input: None,
            batch: OwnedBatch::new(k, 0),
        })
    }

    /// Draws the next step and copies its arrays to the device.
    pub fn next_step(&mut self) {
        let (states, requests) = (self.setting.states, self.setting.max_requests);
        let step = random_step(&mut self.rng, states, requests);
        let input = self.driver.next_step(&step, &mut write([&self.ascend, &self.cpu]));
        self.upload(input);
    }

    /// Copies the same step to the device with a new generation of every request, as a runtime does
    /// after work in its stream has failed.
    pub fn renew_generations(&mut self) {
        let mut input = self.step_input.take().expect("a step");
        self.driver.renew_generations(&mut input);
        self.upload(input);
    }

    fn upload(&mut self, input: StepInput) {
        self.device_arrays.write(&input.batch, &input.fresh).unwrap();
        self.batch = input.batch.clone();
        // The ids after the last row are invalid, on the host as on the device.
        self.batch.ids.resize(self.setting.max_rows() * self.batch.k, -9);
        self.step_input = Some(input);
    }

    /// Queues the whole step in a stream, which may be capturing.
    pub fn enqueue(&mut self, stream: RawStream) -> Result<()> {
        let batch = self.device_arrays.batch();
        let layers: Vec<usize> = (0..self.setting.layers).collect();
        let rows: Vec<_> = layers.iter().map(|&layer| self.device_arrays.fresh(layer)).collect();
        let all = rows.concat();
        let later = &all[rows[0].len()..];
        let (engine, plan) = (&mut self.ascend, &mut self.ascend_plan);
        // SAFETY: the arrays have the sizes in `batch` and are dropped after the test has waited
        // for the stream.
        unsafe {
            engine.enqueue_step(&batch, plan, 0, Some(&rows[0]), stream)?;
            engine.enqueue_transfer(plan, &layers[1..], Some(later), stream)?;
            engine.enqueue_append(&batch, 0, &layers, &all, stream)
        }
    }

    /// Captures a step, which is replayed from now on.
    pub fn capture(&mut self) -> Result<()> {
        let stream = Rc::clone(&self.stream);
        self.graph = Some(stream.capture(|| self.enqueue(stream.raw()))?);
        Ok(())
    }

    /// Replays the captured step or, without one, queues the step.
    pub fn submit(&mut self) -> Result<()> {
        match &self.graph {
            Some(graph) => self.stream.replay(graph),
            None => self.enqueue(self.stream.raw()),
        }
    }

    pub fn wait(&self) -> Result<()> {
        self.stream.synchronize(TIMEOUT_MS)
    }

    /// Queues the next step, or replays it, and compares it with the CPU's.
    pub fn step(&mut self) {
        self.next_step();
        self.submit().unwrap();
        self.wait().unwrap();
        self.compare();
    }

    /// Runs the step on the device with host arrays.
    pub fn run_from_host(&mut self) -> Result<()> {
        let fresh = &self.step_input.as_ref().expect("a step").fresh;
        run_step(&mut self.ascend, &mut self.ascend_plan, &self.batch, fresh)
    }

    /// Reads the result of a step from the device's arrays. Its stream must have been waited for.
    fn read_result(&self) -> StepResult {
        let arrays = self.ascend_plan.device_arrays().expect("a device's plan");
        let (context, k) = (Some(&*self.context), self.setting.params.k as usize);
        // SAFETY: the arrays are those of the plan of this step, whose stream was waited for.
        unsafe { StepResult::from_arrays(context, &arrays, k, &self.batch.cu_q) }
    }

    /// Runs the step on the CPU, and checks its result against the model of the workload.
    fn step_on_cpu(&mut self) -> StepResult {
        let input = self.step_input.as_ref().expect("a step");
        run_step(&mut self.cpu, &mut self.cpu_plan, &self.batch, &input.fresh).unwrap();
        let result = StepResult::from_plan(&self.cpu_plan, &self.batch.cu_q);
        let cpu = &self.cpu;
        self.driver.check(input, &result, |state, layer, slot, bytes| {
            cpu.buffer().slot_bytes(state, layer, slot, bytes).unwrap();
        });
        self.driver.check_pool(|layer, row, bytes| cpu.pool().read_row(layer, row, bytes).unwrap());
        result
    }

    /// Runs the step on the CPU and compares it with the device's, whose stream was waited for.
    pub fn compare(&mut self) {
        self.compare_result(&self.read_result());
    }

    fn compare_result(&mut self, ascend: &StepResult) {
        assert_eq!(*ascend, self.step_on_cpu());
        for layer in 0..self.setting.layers {
            let ascend = memory::read_slots(&self.ascend, Some(&self.context), layer);
            assert_same(&ascend, &memory::read_slots(&self.cpu, None, layer), "the slots");
        }
        let slots = self.setting.params.slots as usize;
        for state in 0..self.setting.states {
            let [ascend, cpu] = [&mut self.ascend, &mut self.cpu]
                .map(|engine| without_scratch(engine.read_table(0, state).unwrap(), slots));
            assert!(ascend == cpu, "table {state}");
        }
        self.compare_pools();
    }

    /// Runs the step on the CPU and compares the rows only. It is meant for steps before which the
    /// device may have started cold, so that its slots may differ from the CPU's.
    pub fn compare_rows(&mut self) {
        let (on_ascend, on_cpu) = (self.read_result(), self.step_on_cpu());
        let bytes = self.setting.format.bytes();
        let (mut ascend_row, mut cpu_row) = (vec![0; bytes], vec![0; bytes]);
        let slots = on_ascend.slots.iter().zip(&on_cpu.slots);
        for (at, (&ascend, &cpu)) in slots.enumerate() {
            assert_eq!(ascend < 0, cpu < 0, "slot {at}");
            let Ok(cpu) = usize::try_from(cpu) else { continue };
            let row = (at / on_ascend.k) as i32;
            let request = self.batch.cu_q.partition_point(|&first| first <= row) - 1;
            let (state, ascend) = (self.batch.state[request] as usize, ascend as usize);
            for layer in 0..self.setting.layers {
                self.ascend.buffer().slot_bytes(state, layer, ascend, &mut ascend_row).unwrap();
                self.cpu.buffer().slot_bytes(state, layer, cpu, &mut cpu_row).unwrap();
                assert!(ascend_row == cpu_row, "layer {layer}, row {row}, slot {ascend}");
            }
        }
        self.compare_pools();
    }

    /// Compares every row of the pools.
    fn compare_pools(&self) {
        let [ascend, cpu] = [&self.ascend, &self.cpu].map(|one| memory::read_rows(one.pool()));
        assert_same(&ascend, &cpu, "the rows of the pool");
    }
}

fn assert_same(ascend: &[u8], cpu: &[u8], what: &str) {
    let differ = ascend.iter().zip(cpu).position(|(ascend, cpu)| ascend != cpu);
    assert!(ascend.len() == cpu.len() && differ.is_none(), "byte {differ:?} of {what}");
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

/// Returns a function that writes a row to the pools of both engines.
fn write(engines: [&Engine; 2]) -> impl FnMut(usize, usize, &[u8]) {
    move |layer, row, bytes| {
        engines.iter().for_each(|engine| engine.pool().write_row(layer, row, bytes).unwrap());
    }
}
