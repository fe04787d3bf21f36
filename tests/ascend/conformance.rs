//! The same lives on the Ascend device as on the CPU, by host arrays: identical slots, miss lists and
//! bytes.

use avsg::ascend::simulated;
use avsg::engine::Choice;
use avsg::engine::Config;
use avsg_sim::{Options, Session};
use avsg_testkit::life::strategies::{device_shape, life};
use avsg_testkit::life::{DEVICE_SHAPES, EVERYTHING, Life, live, long_life};
use avsg_testkit::tier;
use proptest::prelude::*;
use proptest::test_runner::Config as Cases;

use crate::stand;

/// Lives it on the simulated device, and looks for what is left behind.
fn live_there(life: &Life, seed: u64) -> Vec<i32> {
    let session = Session::new(Options { seed, ..Options::default() });
    let config = life.shape.config(Choice::Auto);
    let kernels = stand::kernels(&session, &config);
    let pool = life.shape.pool();
    let log = live(life, stand::engine(config, &pool, kernels, seed.is_multiple_of(2)).unwrap());
    assert_eq!(session.leaks(), Vec::<String>::new());
    log
}

proptest! {
    #![proptest_config(Cases { cases: 40, failure_persistence: None, ..Cases::default() })]

    #[test]
    fn lives_are_the_same_as_on_the_cpu(life in life(device_shape()), seed in any::<u64>()) {
        prop_assert!(live(&life, life.shape.engine(Choice::Emu)) == live_there(&life, seed));
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
        let life = long_life(bytes, 12, EVERYTHING);
        let expected = live(&life, life.shape.engine(Choice::Emu));
        assert!(expected.len() > 500, "the life is not empty");
        let few = life.shape.config(Choice::Auto);
        let kernels = simulated::emit(&few.params).unwrap();
        let cases = [few.cores, 8, 40].map(|cores| [true, false].map(|one| (cores, one)));
        let axes = |(cores, one): &(usize, bool)| vec![cores.to_string(), one.to_string()];
        let taken = tier::cases(&format!("{bytes:?}"), cases.as_flattened().to_vec(), 0, axes);
        for (cores, one_launch) in taken {
            let session = Session::new(Options::default());
            let config = Config { cores, ..few };
            let pool = life.shape.pool();
            let engine = stand::engine(config, &pool, kernels.clone(), one_launch).unwrap();
            let log = live(&life, engine);
            let case = format!("{bytes:?} on {cores} cores, one launch {one_launch}");
            assert!(log == expected, "{case}: other slots or misses than the CPU's");
            assert_eq!(session.leaks(), Vec::<String>::new(), "{case}");
        }
    }
}
