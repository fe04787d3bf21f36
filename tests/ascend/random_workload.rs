//! A random workload of the testkit on an engine on the Ascend device, with device arrays or host arrays. After each step its
//! slots and rows are checked against the model of the workload, and its results are those of an engine on the CPU. All
//! steps have the same form, so that a captured step can be replayed with the arrays of the next ones.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use avsg::Result;
use avsg::ascend::acl::{Context, Graph, Stream};
use avsg::engine::{Config, Engine, MachineChoice, RawStream};
use avsg::plan::Plan;
use avsg::pool::HostPool;
use avsg_sim::{Options, Session};
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::device_arrays::DeviceArrays;
use avsg_testkit::fresh::FreshRows;
use avsg_testkit::splitmix::SplitMix64;
use avsg_testkit::step_result::StepResult;
use avsg_testkit::workload::{
    DEVICE_SHAPES, Shape, StepInput, Workload, WorkloadDriver, append, random_step, run, transfer,
};

use crate::harness::{self, in_session, install_kernels};

/// Milliseconds that a wait for a stream may take. It ends at once if a kernel hangs.
const TIMEOUT_MS: i32 = 1000;

/// How a step is submitted to the device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Submission {
    HostArrays,
    QueuedInStream,
    CapturedGraph,
}

/// Returns the geometry: block tables, two segments, two layers, three states.
pub fn shape() -> Shape {
    DEVICE_SHAPES[1].into()
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

/// A random workload on an engine.
pub struct RandomWorkload {
    pub engine: Engine,
    plan: Plan,
    pub context: Arc<Context>,
    /// The captured step, if there is one.
    graph: Option<Graph>,
    /// The stream that steps are queued in.
    pub stream: Rc<Stream>,
    /// Device memory for the arrays of every step. A captured graph holds its addresses.
    device_arrays: DeviceArrays,
    driver: WorkloadDriver,
    rng: SplitMix64,
    /// The steps so far, the input of the last one, and the results that were checked.
    workload: Workload,
    input: Option<StepInput>,
    results: Vec<StepResult>,
}

impl RandomWorkload {
    /// Creates an engine on a number of cores, with one launch or two, whose device runs the Rust kernels.
    pub fn on_rust_kernels(
        session: &Session,
        context: &Arc<Context>,
        launches: (usize, bool),
        seed: u64,
    ) -> Result<Self> {
        let kernels = install_kernels(session, &shape().config(MachineChoice::Emu));
        Self::new(context, launches, kernels, seed)
    }

    /// Creates such an engine. Without `kernels` the device runs the emitted ones.
    pub fn new(
        context: &Arc<Context>,
        (cores, one_launch): (usize, bool),
        kernels: impl Into<Option<PathBuf>>,
        seed: u64,
    ) -> Result<Self> {
        let (setting, pool) = (shape().setting(), HostPool::new(&shape().pool()).unwrap());
        let config = Config { cores, ..shape().config(MachineChoice::Emu) };
        let engine = harness::engine(context, &config, pool, kernels, one_launch)?;
        let (rows, requests) = (setting.max_rows(), setting.max_requests);
        let fresh = vec![FreshRows::new(&setting.format, rows); setting.layers];
        let (k, tokens) = (setting.params.k as usize, setting.params.tokens as usize);
        let block_stride = setting.rows_per_request / setting.params.page as usize;
        let blocks = vec![0; requests * block_stride];
        let largest =
            OwnedBatch { blocks, block_stride, ..OwnedBatch::uniform(k, requests, tokens, 0) };
        let driver = WorkloadDriver::new(setting, &mut write(&engine));
        Ok(Self {
            plan: engine.new_plan(rows, requests)?,
            context: Arc::clone(context),
            stream: Rc::new(Stream::new(context)?),
            graph: None,
            device_arrays: DeviceArrays::new(context, &largest, &fresh)?,
            engine,
            driver,
            rng: SplitMix64::new(seed),
            workload: Workload { shape: shape(), steps: Vec::new() },
            input: None,
            results: Vec::new(),
        })
    }

    /// Draws the next step and copies its arrays to the device.
    pub fn next_step(&mut self) {
        let setting = shape().setting();
        let step = random_step(&mut self.rng, setting.states, setting.max_requests);
        let input = self.driver.next_step(&step, &mut write(&self.engine));
        self.workload.steps.push(step);
        self.upload(input);
    }

    /// Submits the same step in a new stream with a new generation of every request, as a runtime does
    /// after work in its stream has failed.
    pub fn start_again(&mut self) {
        self.stream = Rc::new(Stream::new(&self.context).unwrap());
        // The drop of the old stream may have failed.
        let _ = self.context.take_error();
        let mut input = self.input.take().expect("a step");
        self.driver.renew_generations(&mut input);
        self.upload(input);
        self.submit().unwrap();
    }

    fn upload(&mut self, input: StepInput) {
        self.device_arrays.write(&input.batch, &input.fresh).unwrap();
        self.input = Some(input);
    }

    fn input(&self) -> &StepInput {
        self.input.as_ref().expect("a step")
    }

    /// Queues the whole step in a stream, which may be capturing.
    pub fn enqueue(&mut self, stream: RawStream) -> Result<()> {
        let (batch, plan) = (self.device_arrays.batch(), &mut self.plan);
        let [first, later] = [0, 1].map(|layer| self.device_arrays.fresh(layer));
        let all = [&first[..], &later].concat();
        // SAFETY: the arrays have the sizes in `batch` and are dropped after the test has waited
        // for the stream.
        unsafe {
            self.engine.enqueue_step(&batch, plan, 0, Some(&first), stream)?;
            self.engine.enqueue_transfer(plan, &[1], Some(&later), stream)?;
            self.engine.enqueue_append(&batch, 0, &[0, 1], &all, stream)
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

    /// Queues the next step, or replays it, and checks it.
    pub fn step(&mut self) {
        self.next_step();
        self.submit().unwrap();
        self.wait().unwrap();
        self.check();
    }

    /// Runs the step on the device with host arrays.
    pub fn run_from_host(&mut self) -> Result<()> {
        let StepInput { batch, fresh, .. } = self.input.as_ref().expect("a step");
        transfer(&mut self.engine, &mut self.plan, batch, Some(fresh), true)?;
        append(&mut self.engine, batch, fresh)
    }

    /// Reads the result of a step from the device's arrays. Its stream must have been waited for.
    fn read_result(&self) -> StepResult {
        let arrays = self.plan.device_arrays().expect("a device's plan");
        let (context, k) = (Some(&*self.context), shape().params().k as usize);
        // SAFETY: the arrays are those of the plan of this step, whose stream was waited for.
        unsafe { StepResult::from_arrays(context, &arrays, k, &self.input().batch.cu_q) }
    }

    /// Checks the result, every slot and every row of the pool after a step, whose stream was waited for.
    pub fn check(&mut self) {
        let (engine, result) = (&self.engine, self.read_result());
        let input = self.input.as_ref().expect("a step");
        self.driver.check(input, &result, |state, layer, slot, bytes| {
            engine.buffer().slot_bytes(state, layer, slot, bytes).unwrap();
        });
        self.check_pool();
        self.results.push(result);
    }

    /// Checks the rows of a step and of the pool only. It is meant for steps before which the device may have started
    /// cold, or after one of which only a part was done.
    pub fn check_rows(&self) {
        let (engine, result) = (&self.engine, self.read_result());
        self.driver.check_rows(self.input(), &result, |state, layer, slot, bytes| {
            engine.buffer().slot_bytes(state, layer, slot, bytes).unwrap();
        });
        self.check_pool();
    }

    fn check_pool(&self) {
        let pool = self.engine.pool();
        self.driver.check_pool(|layer, row, bytes| pool.read_row(layer, row, bytes).unwrap());
    }

    /// Compares the results of all steps with those of an engine on the CPU.
    pub fn compare_with_cpu(&self) {
        let mut cpu = shape().engine(MachineChoice::Emu);
        assert!(run(&self.workload, &mut cpu) == self.results);
    }
}

/// Returns a function that writes a row to the pool of an engine.
fn write(engine: &Engine) -> impl FnMut(usize, usize, &[u8]) {
    |layer, row, bytes| engine.pool().write_row(layer, row, bytes).unwrap()
}
