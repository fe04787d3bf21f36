//! Plans that may be transferred in any order, plans that are dropped before every layer has their rows, and the
//! counters of an engine, on the CPU and on the simulated device. That a transfer is refused which would overwrite
//! newer rows, or which relies on slots that were never filled, is checked by random calls; that a discarded plan is
//! missed again, by `bindings/c/tests/calls/states.rs`.

use avsg::device::params::Params;
use avsg::engine::{Batch, Config, Engine, Stats};
use avsg::plan::Plan;
use avsg_testkit::batch::OwnedBatch;

use crate::harness::{expect_refusal, on_ascend, on_both_devices, plan_in_a_stream};
use crate::small::{self, K, ROW, both_states, check, ids, one_request, pool};

fn planned(engine: &mut Engine, owned: &OwnedBatch) -> Plan {
    let mut plan = engine.new_plan(2, 2).unwrap();
    engine.plan(&owned.batch(), &mut plan).unwrap();
    plan
}

/// Transfers a layer of a plan and checks its rows.
fn transfer_exactly(engine: &mut Engine, owned: &OwnedBatch, plan: &mut Plan, layer: usize) {
    engine.transfer(plan, &[layer], None).unwrap();
    check(engine, plan, owned, layer);
}

#[test]
fn independent_plans_may_be_transferred_in_any_order() {
    on_both_devices(&small::config(2), pool, |engine| {
        // Plans of different states are independent.
        let (a, b) = (one_request(0, 1, ids(0)), one_request(1, 1, ids(50)));
        let (mut first, mut second) = (planned(engine, &a), planned(engine, &b));
        for layer in [1, 0] {
            transfer_exactly(engine, &b, &mut second, layer);
            transfer_exactly(engine, &a, &mut first, layer);
            check(engine, &second, &b, layer);
        }
        // Layer 1 is transferred two steps after layer 0.
        let steps: Vec<_> = (0..12).map(|step| one_request(0, 1, ids(step * 29))).collect();
        let mut plans: Vec<Plan> = Vec::new();
        for (step, owned) in steps.iter().enumerate() {
            plans.push(planned(engine, owned));
            transfer_exactly(engine, owned, &mut plans[step], 0);
            if let Some(before) = step.checked_sub(2) {
                transfer_exactly(engine, &steps[before], &mut plans[before], 1);
            }
        }
        [10, 11].iter().for_each(|&at| transfer_exactly(engine, &steps[at], &mut plans[at], 1));
        // A plan without misses need not be transferred.
        let again = planned(engine, &steps[11]);
        assert_eq!(again.total_misses(), 0);
        let (padding, next) = (one_request(-1, 9, ids(0)), one_request(0, 1, ids(7)));
        let (mut empty_plan, mut last) = (planned(engine, &padding), planned(engine, &next));
        transfer_exactly(engine, &next, &mut last, 1);
        transfer_exactly(engine, &padding, &mut empty_plan, 1);
        transfer_exactly(engine, &next, &mut last, 0);
        // A cold start with padding alone has no misses either.
        let empty = one_request(0, 5, vec![-1; K]);
        let mut cold_plan = planned(engine, &empty);
        transfer_exactly(engine, &empty, &mut cold_plan, 0);
        let warm = one_request(0, 5, ids(90));
        let mut plan = planned(engine, &warm);
        [1, 0].iter().for_each(|&layer| transfer_exactly(engine, &warm, &mut plan, layer));
    });
}

#[test]
fn plans_are_discarded_from_the_newest_on() {
    on_both_devices(&small::config(2), pool, |engine| {
        let mut plans = [(); 4].map(|()| engine.new_plan(2, 2).unwrap());
        let firsts = [[0, 0], [90, 0], [90, 0], [200, 0]];
        for (plan, first) in plans.iter_mut().zip(firsts) {
            engine.plan(&both_states(first).batch(), plan).unwrap();
        }
        let tables = [0, 1].map(|state| engine.read_table(0, state).unwrap().to_vec());
        // Plan 2 missed nothing, but it may rely on the rows of plan 1.
        expect_refusal(engine.discard(&mut plans[1]), &["plan number is 2", "plan 4 of state 0"]);
        assert!((0..2).all(|state| engine.read_table(0, state).unwrap() == tables[state]));
        assert_eq!(plans[1].requests(), 2, "a refused plan is kept");
        for at in [3, 2, 1] {
            engine.discard(&mut plans[at]).unwrap();
        }
        // The first plan is the last one again: both layers may take it, and nothing else is due.
        (0..2).for_each(|layer| engine.transfer(&mut plans[0], &[layer], None).unwrap());
        let owned = both_states([90, 0]);
        let plan = &mut plans[1];
        engine.step(&owned.batch(), plan, 1, None).unwrap();
        assert_eq!(plan.total_misses(), K);
        engine.transfer(plan, &[0], None).unwrap();
        (0..2).for_each(|layer| check(engine, plan, &owned, layer));
        // After a plan of the state that missed nothing, the older plan stays.
        let [_, plan, later, _] = &mut plans;
        engine.plan(&owned.batch(), later).unwrap();
        expect_refusal(engine.discard(plan), &["newest plan first"]);
        engine.discard(later).unwrap();
        engine.discard(plan).unwrap();
        let other = Engine::new(small::config(2), pool()).unwrap();
        let mut foreign = other.new_plan(2, 2).unwrap();
        expect_refusal(engine.discard(&mut foreign), &["plan is foreign"]);
        // Nothing is due after the plans around a new generation were discarded: the table of the newest plan was
        // cold, so it relies on none of the plans before.
        let of = |first, n| OwnedBatch { generation: vec![n; 2], ..both_states([0, first]) };
        for (plan, (first, generation)) in plans.iter_mut().zip([(0, 2), (90, 2), (200, 3)]) {
            engine.plan(&of(first, generation).batch(), plan).unwrap();
        }
        engine.discard(&mut plans[2]).unwrap();
        engine.discard(&mut plans[1]).unwrap();
        let (owned, plan) = (of(90, 3), &mut plans[3]);
        engine.step(&owned.batch(), plan, 0, None).unwrap();
        engine.transfer(plan, &[1], None).unwrap();
        assert_eq!(plan.total_misses(), 2 * K);
        (0..2).for_each(|layer| check(engine, plan, &owned, layer));
    });
}

#[test]
fn counters_follow_forks_loads_invalidations_and_appends() {
    let params = Params { slots: 128, ..small::config(2).params };
    let mut engine = Engine::new(Config { params, ..small::config(2) }, pool()).unwrap();
    assert_eq!(engine.stats(), Stats::default());
    let mut plan = engine.new_plan(2, 2).unwrap();
    let step = |engine: &mut Engine, plan: &mut Plan, state: i32, generation: i32, first: i32| {
        let before = engine.stats();
        let owned = one_request(state, generation, (first..first + K as i32).collect());
        engine.plan(&owned.batch(), plan).unwrap();
        (0..2).for_each(|layer| engine.transfer(plan, &[layer], None).unwrap());
        let after = engine.stats();
        [after.misses - before.misses, after.evictions - before.evictions]
    };
    let k = K as u64;
    // 128 slots have room for five disjoint selections of 24 ids.
    for first in [0, 24, 48, 72, 96] {
        assert_eq!(step(&mut engine, &mut plan, 0, 1, first), [k, 0]);
    }
    engine.fork(0, 1, &[1], &[9]).unwrap();
    let [missed, evicted] = step(&mut engine, &mut plan, 1, 9, 200);
    assert_eq!((missed, evicted), (k, k - 8), "eight slots were never used");
    assert_eq!(step(&mut engine, &mut plan, 1, 10, 200), [k, 0], "a new generation is empty");
    engine.fork(0, 2, &[1], &[11]).unwrap();
    assert_eq!(step(&mut engine, &mut plan, 1, 11, 200), [k, 0], "nothing is of generation 2");
    engine.invalidate(0, 0..600).unwrap();
    let [missed, evicted] = step(&mut engine, &mut plan, 0, 1, 0);
    assert!(missed == k && evicted >= k - 8, "slots of invalidated ids count: {evicted}");
    // A load of 30 ids plans twice, and transfers each plan to both layers.
    let (before, ids) = (engine.stats(), (0..30).collect::<Vec<i32>>());
    let request = Batch { state: &[1], generation: &[14], seq_len: &[600], ..Batch::default() };
    let load = Batch { ids: &ids, ..request };
    assert_eq!(engine.load(&load, &mut plan).unwrap(), 30);
    let after = engine.stats();
    let counts = [after.plans - before.plans, after.transfers - before.transfers];
    assert_eq!((counts, after.misses - before.misses), ([2, 4], 30));
    assert_eq!(after.transferred_bytes - before.transferred_bytes, 2 * 30 * ROW as u64);
    let mut token = one_request(1, 14, vec![-1; K]);
    token.stable[0] = 599;
    engine.append(&token.batch(), &[0, 1], &[&[0; ROW], &[0; ROW]]).unwrap();
    let last = engine.stats();
    assert_eq!((last.appends, last.appended_bytes), (2, 2 * ROW as u64));
}

#[test]
fn of_a_stream_the_calls_are_counted_and_no_plan_is_dropped() {
    on_ascend(&small::config(2), pool, |engine, _, context| {
        let [mut host, mut queued] = [(); 2].map(|()| engine.new_plan(2, 2).unwrap());
        let owned = both_states([0, 0]);
        engine.plan(&owned.batch(), &mut host).unwrap();
        let before = engine.stats();
        plan_in_a_stream(engine, &mut queued, &owned, &[0], context, |_| ());
        let stats = engine.stats();
        assert_eq!((stats.queued, before.queued), (2, 0));
        let counted = |stats: &Stats| (stats.plans, stats.transfers, stats.misses, stats.plan_ns);
        assert_eq!(counted(&stats), counted(&before));
        expect_refusal(engine.discard(&mut queued), &["planned in a stream"]);
        // The queued plan hits what this one missed.
        let parts = ["was emptied, or planned in a stream, after it"];
        expect_refusal(engine.discard(&mut host), &parts);
    });
}
