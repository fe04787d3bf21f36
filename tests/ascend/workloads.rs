//! Random workloads with the emitted kernels, step by step on the simulated device and on the CPU: on 1
//! to 40 cores, with one launch and with two, with host arrays, queued in a stream, and captured. After
//! each step slots, miss lists, counts, tables, slots' bytes and the pool must be equal.

use std::sync::Arc;

use avsg::ascend::acl::{Context, Stream};
use avsg_testkit::tier;

use crate::harness::{in_session, seeded};
use crate::prerequisites::has_cpp_compiler;
use crate::random_workload::{RandomWorkload, Submission, pair_config};

const SUBMISSIONS: [Submission; 3] =
    [Submission::HostArrays, Submission::QueuedInStream, Submission::CapturedGraph];

/// Runs and compares steps of a workload.
fn run(context: &Arc<Context>, cores: usize, one_launch: bool, submission: Submission, seed: u64) {
    let config = pair_config(cores, one_launch);
    let mut workload = RandomWorkload::new(&config, context, None, seed).unwrap();
    let stream = Stream::new(context).unwrap();
    let captured = matches!(submission, Submission::CapturedGraph);
    let graph = captured.then(|| stream.capture(|| workload.pair.enqueue(stream.raw())).unwrap());
    for _ in 0..12 {
        workload.next_step();
        match (submission, &graph) {
            (Submission::HostArrays, _) => {
                workload.pair.step_from_host();
                workload.check();
                continue;
            }
            (_, Some(graph)) => stream.replay(graph).unwrap(),
            (_, None) => workload.pair.enqueue(stream.raw()).unwrap(),
        }
        stream.synchronize(60_000).unwrap();
        workload.compare();
    }
}

/// The workloads have block tables, two segments and two layers, and four requests, so that there are
/// more requests than cores, or fewer.
#[test]
fn workloads_match_the_cpu_on_any_number_of_cores() {
    if !has_cpp_compiler() {
        return;
    }
    let mut all = Vec::new();
    for cores in [1, 2, 8, 20, 40] {
        for one_launch in [false, true] {
            all.extend(SUBMISSIONS.map(|submission| (cores, one_launch, submission)));
        }
    }
    let axes = |&(cores, one_launch, submission): &(usize, bool, Submission)| {
        vec![cores.to_string(), format!("{one_launch} {submission:?}")]
    };
    for (cores, one_launch, submission) in tier::cases("workloads", all, 0, axes) {
        in_session(seeded(5), |_, context| {
            run(context, cores, one_launch, submission, 31 + cores as u64);
        });
    }
}

/// Each thread has engines, a pool and a stream of its own.
#[test]
fn four_threads_match_the_cpu() {
    if !has_cpp_compiler() {
        return;
    }
    use Submission::{CapturedGraph, HostArrays, QueuedInStream};
    in_session(seeded(7), |_, context| {
        std::thread::scope(|scope| {
            let submissions = [CapturedGraph, QueuedInStream, CapturedGraph, HostArrays];
            for (thread, submission) in submissions.into_iter().enumerate() {
                scope.spawn(move || run(context, 8, thread < 2, submission, thread as u64));
            }
        });
    });
}
