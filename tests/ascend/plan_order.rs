//! Plans that may be transferred in any order, on the CPU and on the simulated device. That a transfer is
//! refused which would overwrite newer rows, or which relies on slots that were never filled, is checked by random
//! calls.

use avsg::engine::Engine;
use avsg::plan::Plan;
use avsg_testkit::batch::OwnedBatch;

use crate::harness;
use crate::small::{self, K, check, ids};

const STATES: usize = 3;

fn on_both_devices(test: impl Fn(&mut Engine)) {
    harness::on_both_devices(&small::config(STATES), small::pool, test);
}

/// Returns a batch of one request with one token, of the ids from `first` on.
fn one_request(state: i32, generation: i32, first: usize) -> OwnedBatch {
    small::one_request(state, generation, ids(first))
}

fn planned(engine: &mut Engine, owned: &OwnedBatch) -> Plan {
    let mut plan = engine.new_plan(2, 2).unwrap();
    engine.plan(&owned.batch(), &mut plan).unwrap();
    plan
}

/// Transfers a layer of a plan and checks its rows.
fn transfer_exactly(engine: &mut Engine, owned: &OwnedBatch, plan: &mut Plan, layer: usize) {
    engine.transfer(plan, layer, None).unwrap();
    check(engine, plan, owned, layer);
}

#[test]
fn independent_plans_may_be_transferred_in_any_order() {
    on_both_devices(|engine| {
        // Plans of different states are independent.
        let (a, b) = (one_request(0, 1, 0), one_request(1, 1, 50));
        let (mut first, mut second) = (planned(engine, &a), planned(engine, &b));
        for layer in [1, 0] {
            transfer_exactly(engine, &b, &mut second, layer);
            transfer_exactly(engine, &a, &mut first, layer);
            check(engine, &second, &b, layer);
        }
        // Layer 1 is transferred two steps after layer 0.
        let mut plans: Vec<Plan> = (0..3).map(|_| engine.new_plan(2, 2).unwrap()).collect();
        let steps: Vec<OwnedBatch> = (0..12).map(|step| one_request(0, 1, step * 29)).collect();
        for (step, owned) in steps.iter().enumerate() {
            engine.plan(&owned.batch(), &mut plans[step % 3]).unwrap();
            transfer_exactly(engine, owned, &mut plans[step % 3], 0);
            if let Some(before) = step.checked_sub(2) {
                transfer_exactly(engine, &steps[before], &mut plans[before % 3], 1);
            }
        }
        for step in [10, 11] {
            transfer_exactly(engine, &steps[step], &mut plans[step % 3], 1);
        }
        // A plan without misses need not be transferred.
        let again = planned(engine, &steps[11]);
        assert_eq!(again.total_misses(), 0);
        let (padding, next) = (one_request(-1, 9, 0), one_request(0, 1, 7));
        let (mut empty_plan, mut last) = (planned(engine, &padding), planned(engine, &next));
        transfer_exactly(engine, &next, &mut last, 1);
        transfer_exactly(engine, &padding, &mut empty_plan, 1);
        transfer_exactly(engine, &next, &mut last, 0);
        // A cold start with padding alone has no misses either.
        let mut empty = OwnedBatch::new(K, 0);
        empty.push([0, 5, -1, 600], &[vec![-1; K]]);
        let mut cold_plan = planned(engine, &empty);
        transfer_exactly(engine, &empty, &mut cold_plan, 0);
        let warm = one_request(0, 5, 90);
        let mut plan = planned(engine, &warm);
        transfer_exactly(engine, &warm, &mut plan, 1);
        transfer_exactly(engine, &warm, &mut plan, 0);
    });
}
