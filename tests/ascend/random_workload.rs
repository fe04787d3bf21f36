//! A random workload of the testkit on a pair of engines. All its steps have the same form, so that
//! a captured step can be replayed with the arrays of the next ones.

use std::path::PathBuf;
use std::sync::Arc;

use avsg::Result;
use avsg::ascend::acl::{Context, Graph, Stream};
use avsg::rows::RowFormat;
use avsg_sim::{Options, Session};
use avsg_testkit::splitmix::SplitMix64;
use avsg_testkit::workload::{
    DEVICE_SHAPES, EngineSetting, Shape, StepInput, WorkloadDriver, random_step,
};

use super::engine_pair::{EnginePair, PairConfig};
use super::harness::{in_session, install_kernels};

const REQUESTS: usize = 4;
const STATES: usize = 3;
/// Blocks per request.
const BLOCKS: usize = 8;
pub const LAYERS: usize = 2;

/// How a step is submitted to the device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Submission {
    HostArrays,
    QueuedInStream,
    CapturedGraph,
}

/// Returns the configuration of the engines: block tables, two segments, two layers. Other tests
/// use the same geometry, so that its kernels are compiled once.
pub fn pair_config(cores: usize, one_launch: bool) -> PairConfig {
    let params = Shape::from(DEVICE_SHAPES[1]).params();
    let setting = EngineSetting {
        params,
        states: STATES,
        layers: LAYERS,
        format: RowFormat::segments(&[40, 8]).unwrap(),
        rows_per_request: BLOCKS * params.page as usize,
        max_requests: REQUESTS,
    };
    PairConfig { setting, cores, one_launch }
}

/// A random workload with the Rust kernels and a stream of the caller, in a session of the simulator.
pub struct StreamWorkload<'a> {
    pub session: &'a Session,
    pub context: &'a Arc<Context>,
    pub workload: RandomWorkload,
    pub stream: Stream,
}

/// Runs a test on a random workload on five cores, which must not leak a resource.
pub fn in_a_stream<T>(
    options: Options,
    seed: u64,
    one_launch: bool,
    test: impl FnOnce(StreamWorkload<'_>) -> T,
) -> T {
    in_session(options, |session, context| {
        let config = pair_config(5, one_launch);
        let kernels = install_kernels(session, &config.engine_config());
        let workload = RandomWorkload::new(&config, context, kernels, seed).unwrap();
        test(StreamWorkload { session, context, workload, stream: Stream::new(context).unwrap() })
    })
}

impl StreamWorkload<'_> {
    /// Queues the current step.
    pub fn enqueue(&mut self) {
        self.workload.pair.enqueue(self.stream.raw()).unwrap();
    }

    /// Captures a step.
    pub fn capture(&mut self) -> Graph {
        self.stream.capture(|| self.workload.pair.enqueue(self.stream.raw())).unwrap()
    }

    pub fn wait(&self) {
        self.stream.synchronize(1000).unwrap();
    }

    /// Queues the next step, or replays it, and compares it with the CPU's.
    pub fn step(&mut self, graph: Option<&Graph>) {
        self.workload.next_step();
        match graph {
            Some(graph) => self.stream.replay(graph).unwrap(),
            None => self.enqueue(),
        }
        self.wait();
        self.workload.compare();
    }
}

/// A random workload on a pair of engines.
pub struct RandomWorkload {
    pub pair: EnginePair,
    driver: WorkloadDriver,
    rng: SplitMix64,
    step_input: Option<StepInput>,
}

impl RandomWorkload {
    /// Creates engines of a configuration from [`pair_config`]. Without `kernels` the device runs
    /// the emitted ones.
    pub fn new(
        config: &PairConfig,
        context: &Arc<Context>,
        kernels: impl Into<Option<PathBuf>>,
        seed: u64,
    ) -> Result<Self> {
        let pair = EnginePair::new(config, context, kernels)?;
        let driver = WorkloadDriver::new(config.setting.clone(), &mut write(&pair));
        Ok(Self { driver, pair, rng: SplitMix64::new(seed), step_input: None })
    }

    /// Draws the next step and copies its arrays to the device.
    pub fn next_step(&mut self) {
        let step = random_step(&mut self.rng, STATES, REQUESTS);
        self.step_input = Some(self.driver.next_step(&step, &mut write(&self.pair)));
        self.upload();
    }

    /// Copies the same step to the device with a new generation of every request, as a runtime does
    /// after work in its stream has failed.
    pub fn renew_generations(&mut self) {
        self.driver.renew_generations(self.step_input.as_mut().expect("a step"));
        self.upload();
    }

    fn upload(&mut self) {
        let input = self.step_input();
        let (batch, fresh) = (input.batch.clone(), input.fresh.clone());
        self.pair.upload_step(batch, fresh);
    }

    pub fn step_input(&self) -> &StepInput {
        self.step_input.as_ref().expect("a step")
    }

    /// Compares a step whose stream was waited for, and checks it.
    pub fn compare(&mut self) {
        self.pair.compare();
        self.check();
    }

    /// Compares the rows of a step before which the device may have started cold, and checks the
    /// step.
    pub fn compare_rows(&mut self) {
        self.pair.compare_rows();
        self.check();
    }

    /// Checks the CPU's result of the step, with which the device's was compared, against the model
    /// of the workload.
    pub fn check(&mut self) {
        let (input, pair) = (self.step_input.as_ref().expect("a step"), &self.pair);
        self.driver.check(input, &pair.cpu_result, |state, layer, slot, bytes| {
            pair.cpu.buffer().slot_bytes(state, layer, slot, bytes).unwrap();
        });
        self.driver.check_pool(|l, row, bytes| pair.cpu.pool().read_row(l, row, bytes).unwrap());
    }
}

/// Returns a function that writes a row to both pools.
fn write(pair: &EnginePair) -> impl FnMut(usize, usize, &[u8]) {
    |layer, row, bytes| {
        for engine in [&pair.ascend, &pair.cpu] {
            engine.pool().write_row(layer, row, bytes).unwrap();
        }
    }
}
