//! Invalidation of some ids of a live request, on the CPU and on the simulated device: after their
//! host rows were rewritten, exactly these ids are missed and copied anew.

use avsg::ascend::acl::Stream;
use avsg::device::params::{Lifetime, Params, Table};
use avsg::engine::{Config, Engine, Indexers};
use avsg::plan::Plan;
use avsg_testkit::content::fill_row;
use avsg_testkit::exact;

use crate::harness::{expect_refusal, fail_next, on_ascend, on_both_devices};
use crate::small::{self, K, ROW, pool};

/// Version of a row that was rewritten.
const REWRITTEN: u32 = 70;
/// No miss of either state.
const NONE: [Vec<i32>; 2] = [Vec::new(), Vec::new()];

/// Returns a configuration of two layers with an indexer each.
fn config() -> Config {
    Config { indexers: Indexers::per_layer(2).unwrap(), ..small::config(2) }
}

/// Steps both layers, and returns the ids that each state missed in the second one.
fn step(engine: &mut Engine, plan: &mut Plan, version: impl Fn(i32) -> u32) -> [Vec<i32>; 2] {
    for layer in 0..2 {
        let owned = small::both_states(layer, [10; 2]);
        engine.step(&owned.batch(), plan, layer, None).unwrap();
        exact::check_step(engine, plan, &owned, layer, |_, id| (id, layer as u32 + version(id)));
    }
    [0, 1].map(|request| plan.misses(request).id.to_vec())
}

fn rewrite(engine: &Engine, ids: impl Iterator<Item = i32>) {
    let mut row = [0; ROW];
    for (id, layer) in ids.flat_map(|id| [(id, 0), (id, 1)]) {
        fill_row(id, layer + REWRITTEN, &mut row);
        engine.pool().write_row(layer as usize, id as usize, &row).unwrap();
    }
}

#[test]
fn a_rewritten_row_is_copied_again_and_no_other() {
    on_both_devices(&config(), pool, |engine| {
        let mut plan = engine.new_plan(4, 2).unwrap();
        assert_eq!(step(engine, &mut plan, |_| 0).map(|misses| misses.len()), [K, K]);
        assert_eq!(step(engine, &mut plan, |_| 0), NONE);
        // One id of each state, in the tables of both indexers.
        rewrite(engine, 19..20);
        assert_eq!(engine.invalidate(0, 19..20).unwrap(), 2);
        assert_eq!(engine.invalidate(1, 19..20).unwrap(), 2);
        let once = |id| if id == 19 { REWRITTEN } else { 0 };
        assert_eq!(step(engine, &mut plan, once), [vec![19], vec![19]]);
        // An id without a slot empties none.
        assert_eq!(engine.invalidate(0, 20..21).unwrap(), 0);
        assert_eq!(engine.invalidate(0, 19..20).unwrap(), 2);
        assert_eq!(step(engine, &mut plan, once), [vec![19], vec![]]);
        // A range of ids, of which every third one was selected.
        rewrite(engine, 22..40);
        for state in [0, 1] {
            assert_eq!(engine.invalidate(state, 20..40).unwrap(), 2 * 6);
        }
        let expected = vec![22, 25, 28, 31, 34, 37];
        let both = |id| if (19..40).contains(&id) { REWRITTEN } else { 0 };
        assert_eq!(step(engine, &mut plan, both), [expected.clone(), expected]);
        assert_eq!(step(engine, &mut plan, both), NONE);
        // All ids of a state.
        assert_eq!(engine.invalidate(1, 0..1 << 24).unwrap(), 2 * K);
        assert_eq!(step(engine, &mut plan, both).map(|misses| misses.len()), [0, K]);
    });
}

/// A rewritten row that is not invalidated shows it.
#[test]
fn a_hit_keeps_the_bytes_of_its_slot() {
    on_both_devices(&config(), pool, |engine| {
        let mut plan = engine.new_plan(4, 2).unwrap();
        step(engine, &mut plan, |_| 0);
        rewrite(engine, 0..600);
        assert_eq!(step(engine, &mut plan, |_| 0), NONE);
    });
}

#[test]
fn both_tables_and_both_lifetimes_can_be_invalidated() {
    let paper = Params::paper(K as u32, 2, 128);
    assert!(matches!(paper.table, Table::Paper { .. }));
    let [constant, learned] = [Lifetime::Constant(127), Lifetime::Learned]
        .map(|lifetime| Params { lifetime, ..config().params });
    for params in [paper, constant, learned] {
        let mut engine = Engine::new(Config { params, ..config() }, pool()).unwrap();
        let mut plan = engine.new_plan(4, 2).unwrap();
        for _ in 0..3 {
            step(&mut engine, &mut plan, |_| 0);
        }
        rewrite(&engine, 10..40);
        assert_eq!(engine.invalidate(0, 10..40).unwrap(), 20);
        assert_eq!(engine.invalidate(1, 10..40).unwrap(), 20);
        let version = |id| if id < 40 { REWRITTEN } else { 0 };
        assert!(step(&mut engine, &mut plan, version).iter().all(|misses| misses.len() >= 10));
    }
}

#[test]
fn states_and_ids_out_of_range_are_refused() {
    on_both_devices(&config(), pool, |engine| {
        let mut plan = engine.new_plan(4, 2).unwrap();
        step(engine, &mut plan, |_| 0);
        #[expect(clippy::reversed_empty_ranges, reason = "these ranges must be refused")]
        let cases = [
            (2, 0..1, "state is 2"),
            (0, -1..1, "-1..1"),
            (0, 3..3, "3..3"),
            (0, 5..3, "5..3"),
            (1, 0..(1 << 24) + 1, "0..16777217"),
        ];
        for (state, ids, part) in cases {
            expect_refusal(engine.invalidate(state, ids), &[part]);
        }
        assert_eq!(step(engine, &mut plan, |_| 0), NONE);
    });
}

/// The wait reports work of a stream that failed. A wait that is refused in a capture reports none.
#[test]
fn a_wait_that_fails_starts_every_table_cold() {
    on_ascend(&config(), pool, |engine, session, context| {
        let mut plan = engine.new_plan(4, 2).unwrap();
        step(engine, &mut plan, |_| 0);
        let stream = Stream::new(context).unwrap();
        let refused = stream.capture(|| engine.invalidate(0, 19..20).map(drop));
        expect_refusal(refused, &["aclrtSynchronizeDevice"]);
        assert_eq!(step(engine, &mut plan, |_| 0), NONE);
        let wait = "aclrtSynchronizeDeviceWithTimeout";
        fail_next(session, wait, 1);
        expect_refusal(engine.invalidate(0, 19..20), &[wait]);
        assert_eq!(step(engine, &mut plan, |_| 0).map(|misses| misses.len()), [K, K]);
    });
}

#[test]
fn a_write_that_fails_starts_every_table_cold() {
    on_ascend(&config(), pool, |engine, session, _| {
        let mut plan = engine.new_plan(4, 2).unwrap();
        step(engine, &mut plan, |_| 0);
        // The first copy reads the table, and the second one writes it.
        fail_next(session, "aclrtMemcpy", 2);
        expect_refusal(engine.invalidate(0, 19..20), &["aclrtMemcpy"]);
        assert_eq!(engine.invalidate(0, 19..20).unwrap(), 0, "no table lists an id");
        assert_eq!(step(engine, &mut plan, |_| 0).map(|misses| misses.len()), [K, K]);
    });
}
