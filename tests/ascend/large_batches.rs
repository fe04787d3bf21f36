//! Batches with more words than a kernel counts, and what a batch that is refused changes.

use std::ptr;

use avsg::ascend::acl::Stream;
use avsg::device::params::Params;
use avsg::engine::{Batch, Config, DeviceBatch};
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::device_arrays::DeviceArrays;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

use crate::harness::{expect_refusal, fail_next, on_ascend};
use crate::small::{self, K, ROW, ids};

/// Requests, and entries of each in the block table: 2^31 words together.
const REQUESTS: usize = 1 << 7;
const ENTRIES: usize = 1 << 24;

/// Returns a block table of zeros. No page of it is ever written, so that it takes no memory.
fn block_table() -> &'static [i32] {
    let (bytes, flags) = (4 * REQUESTS * ENTRIES, MapFlags::PRIVATE | MapFlags::NORESERVE);
    // SAFETY: a new mapping at an address that the system chooses replaces no other. It has that many words of
    // zero, which nothing writes, and is never unmapped.
    unsafe {
        let table = mmap_anonymous(ptr::null_mut(), bytes, ProtFlags::READ, flags).unwrap();
        std::slice::from_raw_parts(table.cast(), REQUESTS * ENTRIES)
    }
}

/// A refused batch costs neither the plan that it was to replace nor the tables: from host arrays, in a stream, and in a capture while
/// the tables are due to be reset.
#[test]
fn a_batch_that_kernels_cannot_count_or_that_is_captured_before_a_reset_changes_nothing() {
    let params = Params { page: 1, ..small::config(1).params };
    on_ascend(&Config { params, ..small::config(1) }, small::pool, |engine, session, context| {
        let (blocks, block_stride) = ((0..600).collect(), 600);
        let good = OwnedBatch { blocks, block_stride, ..small::one_request(0, 1, ids(0)) };
        let mut plan = engine.new_plan(1, REQUESTS).unwrap();
        engine.step(&good.batch(), &mut plan, 0, None).unwrap();
        // All requests but the first are padded, and have no rows.
        let mut large = OwnedBatch::new(K, 0);
        large.push([0, 2, ENTRIES as i32 - 1, ENTRIES as i32], &[ids(0)]);
        (1..REQUESTS).for_each(|_| large.push([-1, 0, -1, 0], &[]));
        let block_table = block_table();
        let large = Batch { block_table, block_stride: ENTRIES, ..large.batch() };
        let fresh: [&[u8]; 1] = [&[0; ROW]];
        let stream = Stream::new(context).unwrap();
        let arrays = DeviceArrays::new(context, &good, &[]).unwrap();
        arrays.write(&good, &[]).unwrap();
        let wide = DeviceBatch { ids_stride: 1 << 31, ..arrays.batch() };
        for refused in [
            engine.plan(&large, &mut plan),
            engine.step(&large, &mut plan, 0, Some(&fresh)),
            // SAFETY: the call is refused.
            unsafe { engine.enqueue_plan(&wide, &mut plan, stream.raw()) },
        ] {
            expect_refusal(refused, &["words of an array is 2147483648"]);
        }
        assert_eq!((plan.requests(), plan.total_misses()), (1, K));
        engine.transfer(&mut plan, &[1], None).unwrap();
        let mut next = engine.new_plan(1, REQUESTS).unwrap();
        engine.step(&good.batch(), &mut next, 0, None).unwrap();
        assert_eq!(next.total_misses(), 0, "every table is as it was");
        (0..2).for_each(|layer| small::check(engine, &next, &good, layer));

        fail_next(session, "aclrtLaunchKernelWithConfig", 1);
        engine.transfer(&mut next, &[0], None).unwrap_err();
        // SAFETY: the call is refused.
        let call = || unsafe { engine.enqueue_plan(&arrays.batch(), &mut plan, stream.raw()) };
        expect_refusal(stream.capture(call), &["not reset"]);
        let number = plan.counters().read().number;
        assert_eq!((plan.requests(), number, plan.misses(0).id.len()), (1, 1, K));
    });
}
