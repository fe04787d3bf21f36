//! Strategies that generate workloads with proptest, which shrinks a failing one.

use proptest::prelude::*;

use super::{Request, Shape, Step, Workload};

fn request() -> impl Strategy<Value = Request> {
    let ids = prop::collection::vec(any::<u16>(), 0..80);
    (any::<u8>(), any::<u8>(), any::<u8>(), any::<u8>(), any::<u16>(), ids).prop_map(
        |(state, action, tokens, accepted, choice, ids)| Request {
            state,
            action,
            tokens,
            accepted,
            choice,
            ids,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    (any::<u8>(), any::<u8>(), prop::collection::vec(request(), 0..6))
        .prop_map(|(form, swap, requests)| Step { form, swap, requests })
}

/// Generates any geometry.
pub fn shape() -> impl Strategy<Value = Shape> {
    any::<[u8; 10]>().prop_map(Shape::from)
}

/// Generates a geometry that device kernels support: at most two segments, and the balanced
/// strategy.
pub fn device_shape() -> impl Strategy<Value = Shape> {
    any::<[u8; 10]>().prop_map(|mut bytes| {
        bytes[6] = [0, 1, 3, 4][usize::from(bytes[6]) % 4];
        bytes[9] = 0;
        Shape::from(bytes)
    })
}

/// Generates any workload of 1 to 13 steps on a generated geometry.
pub fn workload(shape: impl Strategy<Value = Shape>) -> impl Strategy<Value = Workload> {
    (shape, prop::collection::vec(step(), 1..14))
        .prop_map(|(shape, steps)| Workload { shape, steps })
}
