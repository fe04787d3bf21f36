//! Layers that share an indexer use one plan. A transfer writes the slots of its own layers only, and the
//! bytes of its rows only. A list of layers does what a call for each of them does.

use avsg::device::params::Params;
use avsg::engine::{Engine, Fresh};
use avsg::rows::{RowFormat, Segment};
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::fresh::FreshRows;
use avsg_testkit::{fixture, memory};

use crate::bad_batches::expect_error;

const K: usize = 24;

const SEGMENTS: [Segment; 2] = [Segment { bytes: 40, stride: 47 }, Segment { bytes: 9, stride: 9 }];

fn engine(layers: usize, cores: usize) -> Engine {
    let pool = fixture::pool(layers, 600, RowFormat::strided(&SEGMENTS).unwrap());
    fixture::engine(Params::wide(K as u32, 2, 128), 3, cores, pool)
}

/// Returns the K distinct ids of a step, all below 500.
fn ids(step: usize) -> Vec<i32> {
    (0..K).map(|i| ((step * 11 + i * 17) % 500) as i32).collect()
}

/// Returns all bytes of the device buffer's slots, including the gaps of the strides.
fn slot_bytes(engine: &Engine) -> Vec<u8> {
    (0..engine.buffer().config().layers).flat_map(|l| memory::read_slots(engine, None, l)).collect()
}

/// Returns a batch of two active requests with fresh rows and a padded one between them, and the fresh rows
/// of some layers.
fn with_fresh(step: usize, layers: &[usize]) -> (OwnedBatch, Vec<FreshRows>) {
    let mut owned = OwnedBatch::new(K, 1);
    let stable = 500 + 2 * step as i32;
    let select = |at: usize| {
        let mut ids = ids(at);
        ids[3..5].copy_from_slice(&[stable, stable + 1]);
        ids
    };
    owned.push([1, 1, stable, stable + 2], &[select(step), select(step + 3)]);
    owned.push([-1, 0, 9, 9], &[ids(step)]);
    owned.push([2, 1, -1, 500], &[ids(step + 9)]);
    let format = RowFormat::strided(&SEGMENTS).unwrap();
    let rows = |&layer: &usize| {
        let mut rows = FreshRows::new(&format, owned.rows());
        (0..2).for_each(|at| rows.put(at, stable + at as i32, layer as u32));
        rows
    };
    let rows = layers.iter().map(rows).collect();
    (owned, rows)
}

#[test]
fn a_list_of_layers_is_a_transfer_and_an_append_of_each() {
    for cores in [1, 3, 7] {
        let (mut a, mut b) = (engine(5, cores), engine(5, 2));
        let [mut plan_a, mut plan_b] = [&a, &b].map(|engine| engine.new_plan(4, 3).unwrap());
        for step in 0..12 {
            let lists: [&[usize]; 3] = [&[0, 2, 4], &[], &[1, 3]];
            let (owned, _) = with_fresh(step, &[]);
            a.plan(&owned.batch(), &mut plan_a).unwrap();
            b.plan(&owned.batch(), &mut plan_b).unwrap();
            for list in lists {
                let (_, rows) = with_fresh(step, list);
                let segments = FreshRows::segments_of(&rows);
                let fresh = Fresh { segments: &segments };
                a.transfer_layers(&mut plan_a, list, Some(&fresh)).unwrap();
                a.append_layers(&owned.batch(), list, &fresh).unwrap();
                for (&layer, rows) in list.iter().zip(&rows) {
                    let segments = rows.segments();
                    let fresh = Fresh { segments: &segments };
                    b.transfer(&mut plan_b, layer, Some(&fresh)).unwrap();
                    b.append(&owned.batch(), layer, &fresh).unwrap();
                }
            }
            assert!(plan_a.total_misses() > 0 && slot_bytes(&a) == slot_bytes(&b), "step {step}");
            assert!(memory::read_rows(a.pool()) == memory::read_rows(b.pool()), "step {step}");
        }
        let counts = |engine: &Engine| {
            let stats = engine.stats();
            (stats.transfers, stats.appends, stats.transferred_bytes, stats.appended_bytes)
        };
        assert_eq!(counts(&a), counts(&b));
        assert_eq!((counts(&a).0, counts(&a).3), (60, 60 * 2 * 49));
    }
}

/// A list of layers, the segments of their fresh rows, and a part of the message.
type Mistake<'a> = (&'a [usize], &'a [&'a [u8]], &'a str);

#[test]
fn a_list_with_a_mistake_is_refused_and_nothing_is_copied() {
    let mut engine = engine(3, 2);
    let (mut plan, mut old) = (engine.new_plan(4, 3).unwrap(), engine.new_plan(4, 3).unwrap());
    let all = [0, 1, 2];
    let (owned, rows) = with_fresh(0, &all);
    engine.plan(&with_fresh(1, &[]).0.batch(), &mut old).unwrap();
    let (old_rows, segments) = (with_fresh(1, &all).1, FreshRows::segments_of(&rows));
    let old_segments = FreshRows::segments_of(&old_rows);
    let of_two = Fresh { segments: &old_segments[..4] };
    engine.transfer_layers(&mut old, &[0, 2], Some(&of_two)).unwrap();
    engine.plan(&owned.batch(), &mut plan).unwrap();
    let before = (slot_bytes(&engine), memory::read_rows(engine.pool()), engine.stats());
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
    let after = (slot_bytes(&engine), memory::read_rows(engine.pool()), engine.stats());
    assert!(before.0 == after.0 && before.1 == after.1 && before.2 == after.2);
}
