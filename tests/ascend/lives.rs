//! Lives that are long enough to fill tables, on geometries that differ in everything.

use avsg_testkit::life::{Life, Request, Shape, Step};

/// Table, lifetime, K, tokens, slots, page, format, states, cores, strategy: see [`Shape`].
pub const SHAPES: [[u8; 10]; 3] = [
    [0, 0, 29, 3, 1, 0, 0, 2, 0, 0],
    [1, 1, 29, 3, 2, 2, 1, 6, 3, 0],
    [3, 3, 17, 1, 1, 3, 4, 3, 6, 0],
];

/// A life with everything in it, long enough to fill tables.
pub fn long_life(bytes: [u8; 10], steps: usize) -> Life {
    let ids = |seed: usize| (0..60).map(|i| ((i * seed * 2_741 + i * i) % 65_536) as u16).collect();
    let requests = |step: usize| {
        let one = |r: usize| Request {
            who: r as u8,
            act: [6, 6, 6, 5, 2, 1, 6, 0][(step * 3 + r * 5) % 8] * u8::from(step > 0),
            tokens: (4 - r) as u8,
            accept: (step + r) as u8,
            pick: (step * 3 + r) as u16,
            ids: ids(step * 5 + r + 1),
        };
        (0..4).map(one).collect()
    };
    let step = |s: usize| Step { form: s as u8, swap: s as u8, requests: requests(s) };
    Life { shape: Shape::from(bytes), steps: (0..steps).map(step).collect() }
}
