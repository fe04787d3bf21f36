//! Lives for proptest, which shrinks one that goes wrong.

use proptest::prelude::*;

use super::{Request, Shape, Step, Workload};

fn request() -> impl Strategy<Value = Request> {
    let ids = prop::collection::vec(any::<u16>(), 0..80);
    (any::<u8>(), any::<u8>(), any::<u8>(), any::<u8>(), any::<u16>(), ids).prop_map(
        |(who, act, tokens, accept, pick, ids)| Request { who, act, tokens, accept, pick, ids },
    )
}

fn step() -> impl Strategy<Value = Step> {
    (any::<u8>(), any::<u8>(), prop::collection::vec(request(), 0..6))
        .prop_map(|(form, swap, requests)| Step { form, swap, requests })
}

/// Any geometry.
pub fn shape() -> impl Strategy<Value = Shape> {
    any::<[u8; 10]>().prop_map(Shape::from)
}

/// A geometry that device kernels take: at most two segments, misses spread evenly.
pub fn device_shape() -> impl Strategy<Value = Shape> {
    any::<[u8; 10]>().prop_map(|mut bytes| {
        bytes[6] = [0, 1, 3, 4][usize::from(bytes[6]) % 4];
        bytes[9] = 0;
        Shape::from(bytes)
    })
}

/// Any workload on such a geometry.
pub fn workload(shape: impl Strategy<Value = Shape>) -> impl Strategy<Value = Workload> {
    (shape, prop::collection::vec(step(), 1..14))
        .prop_map(|(shape, steps)| Workload { shape, steps })
}
