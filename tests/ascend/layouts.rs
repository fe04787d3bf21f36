//! Layouts of pools in memory of the caller that are refused, and the registrations of pools.

use std::sync::Arc;

use avsg::ascend::RegisteredPool;
use avsg::pool::{Chunk, Part, PoolConfig};
use avsg::rows::{RowFormat, Strides};
use avsg_sim::Options;
use avsg_testkit::fixture;
use avsg_testkit::workload::Shape;

use crate::caller_buffers::SHAPE;
use crate::caller_memory::Layout;
use crate::harness::{expect_refusal, in_session};

#[test]
fn a_weak_registration_ends_with_the_last_registered_pool() {
    in_session(Options::default(), |_, context| {
        let pool = fixture::pool(1, 8, RowFormat::single(64).unwrap());
        let registered = RegisteredPool::new(context, pool).unwrap();
        let weak = Arc::downgrade(&registered);
        assert!(weak.upgrade().is_some());
        drop(registered);
        assert!(weak.upgrade().is_none());
    });
}

/// A change of a layout, and parts of the message.
type Mistake = (fn(&mut Layout), &'static [&'static str]);

/// The layout has blocks of 16 rows: those of layer 0, which take 1024 and 16 bytes, then those of layer 1. The region has 3
/// bytes and 36 blocks of 2080.
const MISTAKES: &[Mistake] = &[
    (|l| l.parts.truncate(1), &["rows of a part is 0"]),
    (|l| l.parts[0].layers.end = 1, &["layer is 1, segment 0, row 0", "no part holds it"]),
    (|l| l.parts.push(l.parts[0].clone()), &["layer is 0, segment 0, row 0", "two parts"]),
    (|l| l.parts[0].rows.end = 577, &["rows of a part is 0..577", "the pool has 576"]),
    (|l| l.parts[0].rows.end = 0, &["rows of a part is 0..0"]),
    (|l| l.parts[1].segment = 2, &["segment of a part is 2"]),
    (|l| l.parts[1].region = 1, &["region of a part is 1"]),
    (|l| l.parts[1].offset = usize::MAX, &["end of a part", "region 0 has 74883 bytes"]),
    (|l| l.parts[1].layer_stride = !0, &["end of a part", "beyond the address space"]),
    (|l| shorten(l, 72_883), &["end of a part is", "region 0 has 72883 bytes"]),
    (|l| set_strides(l, |s| s.block_rows = 12), &["block rows is 12", "power of two"]),
    (|l| l.strides[1].block_rows = 8, &["block rows is 8", "another segment has 16"]),
    (|l| l.strides[0].row = 63, &["row stride is 63", "holds 64 bytes"]),
    (|l| l.strides[0].block = 63, &["block stride is 63"]),
    // Rows that overlap: layers, segments and blocks.
    (|l| l.parts[0].layer_stride = 1039, &["rows of layer 1, segment 0", "layer 0, segment 1"]),
    (|l| l.parts[0].layer_stride = 63, &["layer stride is 63", "holds 64 bytes"]),
    (|l| l.parts[1].offset -= 2, &["rows of layer 0, segment 1", "layer 0, segment 0 from"]),
    (
        |l| set_strides(l, |s| s.block = 2079),
        &["rows of layer 0, segment 0", "have the same bytes"],
    ),
    (|l| l.strides[0].block = 1023, &["block stride is 1023", "takes 1024 bytes"]),
    // More parts than rows, more regions than parts, and chunks that no part can hold.
    (|l| l.parts = vec![l.parts[0].clone(); 2305], &["parts is 2305", "there are 2304 rows"]),
    (|l| l.parts.truncate(0), &["regions is 1", "there are 0 parts"]),
    (
        |l| {
            let halves = [0..288, 288..576].map(|rows| Part { rows, ..l.parts[0].clone() });
            l.parts.splice(0..1, halves);
        },
        &["rows of a part is", "hold 512 rows each", "power of two"],
    ),
];

fn set_strides(layout: &mut Layout, change: fn(&mut Strides)) {
    layout.strides.iter_mut().for_each(change);
}

fn shorten(layout: &mut Layout, len: usize) {
    let region = &mut layout.regions[0];
    region.memory = Chunk::new(region.memory.ptr(), len).unwrap();
}

#[test]
fn layouts_that_do_not_hold_every_row_once_are_refused() {
    let config = Shape::from(SHAPE).pool();
    for (change, parts) in MISTAKES {
        let mut layout = Layout::new(&config, 2, None);
        change(&mut layout);
        expect_refusal(layout.pool(&config), parts);
    }
    let mut layout = Layout::new(&config, 0, None);
    for part in &mut layout.parts {
        (part.layers, part.rows) = (0..1, 0..1);
    }
    for (rows, text) in [(1 << 20, "layer is 0, segment 0, row 1,"), (1 << 63, "address space")] {
        let huge = PoolConfig { layers: 1 << 32, rows, ..config.clone() };
        expect_refusal(layout.pool(&huge), &[text]);
    }
}
