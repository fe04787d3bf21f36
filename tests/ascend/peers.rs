//! Cases that the tests of other offloading operators have (SGLang, vLLM and vLLM-Ascend), on the CPU
//! and on the simulated device.
//!
//! Four of their cases are not here. Outputs that the test itself fills with garbage: a plan owns its
//! outputs, and a random workload has one plan for all its batches. Pages that are resident and bypass the
//! table: a batch has no list of them. Ids that another stream writes late: the CPU has no streams, and the
//! other files of this folder queue batches in streams. A full pool and late frees: the serving engine
//! manages the rows of the pool.

mod chunk;
mod engines;

use avsg::device::params::Params;
use avsg::device::state::header;
use avsg::engine::{Engine, Fresh, Load};
use avsg::plan::Plan;
use avsg::rows::RowFormat;
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::content::fill_row;
use avsg_testkit::fresh::FreshRows;
use avsg_testkit::workload::{DEVICE_SHAPES, Shape};
use avsg_testkit::{exact, fixture};
use engines::{BLOCKS, LAYERS};

/// The geometry that other tests of the simulated device compile: K = 8, N_q = 2, S = 128, pages of
/// 16 rows.
fn small() -> Params {
    Shape::from(DEVICE_SHAPES[1]).params()
}

/// Runs a test on an engine of the CPU and on one of the simulated device.
fn on_both(test: impl Fn(&mut Engine)) {
    engines::on_both(&small(), test);
}

/// Returns the row of an id when a request's blocks are in reverse order from `first` on, with gaps.
fn row_of(first: usize, id: i32) -> i32 {
    let page = small().page as i32;
    ((first as i32 - 2 * (id / page)).rem_euclid(BLOCKS as i32)) * page + id % page
}

/// A batch of requests, each a state (-1: vacant) and its rows, with block tables of 32 used entries
/// that are padded to 37.
fn batch(generation: i32, requests: &[(i32, Vec<Vec<i32>>)]) -> OwnedBatch {
    let mut owned = OwnedBatch::new(small().k as usize, 3);
    owned.block_stride = 37;
    for (state, rows) in requests {
        owned.push([*state, generation, -1, 512], rows);
        let block = |at: i32| row_of(first_block(*state), at * small().page as i32);
        owned.blocks.extend((0..32).map(|at| block(at) / small().page as i32));
        owned.blocks.extend([-1; 5]);
    }
    owned
}

fn first_block(state: i32) -> usize {
    7 + 5 * state.max(0) as usize
}

/// K ids of a request: `first`, `first` + 3, and so on.
fn ids(first: i32) -> Vec<i32> {
    (0..small().k as i32).map(|i| (first + 3 * i) % 500).collect()
}

/// Checks every selected row of a plan in one layer.
fn check(engine: &Engine, plan: &Plan, owned: &OwnedBatch, layer: usize) -> usize {
    exact::check_step(engine, plan, owned, layer, |request, id| {
        (row_of(first_block(owned.state[request]), id), layer as u32)
    })
}

/// Steps all layers, checks every selected row, and returns the number of rows that were copied.
fn step(engine: &mut Engine, plan: &mut Plan, owned: &OwnedBatch) -> usize {
    engine.step(&owned.batch(), plan, 0, None).unwrap();
    engine.transfer(plan, 1, None).unwrap();
    (0..LAYERS)
        .for_each(|layer| assert!(check(engine, plan, owned, layer) > 0 || owned.rows() == 0));
    plan.total_misses()
}

/// Returns the ids in the slots of a state.
fn ids_in_slots(engine: &mut Engine, state: usize) -> Vec<i32> {
    engine.read_table(state).unwrap()[header::WORDS..][..small().slots as usize].to_vec()
}

#[test]
fn the_same_batch_twice_misses_nothing_and_keeps_every_slot() {
    on_both(|engine| {
        let (mut first, mut second) =
            (engine.new_plan(4, 2).unwrap(), engine.new_plan(4, 2).unwrap());
        let owned = batch(1, &[(2, vec![ids(5), ids(100)]), (0, vec![ids(7)])]);
        assert_eq!(step(engine, &mut first, &owned), 3 * small().k as usize);
        let held = ids_in_slots(engine, 2);
        assert_eq!(step(engine, &mut second, &owned), 0);
        assert!((0..3).all(|row| first.slots(row) == second.slots(row)));
        assert_eq!(held, ids_in_slots(engine, 2));
    });
}

#[test]
fn rolled_hits_stay_hits_and_a_shared_miss_is_copied_once() {
    on_both(|engine| {
        let mut plan = engine.new_plan(2, 1).unwrap();
        step(engine, &mut plan, &batch(1, &[(1, vec![ids(0), ids(200)])]));
        let mut rows = [ids(0), ids(200)];
        rows.iter_mut().for_each(|row| row.rotate_left(5));
        assert_eq!(step(engine, &mut plan, &batch(1, &[(1, rows.to_vec())])), 0);
        // Three misses of the first row, two of the second.
        rows[0][..3].copy_from_slice(&[301, 302, 303]);
        rows[1][6..].copy_from_slice(&[304, 305]);
        assert_eq!(step(engine, &mut plan, &batch(1, &[(1, rows.to_vec())])), 5);
        // The same four misses in both rows.
        rows.iter_mut().for_each(|row| row[2..6].copy_from_slice(&[401, 402, 403, 404]));
        assert_eq!(step(engine, &mut plan, &batch(1, &[(1, rows.to_vec())])), 4);
        assert_eq!(plan.token_misses(0, 1), 0);
    });
}

/// The sizes of the other operators' tests, on the CPU, whose geometries need no compiler.
fn large() -> (Engine, Plan) {
    let pool = fixture::pool(1, 1 << 14, RowFormat::single(16).unwrap());
    let engine = fixture::engine(Params::wide(2048, 4, 16_384), 1, 2, pool);
    let plan = engine.new_plan(4, 1).unwrap();
    (engine, plan)
}

fn step_large(engine: &mut Engine, plan: &mut Plan, generation: i32, rows: &[Vec<i32>]) -> usize {
    let mut owned = OwnedBatch::new(2048, 0);
    owned.push([0, generation, -1, engine.pool().rows() as i32], rows);
    engine.step(&owned.batch(), plan, 0, None).unwrap();
    assert_eq!(exact::check_step(engine, plan, &owned, 0, |_, id| (id, 0)), rows.len() * 2048);
    plan.total_misses()
}

#[test]
fn four_rows_of_2048_ids_with_782_unique_misses_and_196_shared_ones() {
    let (mut engine, mut plan) = large();
    let mut rows: Vec<Vec<i32>> = (0..4).map(|r| (r * 2048..(r + 1) * 2048).collect()).collect();
    assert_eq!(step_large(&mut engine, &mut plan, 1, &rows), 8192);
    rows.iter_mut().for_each(|row| row.rotate_left(137));
    let mut next = 8192..;
    for (row, misses) in rows.iter_mut().zip([196, 196, 195, 195]) {
        row[..misses].iter_mut().zip(&mut next).for_each(|(id, new)| *id = new);
    }
    assert_eq!(step_large(&mut engine, &mut plan, 1, &rows), 782);
    let shared: Vec<i32> = (10_000..10_196).collect();
    rows.iter_mut().for_each(|row| row[1000..1196].copy_from_slice(&shared));
    assert_eq!(step_large(&mut engine, &mut plan, 1, &rows), 196);
}

#[test]
fn fourteen_rows_of_2048_ids() {
    let pool = fixture::pool(1, 1 << 15, RowFormat::single(16).unwrap());
    let mut engine = fixture::engine(Params::wide(2048, 14, 32_768), 1, 2, pool);
    let mut plan = engine.new_plan(14, 1).unwrap();
    let mut rows: Vec<Vec<i32>> = (0..14).map(|r| (r * 2048..(r + 1) * 2048).collect()).collect();
    assert_eq!(step_large(&mut engine, &mut plan, 1, &rows), 14 * 2048);
    // Row r has 100 + r new ids, and shares the last ones with the row after it.
    let new = |r: i32| (0..100 + r).map(move |i| 28_672 + 100 * r + i);
    (0..14).for_each(|r| {
        rows[r as usize].iter_mut().zip(new(r)).for_each(|(id, new)| *id = new);
    });
    step_large(&mut engine, &mut plan, 1, &rows);
    let expected = |r: i32| if r == 0 { 100 } else { 101 };
    assert_eq!(plan.row_misses(), (0..14).map(expected).collect::<Vec<_>>());
}

#[test]
fn miss_counts_around_multiples_of_k() {
    let (mut engine, mut plan) = large();
    for (generation, misses) in (1..).zip([2048, 2049, 4095, 4096, 4097, 8191, 8192]) {
        // Ids from `misses` on are replaced by ids of the first row, which are no further misses.
        let row = |r: i32| {
            let own = |at: i32| if r * 2048 + at < misses { r * 2048 + at } else { at };
            (0..2048).map(own).collect()
        };
        let rows: Vec<Vec<i32>> = (0..4).map(row).collect();
        let found = step_large(&mut engine, &mut plan, generation, &rows);
        assert_eq!(found, misses as usize);
    }
}

#[test]
fn ids_across_powers_of_two_hit_on_the_second_call() {
    on_both(|engine| {
        let page = small().page as i32;
        let big = [
            (1 << 17) - 1,
            1 << 17,
            (1 << 18) + 1,
            (1 << 20) - 1,
            1 << 20,
            1_048_648,
            (1 << 21) - 1,
            1 << 21,
        ];
        let mut owned = OwnedBatch::new(small().k as usize, 0);
        owned.push([3, 1, -1, (1 << 21) + 1], &[big.to_vec()]);
        owned.block_stride = ((1 << 21) / page + 1) as usize;
        owned.blocks = (0..owned.block_stride as i32).map(|at| at % BLOCKS as i32).collect();
        let mut plan = engine.new_plan(1, 1).unwrap();
        for misses in [big.len(), 0] {
            engine.step(&owned.batch(), &mut plan, 0, None).unwrap();
            let rows = BLOCKS as i32 * page;
            let checked = exact::check_step(engine, &plan, &owned, 0, |_, id| (id % rows, 0));
            assert_eq!((checked, plan.total_misses()), (big.len(), misses));
        }
    });
}

#[test]
fn a_row_that_was_rewritten_is_loaded_again_and_no_other() {
    on_both(|engine| {
        let mut plan = engine.new_plan(2, 1).unwrap();
        let rows = vec![ids(10), ids(11)];
        step(engine, &mut plan, &batch(1, &[(0, rows.clone())]));
        // The request goes back to the length 32, which the last id of the second row is not below.
        let rewritten = 32;
        assert_eq!(rows.iter().flatten().filter(|&&id| id >= rewritten).count(), 1);
        let mut shorter = batch(1, &[(0, vec![])]);
        (shorter.stable[0], shorter.seq[0]) = (rewritten, rewritten);
        engine.plan(&shorter.batch(), &mut plan).unwrap();
        let mut bytes = vec![0; 64];
        let row = row_of(first_block(0), rewritten);
        fill_row(row, 9, &mut bytes);
        engine.pool().write_row(0, row as usize, &bytes).unwrap();
        let owned = batch(1, &[(0, rows)]);
        engine.step(&owned.batch(), &mut plan, 0, None).unwrap();
        assert_eq!(plan.misses(0).id, [rewritten]);
        exact::check_step(engine, &plan, &owned, 0, |_, id| {
            (row_of(first_block(0), id), if id == rewritten { 9 } else { 0 })
        });
    });
}

#[test]
fn hits_are_read_from_the_buffer_when_the_host_rows_are_corrupted() {
    on_both(|engine| {
        let mut plan = engine.new_plan(2, 1).unwrap();
        let owned = batch(1, &[(1, vec![ids(50), ids(90)])]);
        step(engine, &mut plan, &owned);
        for row in 0..engine.pool().rows() {
            (0..LAYERS).for_each(|l| engine.pool().write_row(l, row, &[0xEE; 64]).unwrap());
        }
        assert_eq!(step(engine, &mut plan, &owned), 0);
    });
}

/// The batch of a fixed-size graph has four places, of which 4, 3, 1 and 4 are occupied, and a vacant one
/// still has the tokens and ids of its last request.
#[test]
fn vacant_places_anywhere_miss_nothing_copy_nothing_and_touch_no_table() {
    on_both(|engine| {
        let mut plan = engine.new_plan(8, 4).unwrap();
        for (turn, vacant) in [vec![], vec![1], vec![0, 1, 3], vec![]].into_iter().enumerate() {
            let place = |at: i32| {
                let state = if vacant.contains(&at) { -1 } else { at };
                (state, vec![ids(10 * at + 60 * turn as i32), ids(10 * at + 60 * turn as i32 + 1)])
            };
            let requests: Vec<_> = (0..4).map(place).collect();
            let owned = batch(1, &requests);
            let held: Vec<_> = (0..4).map(|state| ids_in_slots(engine, state)).collect();
            let before = engine.stats();
            step(engine, &mut plan, &owned);
            let live = 2 * small().k as usize * (4 - vacant.len());
            let after = engine.stats();
            let selected = |stats: avsg::engine::Stats| (stats.hits + stats.misses) as usize;
            assert_eq!(selected(after) - selected(before), live);
            for (at, held) in held.into_iter().enumerate() {
                let state = ids_in_slots(engine, at);
                if vacant.contains(&(at as i32)) {
                    assert_eq!((plan.misses(at).id.len(), plan.status(at)), (0, 0));
                    assert!((2 * at..2 * at + 2).all(|row| plan.valid()[row] == 0));
                    assert!(
                        plan.slots(2 * at).iter().chain(plan.slots(2 * at + 1)).all(|&s| s == -1)
                    );
                    assert_eq!(state, held, "the table of vacant place {at}");
                } else {
                    assert_ne!(state, held);
                }
            }
            // A replay of the same batch finds everything.
            assert_eq!(step(engine, &mut plan, &owned), 0);
        }
    });
}

/// A batch whose places are all vacant, and an append of one with rows in its vacant places.
#[test]
fn a_batch_of_vacant_places_changes_nothing_and_appends_only_live_rows() {
    on_both(|engine| {
        let mut plan = engine.new_plan(6, 3).unwrap();
        let mut owned = batch(1, &[(-1, vec![ids(1)]), (2, vec![ids(2)]), (-1, vec![ids(3)])]);
        (owned.stable, owned.seq) = (vec![70; 3], vec![71; 3]);
        let mut fresh = FreshRows::new(&RowFormat::single(64).unwrap(), 3);
        (0..3).for_each(|at| fresh.put(at, 900 + at as i32, 0));
        let of_layers = [fresh.clone(), fresh];
        let segments = FreshRows::segments_of(&of_layers);
        let rows = |engine: &Engine| -> Vec<Vec<u8>> {
            let row = |at: usize| {
                let mut bytes = vec![0; 64];
                engine.pool().read_row(at % 2, at / 2, &mut bytes).unwrap();
                bytes
            };
            (0..2 * engine.pool().rows()).map(row).collect()
        };
        let before = rows(engine);
        engine.append_layers(&owned.batch(), &[0, 1], &Fresh { segments: &segments }).unwrap();
        let after = rows(engine);
        let changed = (0..before.len()).filter(|&at| before[at] != after[at]);
        let row = row_of(first_block(2), 70) as usize;
        assert_eq!(changed.collect::<Vec<_>>(), [2 * row, 2 * row + 1]);
        owned.state.fill(-1);
        engine.plan(&owned.batch(), &mut plan).unwrap();
        engine.transfer_layers(&mut plan, &[0, 1], None).unwrap();
        engine.append_layers(&owned.batch(), &[0, 1], &Fresh { segments: &segments }).unwrap();
        assert!((plan.total_misses(), rows(engine) == after) == (0, true));
    });
}

/// Layers that follow use a plan after later steps were planned and transferred to the first layer.
#[test]
fn layers_that_follow_use_plans_after_later_steps() {
    on_both(|engine| {
        let batches =
            [5, 40, 41].map(|first| batch(1, &[(2, vec![ids(first)]), (-1, vec![ids(7)])]));
        let mut plans = [(); 3].map(|()| engine.new_plan(2, 2).unwrap());
        for (owned, plan) in batches.iter().zip(&mut plans) {
            engine.step(&owned.batch(), plan, 0, None).unwrap();
            assert_eq!(check(engine, plan, owned, 0), small().k as usize);
        }
        let early = engine.transfer_layers(&mut plans[1], &[1], None).unwrap_err().to_string();
        assert!(early.contains("layer 1 lacks the rows of plan 1 for state 2"), "{early}");
        for (owned, plan) in batches.iter().zip(&mut plans) {
            engine.transfer_layers(plan, &[1], None).unwrap();
            assert_eq!(check(engine, plan, owned, 1), small().k as usize);
        }
    });
}

/// A request is spilled and its state taken by another; a restore loads what a prefix cache remembers, and
/// what the state then holds is what its next step hits. A copy for a second request holds the same.
#[test]
fn a_restored_prefix_is_held_and_forked_to_other_requests() {
    on_both(|engine| {
        let mut plan = engine.new_plan(2, 1).unwrap();
        let (first, second) = (ids(3), ids(90));
        let held = |engine: &mut Engine, state: usize, generation: i32| -> Vec<i32> {
            let mut bits = [0; 8];
            let count = engine.held(0, state, generation, 0..512, &mut bits).unwrap();
            let set = |id: &i32| bits[*id as usize / 64] >> (id % 64) & 1 == 1;
            let found: Vec<i32> = (0..512).filter(set).collect();
            assert_eq!(found.len(), count);
            found
        };
        step(engine, &mut plan, &batch(1, &[(0, vec![first.clone(), second.clone()])]));
        let mut remembered = [first.clone(), second.clone()].concat();
        remembered.sort_unstable();
        assert_eq!(held(engine, 0, 1), remembered);
        // The request is aborted, and another one has the state.
        step(engine, &mut plan, &batch(2, &[(0, vec![ids(200)])]));
        assert_eq!(held(engine, 0, 1), Vec::<i32>::new());
        let owned = batch(3, &[(0, vec![first, second])]);
        let (ids, block_table) = (&remembered[..], &owned.blocks[..]);
        let load = Load { indexer: 0, state: 0, generation: 3, seq_len: 512, ids, block_table };
        assert_eq!(engine.load(&load, &mut plan).unwrap(), remembered.len());
        assert_eq!(held(engine, 0, 3), remembered);
        assert_eq!(step(engine, &mut plan, &owned), 0);
        engine.fork_to(0, 3, &[3, 1], &[8, 9]).unwrap();
        for (state, generation) in [(3, 8), (1, 9)] {
            assert_eq!(held(engine, state, generation), remembered);
            // The rows of a state depend on its blocks, which the copies share with state 0.
            let mut shared = owned.clone();
            (shared.state[0], shared.generation[0]) = (state as i32, generation);
            engine.step(&shared.batch(), &mut plan, 1, None).unwrap();
            assert_eq!(plan.total_misses(), 0);
            exact::check_step(engine, &plan, &shared, 1, |_, id| (row_of(first_block(0), id), 1));
        }
    });
}
