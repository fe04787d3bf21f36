//! The ids that a state holds, on the CPU and on the simulated device. That a set bit is a hit of the next plan,
//! and a clear one a miss, is checked before every step of a random workload and of random calls.

use std::ops::Range;

use avsg::engine::Engine;

use crate::harness::{expect_refusal, on_ascend, on_both_devices, plan_in_a_stream};
use crate::restore::{config, empty_pool, ids, prefill, selection};

/// Returns the ids of a range that state `at[0]` holds in generation `at[1]`.
fn held(engine: &mut Engine, indexer: usize, at: [i32; 2], range: Range<i32>) -> Vec<i32> {
    let mut bits = vec![u64::MAX; range.len().div_ceil(64) + 1];
    let count = engine.held(indexer, at[0] as usize, at[1], range.clone(), &mut bits).unwrap();
    let set = |at: usize| bits[at / 64] >> (at % 64) & 1 == 1;
    let found: Vec<i32> = range.clone().filter(|id| set((id - range.start) as usize)).collect();
    assert_eq!(found.len(), count);
    assert!((range.len()..64 * bits.len()).all(|at| !set(at)), "bits behind the range");
    found
}

fn sorted(mut ids: Vec<i32>) -> Vec<i32> {
    ids.sort_unstable();
    ids
}

#[test]
fn a_question_that_has_no_answer_is_refused() {
    on_both_devices(&config(), empty_pool, |engine| {
        let mut bits = [7; 2];
        let mut ask = |indexer, state, range: Range<i32>, words: usize, part: &str| {
            expect_refusal(engine.held(indexer, state, 1, range, &mut bits[..words]), &[part]);
            assert_eq!(bits, [7; 2]);
        };
        ask(2, 0, 0..1, 2, "indexer is 2");
        ask(0, 3, 0..1, 2, "state is 3");
        ask(0, 0, -1..5, 2, "ids is -1..5");
        ask(0, 0, 5..5, 2, "ids is 5..5");
        ask(0, 0, 5..(1 << 24) + 1, 2, "ids is 5..16777217");
        ask(0, 0, 5..134, 2, "words of bits is 2, but 129 ids need 3");
    });
}

/// The call waits for the stream that plans the state.
#[test]
fn what_a_stream_planned_is_held() {
    on_ascend(&config(), empty_pool, |engine, _, context| {
        prefill(engine);
        let mut queued = engine.new_plan(2, 1).unwrap();
        let owned = selection(1, 1, [0, 2], &ids(9));
        let ask = |engine: &mut Engine| {
            assert_eq!(held(engine, 1, [0, 2], 0..100), sorted(ids(9)));
        };
        plan_in_a_stream(engine, &mut queued, &owned, &[1, 2], context, ask);
    });
}
