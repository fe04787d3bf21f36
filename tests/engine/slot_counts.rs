//! Numbers of slots that are no power of two, and the largest one, with contexts that end at the largest id:
//! every selected row is compared, and there are no more misses than an exact LRU buffer of as many slots has.

use std::collections::{BTreeMap, HashMap, HashSet};

use avsg::device::params::{ID_LIMIT, Lifetime, Params};
use avsg::rows::RowFormat;
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::splitmix::SplitMix64;
use avsg_testkit::tier::thorough;
use avsg_testkit::{exact, fixture};

const K: usize = 2048;
/// Rows of a block. The pool has two blocks, which hold the last rows of the longest context.
const PAGE: i32 = 1 << 16;
const ROWS: i32 = 2 * PAGE;
const FIRST: i32 = ID_LIMIT - ROWS;

/// The last use of each of at most S ids.
#[derive(Default)]
struct Lru {
    slots: usize,
    clock: usize,
    used: HashMap<i32, usize>,
    order: BTreeMap<usize, i32>,
}

impl Lru {
    /// Uses an id and returns whether it missed.
    fn misses(&mut self, id: i32) -> bool {
        self.clock += 1;
        let before = self.used.insert(id, self.clock);
        if let Some(at) = before {
            self.order.remove(&at);
        }
        self.order.insert(self.clock, id);
        if self.used.len() > self.slots
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.used.remove(&oldest);
        }
        before.is_none()
    }
}

fn batch(ids: &[i32]) -> OwnedBatch {
    let mut owned = OwnedBatch::new(K, 0);
    owned.block_stride = (ID_LIMIT / PAGE) as usize;
    owned.push([0, 1, -1, ID_LIMIT], &[ids.to_vec()]);
    owned.blocks = vec![-1; owned.block_stride];
    owned.blocks.iter_mut().rev().zip([1, 0]).for_each(|(entry, block)| *entry = block);
    owned
}

/// Returns the next selection: a share of the last one, and ids of a region that moves.
fn select(random: &mut SplitMix64, last: &[i32], region: i32) -> Vec<i32> {
    let mut ids: Vec<i32> = last.iter().copied().filter(|_| random.below(4) > 0).collect();
    let mut seen: HashSet<i32> = ids.iter().copied().collect();
    while ids.len() < K {
        let near = region + random.below(12_000) as i32;
        let far = random.below(8) == 0;
        let id = FIRST + if far { random.below(ROWS as usize) as i32 } else { near % ROWS };
        if seen.insert(id) {
            ids.push(id);
        }
    }
    random.shuffle(&mut ids);
    ids
}

/// The steps that fill a table: of 65536 slots, too.
const FILLING: i32 = 40;

#[test]
fn every_number_of_slots_hits_as_exact_lru_does_at_the_largest_ids() {
    let more: &[u32] = if thorough() { &[10_240, 40_960, 49_152, 57_344] } else { &[] };
    for &slots in [2048 + 64, 6144, 12_288, 65_536].iter().chain(more) {
        for (spread, retries) in [(2, 7), (4, 3)] {
            let (lifetime, page) = (Lifetime::Constant(127), PAGE as u32);
            let wide = Params::wide(K as u32, 1, slots);
            let params = Params { spread, retries, lifetime, page, ..wide };
            let pool = fixture::pool(1, ROWS as usize, RowFormat::single(16).unwrap());
            let mut engine = fixture::engine(params, 1, 2, pool);
            let mut plan = engine.new_plan(1, 1).unwrap();
            let mut lru = Lru { slots: slots as usize, ..Lru::default() };
            let (mut random, mut ids) = (SplitMix64::new(slots.into()), Vec::new());
            let (mut missed, mut of_lru, steps) = (0, 0, 60);
            for step in -FILLING..steps {
                // The first steps fill every table.
                let from = FIRST + (step + FILLING) * K as i32;
                ids = match step {
                    ..0 => (from..from + K as i32).collect(),
                    _ => select(&mut random, &ids, step * 40),
                };
                let owned = batch(&ids);
                engine.step(&owned.batch(), &mut plan, 0, None).unwrap();
                let rows = exact::check_step(&engine, &plan, &owned, 0, |_, id| (id - FIRST, 0));
                assert_eq!(rows, K);
                let misses = ids.iter().filter(|&&id| lru.misses(id)).count();
                if step >= 0 {
                    missed += plan.total_misses();
                    of_lru += misses;
                }
            }
            let points = 100.0 * (missed as f64 - of_lru as f64) / f64::from(steps * K as i32);
            println!("{params}: {missed} misses, LRU {of_lru}, {points:+.2} points");
            assert!(points < 0.3, "S {slots}, spread {spread}: {points} points more than LRU");
        }
    }
}
