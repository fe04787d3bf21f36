//! Random workloads with the emitted kernels on the simulated device: on 1 to 40 cores, with one launch and with two, with host
//! arrays, queued in a stream, and captured. After each step slots' bytes and the pool must be right, and slots, miss lists
//! and counts those of the CPU. Random workloads of any geometry with host arrays give the same slots and miss lists, and
//! rows that are exact. That tables are equal, too, is checked by random calls and by `linker/tests/emitted`.

use std::path::PathBuf;
use std::sync::Arc;

use avsg::ascend::acl::{Acl, Context, Source};
use avsg::ascend::simulated;
use avsg::device::kernels::KernelName;
use avsg::engine::{Config, MachineChoice};
use avsg::pool::HostPool;
use avsg_linker::ascend::ascendc;
use avsg_linker::ascend::kernels::Abi;
use avsg_linker::ascend::soc::OF_THE_PAPER;
use avsg_linker::ascend::toolchain::Toolchain;
use avsg_sim::Options;
use avsg_testkit::step_result::StepResult;
use avsg_testkit::tier;
use avsg_testkit::workload::{self, DEVICE_SHAPES, Shape, Workload, long_workload};
use proptest::prelude::*;

use crate::harness::{self, in_session, seeded, with_emitted_kernels};
use crate::random_workload::RandomWorkload;
use crate::random_workload::Submission::{self, CapturedGraph, QueuedInStream};
use crate::strategies;

/// Runs and compares steps of a workload.
fn run(context: &Arc<Context>, cores: usize, one_launch: bool, submission: Submission, seed: u64) {
    let mut workload = RandomWorkload::new(context, (cores, one_launch), None, seed).unwrap();
    if submission == CapturedGraph {
        workload.capture().unwrap();
    }
    (0..12).for_each(|_| workload.step());
    workload.compare_with_cpu();
}

/// The workloads have block tables, two segments and two layers, and four requests, so that there are
/// more requests than cores, or fewer.
#[test]
fn workloads_match_the_cpu_on_any_number_of_cores() {
    let mut all = Vec::new();
    for cores in [1, 2, 8, 20, 40] {
        for one_launch in [false, true] {
            let all_ways = [QueuedInStream, CapturedGraph];
            all.extend(all_ways.map(|submission| (cores, one_launch, submission)));
        }
    }
    let axes = |&(cores, one_launch, submission): &(usize, bool, Submission)| {
        vec![cores.to_string(), format!("{one_launch} {submission:?}")]
    };
    for (cores, one_launch, submission) in tier::cases("workloads", all, 0, axes) {
        with_emitted_kernels(seeded(5), |_, context| {
            run(context, cores, one_launch, submission, 31 + cores as u64);
        });
    }
}

/// Each thread has engines, a pool and a stream of its own.
#[test]
fn four_threads_match_the_cpu() {
    with_emitted_kernels(seeded(7), |_, context| {
        std::thread::scope(|scope| {
            let submissions = [CapturedGraph, QueuedInStream, CapturedGraph];
            for (thread, submission) in submissions.into_iter().enumerate() {
                scope.spawn(move || run(context, 8, thread < 2, submission, thread as u64));
            }
            // One takes host arrays.
            let workload = long_workload(DEVICE_SHAPES[1], 12);
            run_on_host_arrays(context, &workload, None, (3, false));
        });
    });
}

/// Generates a geometry that device kernels support: at most two segments.
fn device_shape() -> impl Strategy<Value = Shape> {
    any::<[u8; 9]>().prop_map(|mut bytes| {
        bytes[6] = [0, 1, 3, 4][usize::from(bytes[6]) % 4];
        Shape::from(bytes)
    })
}

/// Runs a workload on a number of cores, with one launch or two. Without `kernels` the device runs the emitted ones.
fn run_on_host_arrays(
    context: &Arc<Context>,
    workload: &Workload,
    kernels: Option<PathBuf>,
    (cores, one_launch): (usize, bool),
) -> Vec<StepResult> {
    let config = Config { cores, ..workload.shape.config(MachineChoice::Auto) };
    let pool = HostPool::new(&workload.shape.pool()).unwrap();
    let engine = harness::engine(context, &config, pool, kernels, one_launch);
    workload::run(workload, &mut engine.unwrap())
}

proptest! {
    #![proptest_config(strategies::config(16))]

    #[test]
    fn random_workloads_match_the_cpu(workload in strategies::workload(device_shape()), seed in any::<u64>()) {
        let expected = workload::run(&workload, &mut workload.shape.engine(MachineChoice::Emu));
        let on_ascend = in_session(seeded(seed), |session, context| {
            let config = workload.shape.config(MachineChoice::Auto);
            let kernels = Some(harness::install_kernels(session, &config));
            let launches = (config.cores, seed.is_multiple_of(2));
            run_on_host_arrays(context, &workload, kernels, launches)
        });
        prop_assert!(expected == on_ascend);
    }
}

/// Runs the emitted kernels: paper and wide tables, with and without block tables and learned
/// lifetimes, on few cores and on many, with one launch and with two.
#[test]
fn emitted_kernels_match_the_cpu() {
    for bytes in DEVICE_SHAPES {
        let workload = long_workload(bytes, 12);
        let expected = workload::run(&workload, &mut workload.shape.engine(MachineChoice::Emu));
        let words = |s: &StepResult| s.slots.len() + 4 * s.miss_count() + s.requests.len();
        let words: usize = expected.iter().map(words).sum();
        assert!(words > 500, "the workload is not empty");
        let own = workload.shape.config(MachineChoice::Auto).cores;
        let cases = [own, 8, 40].into_iter().flat_map(|n| [(n, true), (n, false)]);
        let axes = |case: &(usize, bool)| vec![case.0.to_string(), case.1.to_string()];
        let name = format!("{bytes:?}");
        for launches in tier::cases(&name, cases.collect(), 0, axes) {
            with_emitted_kernels(Options::default(), |_, context| {
                let same = run_on_host_arrays(context, &workload, None, launches) == expected;
                assert!(same, "{name}, cores and one launch {launches:?}");
            });
        }
    }
}

/// Without a device the test prints "skipped: no device" and passes.
#[test]
fn kernels_that_cann_compiled_match_the_cpu_on_the_device() {
    let acl = Acl::open(&Source::System);
    let context = match acl.and_then(|acl| Context::for_device(Arc::new(acl), 0)) {
        Ok(context) => context,
        Err(error) => return println!("skipped: no device: {error}"),
    };
    for bytes in DEVICE_SHAPES {
        let workload = long_workload(bytes, 200);
        let params = workload.shape.params();
        let expected = workload::run(&workload, &mut workload.shape.engine(MachineChoice::Emu));
        let file = simulated::emit(&params).unwrap();
        let folder = file.parent().unwrap();
        ascendc(&params, Abi::Direct).unwrap().write(folder).unwrap();
        let toolchain = Toolchain::find().expect("CANN on a machine with a device");
        let names = KernelName::ALL.map(|kernel| kernel.entry().to_str().unwrap());
        toolchain.build(folder, &names, OF_THE_PAPER.name).unwrap();
        for one_launch in [true, false] {
            let (kernels, launches) = (Some(folder.to_owned()), (3, one_launch));
            let same = run_on_host_arrays(&context, &workload, kernels, launches) == expected;
            assert!(same, "{bytes:?}, one launch {one_launch}");
        }
    }
}
