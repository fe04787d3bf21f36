//! Strategies that generate workloads with proptest, which shrinks a failing one.

use avsg_testkit::workload::{Request, Shape, Step, Workload};
use proptest::prelude::*;

/// Returns the configuration of a test of so many cases, which keeps no file of the failing ones.
pub fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

fn request() -> impl Strategy<Value = Request> {
    let ids = prop::collection::vec(any::<u16>(), 0..80);
    (any::<[u8; 4]>(), any::<u16>(), ids).prop_map(|(bytes, choice, ids)| {
        let [state, action, tokens, accepted] = bytes;
        Request { state, action, tokens, accepted, choice, ids }
    })
}

fn step() -> impl Strategy<Value = Step> {
    (any::<u8>(), any::<u8>(), prop::collection::vec(request(), 0..6))
        .prop_map(|(form, swap, requests)| Step { form, swap, requests })
}

/// Generates any workload of 1 to 13 steps on a generated geometry.
pub fn workload(shape: impl Strategy<Value = Shape>) -> impl Strategy<Value = Workload> {
    (shape, prop::collection::vec(step(), 1..14))
        .prop_map(|(shape, steps)| Workload { shape, steps })
}
