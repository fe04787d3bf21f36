//! Extreme inputs: the longest contexts, and numbers of slots that are no power of two, and the largest one.

use avsg::device::params::{ID_LIMIT, Lifetime, Params};
use avsg::device::request::status;
use avsg::rows::RowFormat;
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::tier::thorough;
use avsg_testkit::{exact, fixture};

const K: usize = 2048;
/// Rows of a block. The pool has two blocks, which hold the last rows of the longest context.
const PAGE: i32 = 1 << 16;
const ROWS: i32 = 2 * PAGE;
const FIRST: i32 = ID_LIMIT - ROWS;

fn batch(ids: &[i32]) -> OwnedBatch {
    let mut owned = OwnedBatch::new(K, 0);
    owned.block_stride = (ID_LIMIT / PAGE) as usize;
    owned.push([0, 1, -1, ID_LIMIT], &[ids.to_vec()]);
    owned.blocks = vec![-1; owned.block_stride];
    owned.blocks.iter_mut().rev().zip([1, 0]).for_each(|(entry, block)| *entry = block);
    owned
}

/// The steps that fill a table: of 65536 slots, too.
const FILLING: i32 = 40;

/// Every selected row is compared, and ids that an exact LRU buffer of as many slots would hold are hit. That the
/// table evicts as exact LRU does is checked on the kernels (`device/tests/kernels/structured.rs`).
#[test]
fn every_number_of_slots_hits_as_exact_lru_does_at_the_largest_ids() {
    let more: &[u32] = if thorough() { &[10_240, 40_960, 49_152, 57_344] } else { &[] };
    // The default tier takes one of both probe sequences for each number.
    for (n, &slots) in [2048 + 64, 6144, 12_288, 65_536].iter().chain(more).enumerate() {
        let both = [(2, 7), (4, 3)];
        for (spread, retries) in if thorough() { both.to_vec() } else { vec![both[n % 2]] } {
            let (lifetime, page) = (Lifetime::Constant(127), PAGE as u32);
            let wide = Params::wide(K as u32, 1, slots);
            let params = Params { spread, retries, lifetime, page, ..wide };
            let pool = fixture::pool(1, ROWS as usize, RowFormat::single(16).unwrap());
            let mut engine = fixture::engine(params, 1, 2, pool);
            let mut plan = engine.new_plan(1, 1).unwrap();
            let (mut missed, steps, most, held) = (0, 30, K as i32, slots as i32);
            let end = FIRST + FILLING * most;
            for step in -FILLING..steps {
                // The first steps fill every table, and later ones select again what an LRU buffer holds: of the ids
                // that were used last as many as there are slots.
                let from = match step {
                    ..0 => end + step * most,
                    _ => end - held + step * 977 % (held - most + 1),
                };
                let ids: Vec<i32> = (from..from + most).collect();
                let owned = batch(&ids);
                engine.step(&owned.batch(), &mut plan, 0, None).unwrap();
                let rows = exact::check_step(&engine, &plan, &owned, 0, |_, id| (id - FIRST, 0));
                assert_eq!(rows, K);
                missed += if step < 0 { 0 } else { plan.total_misses() };
            }
            let percent = 100.0 * missed as f64 / f64::from(steps * K as i32);
            println!("{params}: {missed} misses, {percent:.2} %");
            assert!(percent < 0.3, "S {slots}, spread {spread}: {percent} % missed");
            let beyond = (ID_LIMIT - 16, 16, status::ID_OUT_OF_RANGE);
            for (first, valid, bits) in [beyond, (1000, 0, status::ROW_OUT_OF_POOL)] {
                let ids: Vec<i32> = (first..first + K as i32).collect();
                engine.step(&batch(&ids).batch(), &mut plan, 0, None).unwrap();
                assert!(plan.valid() == [valid] && plan.status(0) == bits);
            }
        }
    }
}
