//! Workloads with host arrays give the same slots, miss lists and bytes on the Ascend device and on
//! the CPU.

use avsg::engine::Config;
use avsg::engine::MachineChoice;
use avsg_sim::{Options, Session};
use avsg_testkit::step_result::StepResult;
use avsg_testkit::tier;
use avsg_testkit::workload::{DEVICE_SHAPES, Shape, Workload, long_workload, run};
use proptest::prelude::*;
use proptest::test_runner::Config as ProptestConfig;

use crate::strategies::workload;
use crate::{harness, prerequisites};

/// Generates a geometry that device kernels support: at most two segments, and the balanced
/// strategy.
fn device_shape() -> impl Strategy<Value = Shape> {
    any::<[u8; 10]>().prop_map(|mut bytes| {
        bytes[6] = [0, 1, 3, 4][usize::from(bytes[6]) % 4];
        bytes[9] = 0;
        Shape::from(bytes)
    })
}

/// Runs a workload on the simulated device, checks that no resource leaks, and returns its results.
fn run_on_ascend(workload: &Workload, seed: u64) -> Vec<StepResult> {
    let session = Session::new(Options { seed, ..Options::default() });
    let config = workload.shape.config(MachineChoice::Auto);
    let kernels = harness::install_kernels(&session, &config);
    let pool = workload.shape.pool();
    let results =
        run(workload, harness::engine(config, &pool, kernels, seed.is_multiple_of(2)).unwrap());
    assert_eq!(session.leaks(), Vec::<String>::new());
    results
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 40,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn random_workloads_match_the_cpu(workload in workload(device_shape()), seed in any::<u64>()) {
        let expected = run(&workload, workload.shape.engine(MachineChoice::Emu));
        prop_assert!(expected == run_on_ascend(&workload, seed));
    }
}

/// Runs the emitted kernels: paper and wide tables, with and without block tables and learned
/// lifetimes, on few cores and on many, with one launch and with two.
#[test]
fn emitted_kernels_match_the_cpu() {
    if !prerequisites::has_cpp_compiler() {
        return;
    }
    for bytes in DEVICE_SHAPES {
        let workload = long_workload(bytes, 12);
        let expected = run(&workload, workload.shape.engine(MachineChoice::Emu));
        let words = |s: &StepResult| s.slots.len() + 4 * s.miss_count() + s.requests.len();
        let words: usize = expected.iter().map(words).sum();
        assert!(words > 500, "the workload is not empty");
        let base = workload.shape.config(MachineChoice::Auto);
        let cases =
            [base.cores, 8, 40].map(|cores| [true, false].map(|one_launch| (cores, one_launch)));
        let axes =
            |(cores, one_launch): &(usize, bool)| vec![cores.to_string(), one_launch.to_string()];
        let selected = tier::cases(&format!("{bytes:?}"), cases.as_flattened().to_vec(), 0, axes);
        for (cores, one_launch) in selected {
            let session = Session::new(Options::default());
            let config = Config { cores, ..base.clone() };
            let pool = workload.shape.pool();
            let engine = harness::engine(config, &pool, None, one_launch).unwrap();
            let results = run(&workload, engine);
            let case = format!("{bytes:?} on {cores} cores, one launch {one_launch}");
            assert!(results == expected, "{case}: slots or misses differ from the CPU's");
            assert_eq!(session.leaks(), Vec::<String>::new(), "{case}");
        }
    }
}
