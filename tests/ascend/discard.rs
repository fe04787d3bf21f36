//! Plans that are dropped before every layer has their rows, and the counters of an engine, on the
//! CPU and on the simulated device.

use std::time::Duration;

use avsg::device::params::Params;
use avsg::device::state::header;
use avsg::engine::{Config, Engine, Indexers, Load, Stats};
use avsg::plan::Plan;
use avsg_testkit::splitmix::SplitMix64;

use crate::harness::{expect_refusal, fail_next, on_ascend, on_both_devices, plan_in_a_stream};
use crate::small::{self, K, ROW, SLOTS, both_states, check, one_request, pool};

/// Returns a configuration of two layers with one indexer.
fn config() -> Config {
    small::config(2)
}

/// Returns a configuration of two layers with an indexer for each.
fn two_indexers() -> Config {
    Config { indexers: Indexers::per_layer(2).unwrap(), ..config() }
}

fn missed(plan: &Plan) -> [Vec<i32>; 2] {
    [0, 1].map(|request| plan.misses(request).id.to_vec())
}

#[test]
fn a_discarded_plan_is_missed_again_and_earlier_ids_are_not() {
    on_both_devices(&two_indexers(), pool, |engine| {
        let mut plan = engine.new_plan(2, 2).unwrap();
        engine.step(&both_states(0, [0, 0]).batch(), &mut plan, 0, None).unwrap();
        // State 0 keeps half of its ids, and state 1 all of them.
        let next = both_states(0, [36, 0]);
        engine.plan(&next.batch(), &mut plan).unwrap();
        let first = missed(&plan);
        assert_eq!([first[0].len(), first[1].len()], [K / 2, 0]);
        engine.discard(&mut plan).unwrap();
        assert_eq!((plan.requests(), plan.number()), (0, 0));
        expect_refusal(engine.transfer(&mut plan, 0, None), &["plan is empty"]);
        expect_refusal(engine.discard(&mut plan), &["plan is empty"]);
        engine.step(&next.batch(), &mut plan, 0, None).unwrap();
        assert_eq!(missed(&plan), first);
        check(engine, &plan, &next, 0);
        // The ids before the discarded plan still hit.
        let before = both_states(0, [0, 0]);
        engine.step(&before.batch(), &mut plan, 0, None).unwrap();
        assert_eq!(plan.total_misses(), 0);
        check(engine, &plan, &before, 0);
    });
}

#[test]
fn plans_are_discarded_from_the_newest_on() {
    on_both_devices(&config(), pool, |engine| {
        let mut plans = [(); 4].map(|()| engine.new_plan(2, 2).unwrap());
        let firsts = [[0, 0], [90, 0], [90, 0], [200, 0]];
        for (plan, first) in plans.iter_mut().zip(firsts) {
            engine.plan(&both_states(0, first).batch(), plan).unwrap();
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
        (0..2).for_each(|layer| engine.transfer(&mut plans[0], layer, None).unwrap());
        let owned = both_states(0, [90, 0]);
        let plan = &mut plans[1];
        engine.step(&owned.batch(), plan, 1, None).unwrap();
        assert_eq!(plan.total_misses(), K);
        engine.transfer(plan, 0, None).unwrap();
        (0..2).for_each(|layer| check(engine, plan, &owned, layer));
        // After a plan of the state that missed nothing, the older plan stays.
        let [_, plan, later, _] = &mut plans;
        engine.plan(&owned.batch(), later).unwrap();
        expect_refusal(engine.discard(plan), &["newest plan first"]);
        engine.discard(later).unwrap();
        engine.discard(plan).unwrap();
        let other = Engine::new(config(), pool()).unwrap();
        let mut foreign = other.new_plan(2, 2).unwrap();
        expect_refusal(engine.discard(&mut foreign), &["plan is foreign"]);
    });
}

/// The table of the newest plan was cold, so it relies on none of the plans before.
#[test]
fn nothing_is_due_after_the_plans_around_a_new_generation_were_discarded() {
    on_both_devices(&config(), pool, |engine| {
        let mut plans = [(); 4].map(|()| engine.new_plan(2, 2).unwrap());
        for (plan, (first, generation)) in plans.iter_mut().zip([(0, 1), (90, 1), (200, 2)]) {
            let mut owned = both_states(0, [first, first]);
            owned.generation = vec![generation; 2];
            engine.plan(&owned.batch(), plan).unwrap();
        }
        engine.discard(&mut plans[2]).unwrap();
        engine.discard(&mut plans[1]).unwrap();
        let mut owned = both_states(0, [0, 90]);
        owned.generation = vec![2, 2];
        let plan = &mut plans[3];
        engine.step(&owned.batch(), plan, 0, None).unwrap();
        engine.transfer(plan, 1, None).unwrap();
        assert_eq!(plan.total_misses(), 2 * K);
        (0..2).for_each(|layer| check(engine, plan, &owned, layer));
    });
}

#[test]
fn a_write_that_fails_while_discarding_starts_every_table_cold() {
    on_ascend(&two_indexers(), pool, |engine, session, _| {
        let mut plan = engine.new_plan(2, 2).unwrap();
        let owned = both_states(0, [0, 0]);
        engine.step(&owned.batch(), &mut plan, 0, None).unwrap();
        fail_next(session, "aclrtMemcpy", 2);
        expect_refusal(engine.discard(&mut plan), &["aclrtMemcpy"]);
        engine.step(&owned.batch(), &mut plan, 0, None).unwrap();
        assert_eq!(plan.total_misses(), 2 * K);
        check(engine, &plan, &owned, 0);
    });
}

#[test]
fn counters_agree_with_the_plans_and_the_tables() {
    on_both_devices(&two_indexers(), pool, |engine| {
        let mut random = SplitMix64::new(7);
        let mut plan = engine.new_plan(2, 2).unwrap();
        let (mut hits, mut misses, mut evictions, mut bytes) = (0, 0, 0, 0);
        for step in 0..40 {
            let indexer = step as usize % 2;
            let mut owned = both_states(indexer, [0, 1].map(|_| random.word() as i32 & 255));
            owned.generation = vec![1, 1 + step / 20];
            let held = [0, 1].map(|state| {
                let table = engine.read_table(indexer, state).unwrap();
                let cold = table[header::GENERATION as usize] != owned.generation[state];
                let ids = &table[header::WORDS..][..SLOTS];
                ids.iter().map(|&id| !cold && id >= 0).collect::<Vec<_>>()
            });
            if step % 3 == 0 {
                engine.plan(&owned.batch(), &mut plan).unwrap();
                engine.transfer(&mut plan, indexer, None).unwrap();
            } else {
                engine.step(&owned.batch(), &mut plan, indexer, None).unwrap();
            }
            for (request, held) in held.iter().enumerate() {
                let slots = plan.misses(request).slot;
                evictions += slots.iter().filter(|&&slot| held[slot as usize]).count() as u64;
            }
            let missed = plan.total_misses() as u64;
            (hits, misses) = (hits + 2 * K as u64 - missed, misses + missed);
            bytes += missed * ROW as u64;
        }
        let stats = engine.stats();
        assert_eq!((stats.plans, stats.transfers, stats.appends, stats.queued), (40, 40, 0, 0));
        assert_eq!((stats.hits, stats.misses, stats.evictions), (hits, misses, evictions));
        assert!(hits > 0 && evictions > 0);
        assert_eq!((stats.transferred_bytes, stats.appended_bytes), (bytes, 0));
        assert!(stats.plan_time > Duration::ZERO && stats.transfer_time > Duration::ZERO);
        assert_eq!(stats.step_time > Duration::ZERO, engine.device() != "cpu");
        assert_eq!(stats.append_time, Duration::ZERO);
    });
}

#[test]
fn counters_follow_forks_and_invalidations() {
    let params = Params { slots: 128, ..config().params };
    let mut engine = Engine::new(Config { params, ..config() }, pool()).unwrap();
    assert_eq!(engine.stats(), Stats::default());
    let mut plan = engine.new_plan(2, 2).unwrap();
    let step = |engine: &mut Engine, plan: &mut Plan, state: i32, generation: i32, first: i32| {
        let before = engine.stats();
        let owned = one_request(state, generation, (first..first + K as i32).collect());
        engine.plan(&owned.batch(), plan).unwrap();
        (0..2).for_each(|layer| engine.transfer(plan, layer, None).unwrap());
        let after = engine.stats();
        [after.misses - before.misses, after.evictions - before.evictions]
    };
    let k = K as u64;
    // 128 slots have room for five disjoint selections of 24 ids.
    for first in [0, 24, 48, 72, 96] {
        assert_eq!(step(&mut engine, &mut plan, 0, 1, first), [k, 0]);
    }
    engine.fork(0, 1, 1, 9).unwrap();
    let [missed, evicted] = step(&mut engine, &mut plan, 1, 9, 200);
    assert_eq!((missed, evicted), (k, k - 8), "eight slots were never used");
    assert_eq!(step(&mut engine, &mut plan, 1, 10, 200), [k, 0], "a new generation is empty");
    engine.fork(0, 2, 1, 11).unwrap();
    assert_eq!(step(&mut engine, &mut plan, 1, 11, 200), [k, 0], "nothing is of generation 2");
    engine.invalidate(0, 0..600).unwrap();
    let [missed, evicted] = step(&mut engine, &mut plan, 0, 1, 0);
    assert!(missed == k && evicted >= k - 8, "slots of invalidated ids count: {evicted}");
}

#[test]
fn loads_are_counted_as_plans_and_transfers() {
    on_both_devices(&config(), pool, |engine| {
        let mut plan = engine.new_plan(2, 1).unwrap();
        // A load of 30 ids plans twice, and transfers each plan to both layers.
        let ids: Vec<i32> = (0..30).collect();
        let (state, generation, seq_len) = (1, 4, 600);
        let load = Load { indexer: 0, state, generation, seq_len, ids: &ids, block_table: &[] };
        assert_eq!(engine.load(&load, &mut plan).unwrap(), 30);
        let stats = engine.stats();
        assert_eq!((stats.plans, stats.transfers, stats.misses), (2, 4, 30));
        assert_eq!(stats.transferred_bytes, 2 * 30 * ROW as u64);
    });
}

#[test]
fn of_a_stream_the_calls_are_counted_and_no_plan_is_dropped() {
    on_ascend(&config(), pool, |engine, _, context| {
        let [mut host, mut queued] = [(); 2].map(|()| engine.new_plan(2, 2).unwrap());
        let owned = both_states(0, [0, 0]);
        engine.plan(&owned.batch(), &mut host).unwrap();
        let before = engine.stats();
        plan_in_a_stream(engine, &mut queued, &owned, &[0], context, |_| ());
        let stats = engine.stats();
        assert_eq!((stats.queued, before.queued), (2, 0));
        let counted = |stats: &Stats| (stats.plans, stats.transfers, stats.misses, stats.plan_time);
        assert_eq!(counted(&stats), counted(&before));
        expect_refusal(engine.discard(&mut queued), &["planned in a stream"]);
        // The queued plan hits what this one missed.
        let parts = ["was emptied, or planned in a stream, after it"];
        expect_refusal(engine.discard(&mut host), &parts);
    });
}
