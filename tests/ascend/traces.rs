//! Traces and random workloads with the emitted kernels, step by step on the simulated device and
//! on the CPU: on 1 to 40 cores, with one launch and with two, with host arrays, queued in a
//! stream, and captured. After each step slots, miss lists, counts, tables, slots' bytes and the
//! pool must be equal.

use std::sync::Arc;

use avsg::ascend::acl::{Context, Stream};
use avsg::ascend::simulated;
use avsg_cli::trace::Trace;
use avsg_sim::{Options, Session};
use avsg_testkit::tier;

use crate::engine_pair::{EnginePair, PairConfig};
use crate::prerequisites::has_cpp_compiler;
use crate::random_workload::{self, RandomWorkload};
use crate::trace_workload::{self, TraceWorkload};

/// How a step is submitted to the device.
#[derive(Clone, Copy, Debug)]
enum Submission {
    HostArrays,
    QueuedInStream,
    CapturedGraph,
}

const SUBMISSIONS: [Submission; 3] =
    [Submission::HostArrays, Submission::QueuedInStream, Submission::CapturedGraph];

/// A workload on a pair of engines.
trait PairWorkload {
    fn pair(&mut self) -> &mut EnginePair;
    /// Copies the next step to the device.
    fn next_step(&mut self);
    /// Checks the rows of a step that was already compared.
    fn check(&mut self);
}

impl PairWorkload for RandomWorkload {
    fn pair(&mut self) -> &mut EnginePair {
        &mut self.pair
    }
    fn next_step(&mut self) {
        self.next_step();
    }
    fn check(&mut self) {
        self.check();
    }
}

impl PairWorkload for TraceWorkload<'_> {
    fn pair(&mut self) -> &mut EnginePair {
        &mut self.pair
    }
    fn next_step(&mut self) {
        self.next_step();
    }
    fn check(&mut self) {
        self.check_exact();
    }
}

/// Runs and compares `steps` steps.
fn run(
    workload: &mut impl PairWorkload,
    submission: Submission,
    steps: usize,
    context: &Arc<Context>,
) {
    let stream = Stream::new(context).unwrap();
    let graph = match submission {
        Submission::CapturedGraph => {
            Some(stream.capture(|| workload.pair().enqueue(stream.raw())).unwrap())
        }
        _ => None,
    };
    for _ in 0..steps {
        workload.next_step();
        let pair = workload.pair();
        match (submission, &graph) {
            (Submission::HostArrays, _) => pair.step_from_host(),
            (_, graph) => {
                match graph {
                    Some(graph) => stream.replay(graph).unwrap(),
                    None => pair.enqueue(stream.raw()).unwrap(),
                }
                stream.synchronize(60_000).unwrap();
                pair.compare();
            }
        }
        workload.check();
    }
}

/// Returns the cases of this tier: their numbers, cores, whether a step is one launch, and
/// submissions.
fn cases(what: &str, cores: &[usize]) -> Vec<(usize, usize, bool, Submission)> {
    let mut all = Vec::new();
    for &cores in cores {
        for one_launch in [false, true] {
            for submission in SUBMISSIONS {
                all.push((all.len(), cores, one_launch, submission));
            }
        }
    }
    tier::cases(what, all, 0, |(_, cores, one_launch, submission)| {
        vec![cores.to_string(), one_launch.to_string(), format!("{submission:?}")]
    })
}

fn committed_trace() -> Trace {
    Trace::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/nomicon-4k-k256.npz")).unwrap()
}

/// Each case runs another part of the committed trace.
#[test]
fn traces_match_the_cpu_on_any_number_of_cores() {
    if !has_cpp_compiler() {
        return;
    }
    let trace = committed_trace();
    for (case, cores, one_launch, submission) in cases("trace", &[1, 2, 8, 20, 40]) {
        let session = Session::new(Options { seed: case as u64, ..Options::default() });
        let context = simulated::context().unwrap();
        let config =
            PairConfig { one_launch, ..trace_workload::pair_config(&trace, case * 2, 1024, cores) };
        let pair = EnginePair::new(&config, &context, None);
        let mut workload = TraceWorkload::new(&trace, pair, case * 2);
        run(&mut workload, submission, 3, &context);
        assert!(
            workload.pair.compared_slots == 3 * 2 * 1024,
            "{cores} cores, one launch {one_launch}, {submission:?}"
        );
        drop((workload, context));
        assert_eq!(session.leaks(), Vec::<String>::new());
    }
}

/// The workloads have block tables, two segments and two layers, and fewer requests than cores.
#[test]
fn workloads_match_the_cpu_on_many_cores() {
    if !has_cpp_compiler() {
        return;
    }
    for (_, cores, one_launch, submission) in cases("workloads", &[8, 40]) {
        let session = Session::new(Options { seed: 5, ..Options::default() });
        let context = simulated::context().unwrap();
        let config = random_workload::pair_config(cores, one_launch);
        let seed = 31 + u64::from(cores == 40);
        let mut workload = RandomWorkload::new(&config, &context, None, seed);
        run(&mut workload, submission, 8, &context);
        drop((workload, context));
        assert_eq!(session.leaks(), Vec::<String>::new());
    }
}

/// Each thread has an engine and a stream of its own, and all of them write to one pool.
#[test]
fn four_threads_match_the_cpu_on_one_pool() {
    if !has_cpp_compiler() {
        return;
    }
    let session = Session::new(Options { seed: 7, ..Options::default() });
    let trace = committed_trace();
    let context = simulated::context().unwrap();
    let config = trace_workload::pair_config(&trace, 0, 1024, 8);
    let pool = config.pool(&context);
    std::thread::scope(|scope| {
        use Submission::{CapturedGraph, HostArrays, QueuedInStream};
        let submissions = [CapturedGraph, QueuedInStream, CapturedGraph, HostArrays];
        for (thread, submission) in submissions.into_iter().enumerate() {
            let config = PairConfig { one_launch: thread < 2, ..config.clone() };
            let (trace, context, pool) = (&trace, &context, pool.clone());
            scope.spawn(move || {
                let pair = EnginePair::with_pool(&config, context, None, pool);
                let mut workload = TraceWorkload::new(trace, pair, 0);
                run(&mut workload, submission, 10, context);
                assert!(workload.pair.compared_slots == 10 * 2 * 1024, "thread {thread}");
            });
        }
    });
    drop((pool, context));
    assert_eq!(session.leaks(), Vec::<String>::new());
}

/// Runs a trace from a file, for example one with K = 2048, on 40 cores, with each submission and number
/// of launches:
/// ```text
/// AVSG_TRACE=trace.npz AVSG_STEPS=12 \
///   cargo test --release --test ascend -- --ignored --nocapture
/// ```
/// `AVSG_STEPS` is 6 and `AVSG_SLOTS` is 8192 by default.
#[test]
#[ignore = "needs a trace: AVSG_TRACE=file.npz"]
fn a_trace_from_a_file_matches_the_cpu() {
    let number = |name: &str, default: usize| {
        std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
    };
    let path = std::env::var("AVSG_TRACE").expect("set AVSG_TRACE to the path of a trace");
    let trace = Trace::read(&path).unwrap();
    let (steps, slots) = (number("AVSG_STEPS", 6), number("AVSG_SLOTS", 8192));
    let mut compared = 0;
    for one_launch in [false, true] {
        for submission in SUBMISSIONS {
            let _session = Session::new(Options::default());
            let context = simulated::context().unwrap();
            let config =
                PairConfig { one_launch, ..trace_workload::pair_config(&trace, 0, slots, 40) };
            let pair = EnginePair::new(&config, &context, None);
            let mut workload = TraceWorkload::new(&trace, pair, 0);
            run(&mut workload, submission, steps, &context);
            compared += workload.pair.compared_slots;
            println!("{path}: {submission:?}, one launch {one_launch}: {steps} steps are equal");
        }
    }
    println!("{path}: {compared} slots compared, 0 differ");
}
