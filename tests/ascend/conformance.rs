//! The same workloads on the Ascend device as on the CPU, by host arrays: identical slots, miss lists and
//! bytes.

use avsg::engine::Config;
use avsg::engine::MachineChoice;
use avsg_sim::{Options, Session};
use avsg_testkit::tier;
use avsg_testkit::workload::strategies::{device_shape, workload};
use avsg_testkit::workload::{DEVICE_SHAPES, MIXED_ACTIONS, Workload, long_workload, run};
use proptest::prelude::*;
use proptest::test_runner::Config as Cases;

use crate::stand;

/// Lives it on the simulated device, and looks for what is left behind.
fn live_there(workload: &Workload, seed: u64) -> Vec<i32> {
    let session = Session::new(Options { seed, ..Options::default() });
    let config = workload.shape.config(MachineChoice::Auto);
    let kernels = stand::kernels(&session, &config);
    let pool = workload.shape.pool();
    let log = run(workload, stand::engine(config, &pool, kernels, seed.is_multiple_of(2)).unwrap());
    assert_eq!(session.leaks(), Vec::<String>::new());
    log
}

proptest! {
    #![proptest_config(Cases { cases: 40, failure_persistence: None, ..Cases::default() })]

    #[test]
    fn lives_are_the_same_as_on_the_cpu(workload in workload(device_shape()), seed in any::<u64>()) {
        prop_assert!(run(&workload, workload.shape.engine(MachineChoice::Emu)) == live_there(&workload, seed));
    }
}

/// The kernels that are shipped, executed: paper and wide tables, with and without block tables and
/// frequency lifetimes, on few cores and on many, as one launch and as two.
#[test]
fn emitted_kernels_give_the_same_lives() {
    if !stand::compiler() {
        return;
    }
    for bytes in DEVICE_SHAPES {
        let workload = long_workload(bytes, 12, MIXED_ACTIONS);
        let expected = run(&workload, workload.shape.engine(MachineChoice::Emu));
        assert!(expected.len() > 500, "the workload is not empty");
        let few = workload.shape.config(MachineChoice::Auto);
        let cases = [few.cores, 8, 40].map(|cores| [true, false].map(|one| (cores, one)));
        let axes = |(cores, one): &(usize, bool)| vec![cores.to_string(), one.to_string()];
        let taken = tier::cases(&format!("{bytes:?}"), cases.as_flattened().to_vec(), 0, axes);
        for (cores, one_launch) in taken {
            let session = Session::new(Options::default());
            let config = Config { cores, ..few };
            let pool = workload.shape.pool();
            let engine = stand::engine(config, &pool, None, one_launch).unwrap();
            let log = run(&workload, engine);
            let case = format!("{bytes:?} on {cores} cores, one launch {one_launch}");
            assert!(log == expected, "{case}: other slots or misses than the CPU's");
            assert_eq!(session.leaks(), Vec::<String>::new(), "{case}");
        }
    }
}
