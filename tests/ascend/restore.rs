//! Prefill, restore and copies of states, on the CPU and on the simulated device: many rows of a request are written by
//! one append, chosen ids are loaded before they are selected, and calls that change tables are refused or fail. That a
//! copy holds what its original does, and that exactly the ids of an invalidation are missed and copied anew, is checked
//! by random calls, as are the answers to questions for the ids that a state holds.

use avsg::Result;
use avsg::ascend::acl::Stream;
use avsg::device::params::Params;
use avsg::engine::{Batch, Config, DeviceBatch, Engine, Indexers};
use avsg::plan::Plan;
use avsg::pool::HostPool;
use avsg::rows::RowFormat;
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::content::check_row;
use avsg_testkit::device_arrays::DeviceArrays;
use avsg_testkit::fresh::FreshRows;
use avsg_testkit::{exact, fixture};

use crate::harness::{expect_refusal, fail_next, on_ascend, on_both_devices, plan_in_a_stream};
use crate::small::{self, K, SLOTS, ids, one_request};

/// Returns a configuration of three layers, of which two share an indexer.
fn config() -> Config {
    Config { indexers: Indexers::of_layers(&[0, 1, 1]).unwrap(), ..small::config(3) }
}

fn format() -> RowFormat {
    RowFormat::segments(&[40, 9]).unwrap()
}

fn pool() -> HostPool {
    fixture::pool(3, 600, format())
}

/// Returns a batch that selects ids in the step of an indexer.
fn selection(indexer: usize, [state, generation]: [i32; 2], ids: &[i32]) -> OwnedBatch {
    OwnedBatch { indexer, ..one_request(state, generation, ids.to_vec()) }
}

/// Makes such a selection, and checks every layer of the indexer. Returns the ids that were missed.
fn select(
    engine: &mut Engine,
    plan: &mut Plan,
    indexer: usize,
    at: [i32; 2],
    ids: &[i32],
) -> Vec<i32> {
    let owned = selection(indexer, at, ids);
    engine.plan(&owned.batch(), plan).unwrap();
    for layer in (0..3).filter(|&layer| usize::from(layer > 0) == indexer) {
        engine.transfer(plan, &[layer], None).unwrap();
        let content = |_, id| (id, layer as u32);
        assert_eq!(exact::check_step(engine, plan, &owned, layer, content), K);
    }
    plan.misses(0).id.to_vec()
}

/// The blocks of two requests, in any order.
const BLOCKS: [[i32; 8]; 2] = [[9, 2, 14, 5, 0, 11, 7, 3], [8, 1, 15, 4, 10, 6, 13, 12]];

/// Returns a batch of both requests with rows of these numbers of tokens from id `first` on, and the rows of each layer, in
/// which id x of request r has version 10 r + layer.
fn tokens(first: i32, counts: [usize; 2]) -> (OwnedBatch, [FreshRows; 3]) {
    let mut owned = OwnedBatch { block_stride: 8, ..OwnedBatch::new(K, 0) };
    let rows = counts.iter().sum();
    let (mut fresh, mut at) = ([0; 3].map(|_| FreshRows::new(&format(), rows)), 0);
    for (request, count) in counts.into_iter().enumerate() {
        let end = first + count as i32;
        owned.push([request as i32, 1, first, end], &vec![vec![-1; K]; count]);
        owned.blocks.extend(BLOCKS[request]);
        for id in first..end {
            (0..3).for_each(|layer| fresh[layer].put(at, id, (10 * request + layer) as u32));
            at += 1;
        }
    }
    (owned, fresh)
}

/// Checks that the pool holds exactly 128 and 100 rows of [`tokens`].
fn check_pool(engine: &Engine) {
    let mut row = [0; 49];
    for (layer, request) in [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)] {
        for id in 0..128 {
            let host = BLOCKS[request][id / 16] as usize * 16 + id % 16;
            engine.pool().read_row(layer, host, &mut row).unwrap();
            let written = request == 0 || id < 100;
            let (id, version) = if written { (id as i32, 10 * request + layer) } else { (-1, 0) };
            assert!(check_row(id, version as u32, &row), "layer {layer}, row {host}");
        }
    }
}

#[test]
fn one_append_writes_the_rows_of_a_prefill_from_host_or_device_memory() {
    let paged = Config { params: Params { page: 16, ..config().params }, ..config() };
    let empty_pool = || {
        let pool = fixture::pool(3, 256, format());
        fixture::fill(&pool, 256, |_, _| (-1, 0));
        pool
    };
    let (owned, rows) = tokens(0, [128, 100]);
    on_both_devices(&paged, empty_pool, |engine| {
        let append =
            |engine: &mut Engine, (owned, rows): &(OwnedBatch, [FreshRows; 3]), layer: usize| {
                engine.append(&owned.batch(), &[layer], &rows[layer].segments())
            };
        let prefill = (owned.clone(), rows.clone());
        (0..3).for_each(|layer| append(engine, &prefill, layer).unwrap());
        check_pool(engine);
        // A plan still takes N_q rows per request.
        let refused =
            engine.plan(&tokens(0, [3, 1]).0.batch(), &mut engine.new_plan(4, 2).unwrap());
        expect_refusal(refused, &["tokens of a request is 3", "0..=2"]);
        // Rows outside of the block table are refused before anything is written.
        expect_refusal(append(engine, &tokens(120, [9, 1]), 0), &["appended id is 128"]);
        check_pool(engine);
    });
    on_ascend(&paged, empty_pool, |engine, _, context| {
        let stream = Stream::new(context).unwrap();
        let arrays = DeviceArrays::new(context, &owned, &rows).unwrap();
        arrays.write(&owned, &rows).unwrap();
        let batch = DeviceBatch { ids: Default::default(), k: 0, ..arrays.batch() };
        for layer in 0..3 {
            let fresh = arrays.fresh(layer);
            // SAFETY: the arrays outlive the work, which is waited for below.
            let mut append = |rows| unsafe {
                engine.enqueue_append(&batch, rows, &[layer], &fresh, stream.raw())
            };
            append(owned.rows()).unwrap();
            expect_refusal(append(owned.rows() + 1), &["229 rows"]);
        }
        stream.synchronize(10_000).unwrap();
        check_pool(engine);
    });
}

/// That a load is refused while a layer lacks rows, and what it leaves then, is checked by random calls.
#[test]
fn a_refused_load_changes_nothing_and_loaded_ids_are_hits_of_the_first_selection() {
    on_both_devices(&config(), pool, |engine| {
        let mut plan = engine.new_plan(2, 1).unwrap();
        // More ids than K, among them padding, one twice and one that is no token.
        let (mut ids, many) = ((40..90).collect::<Vec<i32>>(), vec![0; SLOTS + 1]);
        ids.extend([-1, 45, 100]);
        let request = Batch { state: &[0], generation: &[1], seq_len: &[100], ..Batch::default() };
        let good = Batch { indexer: 1, ids: &ids, ..request };
        let (table, stats) = (engine.read_table(1, 0).unwrap().to_vec(), engine.stats());
        for (bad, part) in [
            (Batch { state: &[3], ..good }, "state is 3"),
            (Batch { ids: &many, ..good }, "ids to load is 193"),
            (Batch { indexer: 2, ..good }, "indexer is 2"),
            (Batch { seq_len: &[-1], ..good }, "seq_len is -1"),
            (Batch { state: &[3], ids: &[], ..good }, "state is 3"),
        ] {
            expect_refusal(engine.load(&bad, &mut plan), &[part]);
        }
        assert!(engine.read_table(1, 0).unwrap() == table && engine.stats() == stats);
        assert_eq!(engine.load(&Batch { ids: &[], ..good }, &mut plan).unwrap(), 0);
        assert_eq!([(); 2].map(|()| engine.load(&good, &mut plan).unwrap()), [50, 0]);
        // The ids are hits of the first selection. The other indexer and another generation have nothing.
        let selected: Vec<i32> = (0..K as i32).map(|lane| 40 + lane * 2).collect();
        assert_eq!(select(engine, &mut plan, 1, [0, 1], &selected), Vec::<i32>::new());
        assert_eq!(select(engine, &mut plan, 0, [0, 1], &selected), selected);
        assert_eq!(select(engine, &mut plan, 1, [0, 2], &selected), selected);
    });
}

#[test]
fn forks_that_cannot_be_exact_and_questions_and_invalidations_of_no_ids_are_refused() {
    on_both_devices(&config(), pool, |engine| {
        let mut plan = engine.new_plan(2, 1).unwrap();
        let cases: [(usize, &[i32], &[i32], &str); 6] = [
            (3, &[0], &[1], "state is 3"),
            (0, &[1, 2], &[1], "generations is 1, but 2 states are named"),
            (0, &[1, 1], &[1, 2], "state is 1, but the list names it twice"),
            (0, &[2, 0], &[1, 1], "state is 0, but a state is copied to another one"),
            (0, &[2, 3], &[1, 1], "state is 3, but there are 3"),
            (0, &[-1], &[1], "state is -1, but there are 3"),
        ];
        for (from, to, generations, part) in cases {
            expect_refusal(engine.fork(from, 1, to, generations), &[part]);
        }
        let mut bits = [7; 2];
        for (indexer, state, range, part) in [
            (2, 0, 0..1, "indexer is 2"),
            (0, 3, 0..1, "state is 3"),
            (0, 0, -1..5, "ids is -1..5"),
            (0, 0, 5..5, "ids is 5..5"),
            (0, 0, 5..(1 << 24) + 1, "ids is 5..16777217"),
            (0, 0, 5..134, "words of bits is 2, but 129 ids need 3"),
        ] {
            expect_refusal(engine.held(indexer, state, 1, range, &mut bits), &[part]);
            assert_eq!(bits, [7; 2]);
        }
        #[expect(clippy::reversed_empty_ranges, reason = "these ranges must be refused")]
        for (ids, part) in [(-1..1, "-1..1"), (3..3, "3..3"), (5..3, "5..3")] {
            expect_refusal(engine.invalidate(0, ids), &[part]);
        }
        let owned = selection(1, [0, 1], &ids(3));
        engine.plan(&owned.batch(), &mut plan).unwrap();
        engine.transfer(&mut plan, &[1], None).unwrap();
        expect_refusal(
            engine.fork(0, 1, &[2], &[1]),
            &["layers [2] lack the rows of plan 1 for states [0]"],
        );
        // In a generation that has no plan nothing is due.
        engine.fork(0, 2, &[2], &[3]).unwrap();
        engine.transfer(&mut plan, &[2], None).unwrap();
        engine.fork(0, 1, &[2], &[1]).unwrap();
        engine.fork(0, 1, &[], &[]).unwrap();
        assert_eq!(select(engine, &mut plan, 1, [2, 1], &ids(3)), Vec::<i32>::new());
    });
}

/// The host does not see what a stream plans, but the tables have their generations. Both calls wait for the work.
#[test]
fn a_question_and_a_fork_after_a_plan_in_a_stream_know_the_generation() {
    on_ascend(&config(), pool, |engine, _, context| {
        let mut plan = engine.new_plan(2, 1).unwrap();
        assert_eq!(select(engine, &mut plan, 1, [0, 1], &ids(0)).len(), K);
        let mut queued = engine.new_plan(2, 1).unwrap();
        let owned = selection(1, [0, 2], &ids(9));
        let ask = |engine: &mut Engine| {
            let mut bits = [u64::MAX; 8];
            assert_eq!(engine.held(1, 0, 2, 0..500, &mut bits).unwrap(), K);
            let set = |id: &i32| bits[*id as usize / 64] >> (id % 64) & 1 == 1;
            assert!((0..512).filter(set).all(|id| ids(9).contains(&id)), "{bits:x?}");
        };
        plan_in_a_stream(engine, &mut queued, &owned, &[1, 2], context, ask);
        let stream = Stream::new(context).unwrap();
        // SAFETY: the call is refused.
        let other = unsafe { engine.enqueue_transfer(&queued, &[0], None, stream.raw()) };
        expect_refusal(other, &["the plan is of indexer 1"]);
        let fork = |engine: &mut Engine| engine.fork(0, 2, &[2], &[5]).unwrap();
        plan_in_a_stream(engine, &mut queued, &owned, &[1, 2], context, fork);
        assert_eq!(select(engine, &mut plan, 1, [2, 5], &ids(9)), Vec::<i32>::new());
        engine.fork(0, 1, &[2], &[6]).unwrap();
        assert_eq!(select(engine, &mut plan, 1, [2, 6], &ids(0)), ids(0));
    });
}

/// Each copy of the runtime that a fork makes fails in turn.
#[test]
fn a_fork_that_fails_on_the_way_starts_every_table_cold() {
    on_ascend(&config(), pool, |engine, session, _| {
        let [mut plan, mut old] = [(); 2].map(|()| engine.new_plan(2, 1).unwrap());
        let mut failed = 0;
        for generation in 1.. {
            for indexer in 0..2 {
                select(engine, &mut plan, indexer, [0, generation], &ids(0));
            }
            // State 2 has a plan that layer 0 lacks.
            engine.plan(&selection(0, [2, generation], &ids(77)).batch(), &mut old).unwrap();
            fail_next(session, "aclrtMemcpy", generation as usize);
            let Err(error) = engine.fork(0, generation, &[2], &[generation + 1000]) else { break };
            assert!(error.to_string().contains("aclrtMemcpy"), "{error}");
            expect_refusal(engine.transfer(&mut old, &[0], None), &["plan is stale"]);
            for indexer in 0..2 {
                let missed = select(engine, &mut plan, indexer, [2, generation + 1000], &ids(0));
                assert_eq!(missed, ids(0));
            }
            failed += 1;
        }
        // For each table two reads and a write, and a copy for each layer and segment.
        assert_eq!(failed, 2 * 3 + 3 * 2);
    });
}

type Call = fn(&mut Engine, &mut Plan) -> Result<()>;

/// Calls that change tables, and the call of the runtime in each that fails. A wait reports work of a stream that
/// failed. The first copy of an invalidation reads the table, and the second one writes it.
const FAILING: [(Call, &str, usize); 3] = [
    (|engine, _| engine.invalidate(0, 17..18).map(drop), "aclrtSynchronizeDeviceWithTimeout", 1),
    (|engine, _| engine.invalidate(0, 17..18).map(drop), "aclrtMemcpy", 2),
    (|engine, plan| engine.discard(plan), "aclrtMemcpy", 2),
];

#[test]
fn a_call_that_fails_on_the_way_starts_every_table_cold() {
    on_ascend(&config(), pool, |engine, session, context| {
        let mut plan = engine.new_plan(2, 1).unwrap();
        let step = |engine: &mut Engine, plan: &mut Plan| {
            [0, 1].map(|indexer| select(engine, plan, indexer, [0, 1], &ids(0)).len())
        };
        step(engine, &mut plan);
        // A wait that is refused in a capture reports no failure.
        let stream = Stream::new(context).unwrap();
        let refused = stream.capture(|| engine.invalidate(0, 17..18).map(drop));
        expect_refusal(refused, &["aclrtSynchronizeDevice"]);
        assert_eq!(step(engine, &mut plan), [0, 0]);
        for (call, fails, nth) in FAILING {
            fail_next(session, fails, nth);
            expect_refusal(call(engine, &mut plan), &[fails]);
            assert_eq!(engine.invalidate(0, 17..18).unwrap(), 0, "no table lists an id");
            assert_eq!(step(engine, &mut plan), [K, K]);
        }
    });
}
