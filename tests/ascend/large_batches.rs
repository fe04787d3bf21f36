//! Batches of host arrays with more words than a kernel counts.

use std::ptr;

use avsg::device::params::Params;
use avsg::engine::{Batch, Config, Fresh};
use avsg::rows::RowFormat;
use avsg_testkit::fixture;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use crate::harness::{expect_refusal, on_ascend};

/// Requests, and entries of each in the block table: 2^31 words together.
const REQUESTS: usize = 1 << 17;
const ENTRIES: usize = 1 << 14;

/// Calls `test` with a block table of zeros. No page of it is ever written, so that it takes no memory.
fn with_block_table(test: impl FnOnce(&[i32])) {
    let bytes = 4 * REQUESTS * ENTRIES;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new mapping at an address that the system chooses replaces no other.
    let table = unsafe { mmap_anonymous(ptr::null_mut(), bytes, ProtFlags::READ, flags).unwrap() };
    // SAFETY: the mapping has that many words of zero, which nothing writes, until it is unmapped.
    test(unsafe { std::slice::from_raw_parts(table.cast(), REQUESTS * ENTRIES) });
    // SAFETY: the slice was lent to the call that has returned.
    unsafe { munmap(table, bytes).unwrap() };
}

/// The refused batch costs neither the plan that it was to replace nor the tables.
#[test]
fn a_batch_that_kernels_cannot_count_changes_nothing() {
    const K: usize = 8;
    let params = Params { page: 1, ..Params::wide(K as u32, 1, 64) };
    let config = Config { cores: 2, ..Config::new(params, 1) };
    let pool = || fixture::pool(2, 64, RowFormat::single(32).unwrap());
    on_ascend(&config, pool, |engine, _, _| {
        let (ids, blocks): (Vec<i32>, Vec<i32>) = ((0..8).collect(), (0..64).collect());
        let small = Batch {
            ids: &ids,
            ids_stride: K,
            k: K,
            cu_q: &[0, 1],
            state: &[0],
            generation: &[1],
            stable_len: &[-1],
            seq_len: &[64],
            block_table: &blocks,
            block_stride: 64,
            indexer: 0,
        };
        let mut plan = engine.new_plan(1, REQUESTS).unwrap();
        engine.step(&small, &mut plan, 0, None).unwrap();
        // All requests but the first are padded, and have no rows.
        let first = |value, others| {
            let mut all = vec![others; REQUESTS];
            all[0] = value;
            all
        };
        let mut cu_q = vec![1; REQUESTS + 1];
        cu_q[0] = 0;
        let (state, seq_len) = (first(0, -1), first(ENTRIES as i32, 0));
        let (generation, stable_len) = (first(2, 0), first(ENTRIES as i32 - 1, -1));
        with_block_table(|table| {
            let large = Batch {
                cu_q: &cu_q,
                state: &state,
                generation: &generation,
                stable_len: &stable_len,
                seq_len: &seq_len,
                block_table: table,
                block_stride: ENTRIES,
                ..small
            };
            let fresh = Fresh { segments: &[&[0; 32]] };
            let refused = [
                engine.plan(&large, &mut plan),
                engine.step(&large, &mut plan, 0, Some(&fresh)),
                engine.append(&large, 0, &fresh),
            ];
            for refused in refused {
                expect_refusal(refused, &["words of an array is 2147483648"]);
            }
        });
        assert_eq!((plan.requests(), plan.total_misses()), (1, K));
        engine.transfer(&mut plan, 1, None).unwrap();
        engine.step(&small, &mut plan, 0, None).unwrap();
        assert_eq!(plan.total_misses(), 0, "every table is as it was");
    });
}
