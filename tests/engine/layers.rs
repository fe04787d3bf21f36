//! Lists of layers with a mistake. That a transfer and an append of a list do what a call for each layer does is
//! checked by random workloads, which make both, and by random calls with lists of some layers.

use avsg::device::params::Params;
use avsg::engine::{Engine, Fresh, Stats};
use avsg::rows::{RowFormat, Segment};
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::fresh::FreshRows;
use avsg_testkit::{fixture, memory};

use crate::bad_batches::expect_error;

const K: usize = 24;
const LAYERS: usize = 3;

const SEGMENTS: [Segment; 2] = [Segment { bytes: 40, stride: 47 }, Segment { bytes: 9, stride: 9 }];

/// Returns all bytes of the device buffer's slots, including the gaps of the strides, all rows of the pool, and the
/// counters.
fn contents(engine: &Engine) -> (Vec<Vec<u8>>, Vec<u8>, Stats) {
    let slots = (0..LAYERS).map(|layer| memory::read_slots(engine, None, layer)).collect();
    (slots, memory::read_rows(engine.pool()), engine.stats())
}

/// Returns a batch of two active requests with fresh rows and a padded one between them, and the fresh rows
/// of each layer.
fn with_fresh(step: usize) -> (OwnedBatch, Vec<FreshRows>) {
    let mut owned = OwnedBatch::new(K, 1);
    let stable = 500 + 2 * step as i32;
    let select = |at: usize| {
        let mut ids: Vec<i32> = (0..K).map(|i| ((at * 11 + i * 17) % 500) as i32).collect();
        ids[3..5].copy_from_slice(&[stable, stable + 1]);
        ids
    };
    owned.push([1, 1, stable, stable + 2], &[select(step), select(step + 3)]);
    owned.push([-1, 0, 9, 9], &[select(step)]);
    owned.push([2, 1, -1, 500], &[select(step + 9)]);
    let mut rows = FreshRows::new(&RowFormat::strided(&SEGMENTS).unwrap(), owned.rows());
    (0..2).for_each(|at| rows.put(at, stable + at as i32, 0));
    (owned, vec![rows; LAYERS])
}

/// A list of layers, the segments of their fresh rows, and a part of the message.
type Mistake<'a> = (&'a [usize], &'a [&'a [u8]], &'a str);

#[test]
fn a_list_with_a_mistake_is_refused_and_nothing_is_copied() {
    let pool = fixture::pool(LAYERS, 600, RowFormat::strided(&SEGMENTS).unwrap());
    let mut engine = fixture::engine(Params::wide(K as u32, 2, 128), 3, 2, pool);
    let [mut plan, mut old] = [(); 2].map(|()| engine.new_plan(4, 3).unwrap());
    let all = [0, 1, 2];
    let ((owned, rows), (old_batch, old_rows)) = (with_fresh(0), with_fresh(1));
    engine.plan(&old_batch.batch(), &mut old).unwrap();
    let [segments, old_segments] = [&rows, &old_rows].map(|rows| FreshRows::segments_of(rows));
    let of_two = Fresh { segments: &old_segments[..4] };
    engine.transfer_layers(&mut old, &[0, 2], Some(&of_two)).unwrap();
    engine.plan(&owned.batch(), &mut plan).unwrap();
    let before = contents(&engine);
    let mut short = segments.clone();
    short[3] = &short[3][..9 * 3];
    let cases: [Mistake<'_>; 6] = [
        (&[1, 0, 2], &segments, "layer is 0, but it comes after layer 1 in the list; list each"),
        (&[0, 2, 2], &segments, "layer is 2, but it comes after layer 2 in the list"),
        (&[0, 2, 3], &segments, "layer is 3, but there are 3"),
        (&all, &segments[1..], "fresh segments is 5, but a row has 2, in each of 3 layers"),
        (&all, &short, "fresh bytes is 27, but layer 1: 4 rows of stride 9 need 36"),
        (&all, &segments, "layer 1 lacks the rows of plan 1 for state 1"),
    ];
    for (at, (list, segments, part)) in cases.into_iter().enumerate() {
        let fresh = Fresh { segments };
        expect_error(engine.transfer_layers(&mut plan, list, Some(&fresh)), &[part]);
        // An append has no order of plans.
        if at < 5 {
            expect_error(engine.append_layers(&owned.batch(), list, &fresh), &[part]);
        }
    }
    let refused = engine.transfer_layers(&mut plan, &[0, 2], None);
    expect_error(refused, &["fresh rows is none"]);
    assert!(contents(&engine) == before);
}
