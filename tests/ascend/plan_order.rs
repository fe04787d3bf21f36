//! In which order plans may be transferred: what is legal gives exact rows, what would overwrite newer
//! rows or return slots that were never filled is refused, on the CPU and on the simulated device.

use avsg::ascend::{AscendOptions, RegisteredPool};
use avsg::device::params::Params;
use avsg::engine::{Config, Engine};
use avsg::plan::Plan;
use avsg::rows::RowFormat;
use avsg_sim::{Options, Session};
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::splitmix::SplitMix64;
use avsg_testkit::{exact, fixture};

use crate::stand;

const K: usize = 24;
const LAYERS: usize = 2;
const STATES: usize = 3;

/// The same test on both devices; nothing of the simulated one is left behind.
fn on_both(test: impl Fn(&mut Engine, &Session)) {
    let session = Session::new(Options { seed: 5, ..Options::default() });
    let params = Params::wide(K as u32, 2, 128);
    let config = Config { cores: 3, ..Config::new(params, STATES) };
    let pool = || fixture::pool(LAYERS, 600, RowFormat::single(64).unwrap());
    test(&mut fixture::engine(params, STATES, config.cores, pool()), &session);
    let kernels = stand::kernels(&session, &config);
    let context = stand::context().unwrap();
    let pool = RegisteredPool::new(&context, pool()).unwrap();
    let options = AscendOptions::new(context).with_kernels(kernels);
    let mut engine = Engine::on_ascend(config, pool, &options).unwrap();
    drop(options);
    test(&mut engine, &session);
    engine.close().unwrap();
    assert_eq!(session.leaks(), Vec::<String>::new());
}

/// K distinct ids from `first` on, in steps of 17.
fn ids(first: usize) -> Vec<i32> {
    (0..K).map(|i| ((first + i * 17) % 500) as i32).collect()
}

/// A batch of one request of one token.
fn one(state: i32, generation: i32, first: usize) -> OwnedBatch {
    let mut owned = OwnedBatch::new(K, 0);
    owned.push([state, generation, -1, 600], &[ids(first)]);
    owned
}

fn planned(engine: &mut Engine, owned: &OwnedBatch) -> Plan {
    let mut plan = engine.new_plan(2, 2).unwrap();
    engine.plan(&owned.batch(), &mut plan).unwrap();
    plan
}

/// The transfer works, and the layer then holds what the plan says.
fn arrives(engine: &mut Engine, owned: &OwnedBatch, plan: &mut Plan, layer: usize) {
    engine.transfer(plan, layer, None).unwrap();
    exact(engine, owned, plan, layer);
}

fn exact(engine: &Engine, owned: &OwnedBatch, plan: &Plan, layer: usize) {
    exact::check_step(engine, plan, owned, layer, |_, id| (id, layer as u32));
}

#[track_caller]
fn refused<T>(done: avsg::Result<T>, parts: &[&str]) {
    let text = done.err().expect("it is out of order").to_string();
    assert!(parts.iter().all(|part| text.contains(part)), "{parts:?} in {text:?}");
}

#[test]
fn an_older_plan_after_a_newer_one_is_refused() {
    on_both(|engine, _| {
        let (a, b) = (one(2, 1, 0), one(2, 1, 200));
        let (mut old, mut new) = (planned(engine, &a), planned(engine, &b));
        assert_eq!((old.number(), new.number()), (1, 2));
        arrives(engine, &a, &mut old, 0);
        arrives(engine, &b, &mut new, 0);
        let parts = ["plan number is 1", "layer 0", "plan 2", "state 2", "order in which"];
        refused(engine.transfer(&mut old, 0, None), &parts);
        exact(engine, &b, &new, 0);
        // Another layer is at its own place in the order: there the old one comes first still.
        arrives(engine, &a, &mut old, 1);
        arrives(engine, &a, &mut old, 1);
        arrives(engine, &b, &mut new, 1);
        refused(engine.transfer(&mut old, 1, None), &["plan number is 1", "layer 1", "plan 2"]);
        // Another generation does not make it younger.
        let c = one(2, 2, 0);
        let mut cold = planned(engine, &c);
        arrives(engine, &c, &mut cold, 0);
        refused(engine.transfer(&mut new, 0, None), &["plan number is 2", "plan 3"]);
        arrives(engine, &b, &mut new, 1);
    });
}

#[test]
fn a_plan_whose_forerunner_is_missing_is_refused() {
    on_both(|engine, _| {
        let (a, b) = (one(0, 1, 0), one(0, 1, 17));
        let (mut old, mut new) = (planned(engine, &a), planned(engine, &b));
        assert!(new.total_misses() < K, "it hits what the first one missed");
        let parts = ["plan number is 2", "layer 1", "lacks", "plan 1", "state 0", "generation"];
        refused(engine.transfer(&mut new, 1, None), &parts);
        // A step is refused before it plans anything.
        let mut step = engine.new_plan(2, 2).unwrap();
        let table = engine.table(0).to_vec();
        let parts = ["plan number is 3", "layer 1", "lacks", "plan 2"];
        refused(engine.step(&b.batch(), &mut step, 1, None), &parts);
        assert!(engine.table(0) == table, "nothing has changed");
        arrives(engine, &a, &mut old, 1);
        arrives(engine, &b, &mut new, 1);
        engine.step(&b.batch(), &mut step, 1, None).unwrap();
        exact(engine, &b, &step, 1);
        // Layer 0 got neither: a cold start needs neither.
        refused(engine.step(&b.batch(), &mut step, 0, None), &["layer 0", "lacks", "plan 2"]);
        let cold = one(0, 2, 17);
        engine.step(&cold.batch(), &mut step, 0, None).unwrap();
        exact(engine, &cold, &step, 0);
    });
}

#[test]
fn what_the_order_does_not_touch_is_free() {
    on_both(|engine, _| {
        // Plans of different states, in flight together, in any order.
        let (a, b) = (one(0, 1, 0), one(1, 1, 50));
        let (mut first, mut second) = (planned(engine, &a), planned(engine, &b));
        for layer in [1, 0] {
            arrives(engine, &b, &mut second, layer);
            arrives(engine, &a, &mut first, layer);
            exact(engine, &b, &second, layer);
        }
        // The next step is planned, and copied where it can be, while layers wait for this one.
        let mut plans: Vec<Plan> = (0..3).map(|_| engine.new_plan(2, 2).unwrap()).collect();
        let steps: Vec<OwnedBatch> = (0..12).map(|step| one(0, 1, step * 29)).collect();
        for (step, owned) in steps.iter().enumerate() {
            engine.plan(&owned.batch(), &mut plans[step % 3]).unwrap();
            arrives(engine, owned, &mut plans[step % 3], 0);
            if let Some(before) = step.checked_sub(2) {
                arrives(engine, &steps[before], &mut plans[before % 3], 1);
            }
        }
        for step in [10, 11] {
            arrives(engine, &steps[step], &mut plans[step % 3], 1);
        }
        // Without misses there is nothing to transfer, and nobody has to.
        let again = planned(engine, &steps[11]);
        assert_eq!(again.total_misses(), 0);
        let (padding, next) = (one(-1, 9, 0), one(0, 1, 7));
        let (mut none, mut last) = (planned(engine, &padding), planned(engine, &next));
        arrives(engine, &next, &mut last, 1);
        arrives(engine, &padding, &mut none, 1);
        arrives(engine, &next, &mut last, 0);
        // A cold state of padding alone copies nothing either.
        let mut empty = OwnedBatch::new(K, 0);
        empty.push([0, 5, -1, 600], &[vec![-1; K]]);
        let mut nothing = planned(engine, &empty);
        arrives(engine, &empty, &mut nothing, 0);
        let warm = one(0, 5, 90);
        let mut plan = planned(engine, &warm);
        arrives(engine, &warm, &mut plan, 1);
        arrives(engine, &warm, &mut plan, 0);
    });
}

/// After a failure every state starts cold: no forerunner is asked for.
#[test]
fn a_failed_device_begins_anew() {
    on_both(|engine, session| {
        if engine.device() == "cpu" {
            return;
        }
        let (a, b) = (one(0, 1, 0), one(0, 1, 17));
        let mut old = planned(engine, &a);
        let so_far =
            session.calls().iter().filter(|c| **c == "aclrtLaunchKernelWithConfig").count();
        session.fail("aclrtLaunchKernelWithConfig", so_far + 1, 507_899);
        assert!(engine.transfer(&mut old, 0, None).is_err());
        refused(engine.transfer(&mut old, 0, None), &["stale"]);
        let mut plan = engine.new_plan(2, 2).unwrap();
        engine.step(&b.batch(), &mut plan, 1, None).unwrap();
        exact(engine, &b, &plan, 1);
        arrives(engine, &b, &mut plan, 0);
    });
}

/// Random plans, transfers and steps: whatever is let through is exact, whatever is refused has
/// changed nothing.
#[test]
fn every_transfer_that_is_let_through_is_exact() {
    on_both(|engine, _| {
        let mut dice = SplitMix64::new(77);
        let new = |_| (OwnedBatch::new(K, 0), engine.new_plan(2, 2).unwrap());
        let mut plans: Vec<(OwnedBatch, Plan)> = (0..4).map(new).collect();
        let (mut done, mut kept) = (0, 0);
        for _ in 0..3000 {
            let (which, layer) = (dice.below(4), dice.below(LAYERS));
            let mut owned = OwnedBatch::new(K, 0);
            let first = dice.below(STATES) as i32;
            for state in [first, (first + 1) % STATES as i32] {
                let state = if dice.below(4) == 0 { -1 } else { state };
                let generation = if dice.below(8) == 0 { dice.below(1 << 20) } else { 1 };
                let rows = [ids(dice.below(8) * 17), ids(dice.below(500))];
                owned.push([state, generation as i32, -1, 600], &rows[..dice.below(2)]);
            }
            let (of, plan) = &mut plans[which];
            let result = match dice.below(8) {
                0..2 => {
                    engine.plan(&owned.batch(), plan).unwrap();
                    *of = owned;
                    continue;
                }
                2..4 => engine.step(&owned.batch(), plan, layer, None).map(|()| *of = owned),
                _ => engine.transfer(plan, layer, None),
            };
            match result {
                Ok(()) => {
                    let (of, plan) = &plans[which];
                    exact(engine, of, plan, layer);
                    done += 1;
                }
                Err(error) => {
                    let text = error.to_string();
                    assert!(text.contains("plan number is") || text.contains("plan is empty"));
                    kept += 1;
                }
            }
        }
        assert!(done > 300 && kept > 300, "{done} let through, {kept} refused");
    });
}
