//! Invalidation of some ids of a live request, with every kind of table, and calls that change tables on a device that fails. That
//! exactly these ids are missed and copied anew is checked by random calls.

use avsg::Result;
use avsg::ascend::acl::Stream;
use avsg::device::params::{Lifetime, Params, Table};
use avsg::engine::{Config, Engine, Indexers};
use avsg::plan::Plan;
use avsg_testkit::content::fill_row;
use avsg_testkit::exact;

use crate::harness::{expect_refusal, fail_next, on_ascend};
use crate::small::{self, K, ROW, pool};

/// Version of a row that was rewritten.
const REWRITTEN: u32 = 70;

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
        assert_eq!([0, 1].map(|state| engine.invalidate(state, 10..40).unwrap()), [20, 20]);
        let version = |id| if id < 40 { REWRITTEN } else { 0 };
        assert!(step(&mut engine, &mut plan, version).iter().all(|misses| misses.len() >= 10));
        #[expect(clippy::reversed_empty_ranges, reason = "these ranges must be refused")]
        for (ids, part) in [(-1..1, "-1..1"), (3..3, "3..3"), (5..3, "5..3")] {
            expect_refusal(engine.invalidate(0, ids), &[part]);
        }
    }
}

type Call = fn(&mut Engine, &mut Plan) -> Result<()>;

/// Calls that change tables, and the call of the runtime in each that fails. A wait reports work of a stream that
/// failed. The first copy of an invalidation reads the table, and the second one writes it.
const FAILING: [(Call, &str, usize); 3] = [
    (|engine, _| engine.invalidate(0, 19..20).map(drop), "aclrtSynchronizeDeviceWithTimeout", 1),
    (|engine, _| engine.invalidate(0, 19..20).map(drop), "aclrtMemcpy", 2),
    (|engine, plan| engine.discard(plan), "aclrtMemcpy", 2),
];

#[test]
fn a_call_that_fails_on_the_way_starts_every_table_cold() {
    on_ascend(&config(), pool, |engine, session, context| {
        let mut plan = engine.new_plan(4, 2).unwrap();
        step(engine, &mut plan, |_| 0);
        // A wait that is refused in a capture reports no failure.
        let stream = Stream::new(context).unwrap();
        let refused = stream.capture(|| engine.invalidate(0, 19..20).map(drop));
        expect_refusal(refused, &["aclrtSynchronizeDevice"]);
        assert_eq!(step(engine, &mut plan, |_| 0), [vec![], vec![]]);
        for (call, fails, nth) in FAILING {
            fail_next(session, fails, nth);
            expect_refusal(call(engine, &mut plan), &[fails]);
            assert_eq!(engine.invalidate(0, 19..20).unwrap(), 0, "no table lists an id");
            assert_eq!(step(engine, &mut plan, |_| 0).map(|misses| misses.len()), [K, K]);
        }
    });
}
