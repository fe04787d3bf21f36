//! Copies of states, on the CPU and on the simulated device, that are refused or fail, and
//! other calls that change tables and fail. That a copy holds what its original does, and that exactly the ids of an
//! invalidation are missed and copied anew, is checked by random calls. Questions for the ids that a state holds,
//! whose answers are checked before every step of a random workload and of random calls.

use avsg::Result;
use avsg::ascend::acl::Stream;
use avsg::engine::Engine;
use avsg::plan::Plan;

use crate::harness::{expect_refusal, fail_next, on_ascend, on_both_devices, plan_in_a_stream};
use crate::restore::{config, empty_pool, ids, prefill, select, select_of, selection};
use crate::small::K;

#[test]
fn forks_that_cannot_be_exact_are_refused() {
    on_both_devices(&config(), empty_pool, |engine| {
        prefill(engine);
        let mut plan = engine.new_plan(2, 1).unwrap();
        let cases: [(usize, &[i32], &[i32], &str); 8] = [
            (3, &[0], &[1], "state is 3"),
            (0, &[3], &[1], "state is 3, but there are 3"),
            (0, &[1, 2], &[1], "generations is 1, but 2 states are named"),
            (0, &[1, 1], &[1, 2], "state is 1, but the list names it twice"),
            (0, &[2, 0], &[1, 1], "state is 0, but a state is copied to another one"),
            (0, &[2, 3], &[1, 1], "state is 3, but there are 3"),
            (0, &[-1], &[1], "state is -1, but there are 3"),
            (0, &[i32::MIN], &[1], "there are 3"),
        ];
        for (from, to, generations, part) in cases {
            expect_refusal(engine.fork_to(from, 1, to, generations), &[part]);
        }
        let owned = selection(0, 1, [0, 1], &ids(3));
        engine.plan(&owned.batch(), &mut plan).unwrap();
        engine.transfer(&mut plan, 1, None).unwrap();
        expect_refusal(engine.fork(0, 1, 2, 1), &["layer 2 lacks the rows of plan 1 for state 0"]);
        // In a generation that has no plan nothing is due.
        engine.fork(0, 2, 2, 3).unwrap();
        engine.transfer(&mut plan, 2, None).unwrap();
        engine.fork(0, 1, 2, 1).unwrap();
        engine.fork_to(0, 1, &[], &[]).unwrap();
        assert_eq!(select(engine, &mut plan, 1, [2, 1], &ids(3)), Vec::<i32>::new());
    });
}

/// The host does not see what a stream plans, but the tables have their generations. Both calls wait for the work.
#[test]
fn a_question_and_a_fork_after_a_plan_in_a_stream_know_the_generation() {
    on_ascend(&config(), empty_pool, |engine, _, context| {
        prefill(engine);
        let mut plan = engine.new_plan(2, 1).unwrap();
        assert_eq!(select(engine, &mut plan, 1, [0, 1], &ids(0)).len(), K);
        let mut queued = engine.new_plan(2, 1).unwrap();
        let owned = selection(1, 1, [0, 2], &ids(9));
        let ask = |engine: &mut Engine| {
            let mut bits = [u64::MAX; 3];
            assert_eq!(engine.held(1, 0, 2, 0..100, &mut bits).unwrap(), K);
            let set = |id: &i32| bits[*id as usize / 64] >> (id % 64) & 1 == 1;
            assert!((0..192).filter(set).all(|id| ids(9).contains(&id)), "{bits:x?}");
        };
        plan_in_a_stream(engine, &mut queued, &owned, &[1, 2], context, ask);
        let stream = Stream::new(context).unwrap();
        // SAFETY: the call is refused.
        let other = unsafe { engine.enqueue_transfer(&queued, &[0], None, stream.raw()) };
        expect_refusal(other, &["the plan is of indexer 1"]);
        let fork = |engine: &mut Engine| engine.fork(0, 2, 2, 5).unwrap();
        plan_in_a_stream(engine, &mut queued, &owned, &[1, 2], context, fork);
        assert_eq!(select_of(engine, &mut plan, 1, 1, [2, 5], &ids(9)), Vec::<i32>::new());
        engine.fork(0, 1, 2, 6).unwrap();
        assert_eq!(select_of(engine, &mut plan, 0, 1, [2, 6], &ids(0)), ids(0));
    });
}

#[test]
fn a_question_and_an_invalidation_of_no_ids_are_refused() {
    on_both_devices(&config(), empty_pool, |engine| {
        let mut bits = [7; 2];
        for (indexer, state, range, part) in [
            (2, 0, 0..1, "indexer is 2"),
            (0, 3, 0..1, "state is 3"),
            (0, 0, -1..5, "ids is -1..5"),
            (0, 0, 5..5, "ids is 5..5"),
            (0, 0, 5..(1 << 24) + 1, "ids is 5..16777217"),
            (0, 0, 5..134, "words of bits is 2, but 129 ids need 3"),
        ] {
            expect_refusal(engine.held(indexer, state, 1, range, &mut bits), &[part]);
            assert_eq!(bits, [7; 2]);
        }
        #[expect(clippy::reversed_empty_ranges, reason = "these ranges must be refused")]
        for (ids, part) in [(-1..1, "-1..1"), (3..3, "3..3"), (5..3, "5..3")] {
            expect_refusal(engine.invalidate(0, ids), &[part]);
        }
    });
}

/// Each copy of the runtime that a fork makes fails in turn.
#[test]
fn a_fork_that_fails_on_the_way_starts_every_table_cold() {
    on_ascend(&config(), empty_pool, |engine, session, _| {
        prefill(engine);
        let [mut plan, mut old] = [(); 2].map(|()| engine.new_plan(2, 1).unwrap());
        let mut failed = 0;
        for generation in 1.. {
            for indexer in 0..2 {
                select(engine, &mut plan, indexer, [0, generation], &ids(0));
            }
            // State 2 has a plan that layer 0 lacks.
            engine.plan(&selection(0, 0, [2, generation], &ids(77)).batch(), &mut old).unwrap();
            fail_next(session, "aclrtMemcpy", generation as usize);
            let Err(error) = engine.fork(0, generation, 2, generation + 1000) else { break };
            assert!(error.to_string().contains("aclrtMemcpy"), "{error}");
            expect_refusal(engine.transfer(&mut old, 0, None), &["plan is stale"]);
            for indexer in 0..2 {
                let missed = select(engine, &mut plan, indexer, [2, generation + 1000], &ids(0));
                assert_eq!(missed, ids(0));
            }
            failed += 1;
        }
        // For each table two reads and a write, and a copy for each layer and segment.
        assert_eq!(failed, 2 * 3 + 3 * 2);
    });
}

type Call = fn(&mut Engine, &mut Plan) -> Result<()>;

/// Calls that change tables, and the call of the runtime in each that fails. A wait reports work of a stream that
/// failed. The first copy of an invalidation reads the table, and the second one writes it.
const FAILING: [(Call, &str, usize); 3] = [
    (|engine, _| engine.invalidate(0, 18..19).map(drop), "aclrtSynchronizeDeviceWithTimeout", 1),
    (|engine, _| engine.invalidate(0, 18..19).map(drop), "aclrtMemcpy", 2),
    (|engine, plan| engine.discard(plan), "aclrtMemcpy", 2),
];

#[test]
fn a_call_that_fails_on_the_way_starts_every_table_cold() {
    on_ascend(&config(), empty_pool, |engine, session, context| {
        prefill(engine);
        let mut plan = engine.new_plan(2, 1).unwrap();
        let step = |engine: &mut Engine, plan: &mut Plan| {
            [0, 1].map(|indexer| select(engine, plan, indexer, [0, 1], &ids(0)).len())
        };
        step(engine, &mut plan);
        // A wait that is refused in a capture reports no failure.
        let stream = Stream::new(context).unwrap();
        let refused = stream.capture(|| engine.invalidate(0, 18..19).map(drop));
        expect_refusal(refused, &["aclrtSynchronizeDevice"]);
        assert_eq!(step(engine, &mut plan), [0, 0]);
        for (call, fails, nth) in FAILING {
            fail_next(session, fails, nth);
            expect_refusal(call(engine, &mut plan), &[fails]);
            assert_eq!(engine.invalidate(0, 18..19).unwrap(), 0, "no table lists an id");
            assert_eq!(step(engine, &mut plan), [K, K]);
        }
    });
}
