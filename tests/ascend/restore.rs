//! Prefill and restore, on the CPU and on the simulated device: many rows of a request are written by
//! one append, and chosen ids are loaded before they are selected.

use avsg::Result;
use avsg::ascend::acl::Stream;
use avsg::device::params::Params;
use avsg::engine::{Config, DeviceBatch, DeviceFresh, Engine, Fresh, Indexers, Load};
use avsg::plan::Plan;
use avsg::pool::HostPool;
use avsg::rows::RowFormat;
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::content::check_row;
use avsg_testkit::device_arrays::DeviceArrays;
use avsg_testkit::fresh::FreshRows;
use avsg_testkit::{exact, fixture};

use crate::harness::{expect_refusal, on_ascend, on_both_devices};
use crate::small::{self, K, SLOTS};

/// The blocks of two requests, in any order.
const BLOCKS: [[i32; 8]; 2] = [[9, 2, 14, 5, 0, 11, 7, 3], [8, 1, 15, 4, 10, 6, 13, 12]];

/// Returns a configuration of three layers, of which two share an indexer, with pages of 16 rows.
pub fn config() -> Config {
    let config = small::config(3);
    let indexers = Indexers::of_layers(&[0, 1, 1]).unwrap();
    Config { params: Params { page: 16, ..config.params }, indexers, ..config }
}

fn format() -> RowFormat {
    RowFormat::segments(&[40, 9]).unwrap()
}

/// Returns a pool without rows.
pub fn empty_pool() -> HostPool {
    let pool = fixture::pool(3, 256, format());
    fixture::fill(&pool, 256, |_, _| (-1, 0));
    pool
}

/// Returns a batch of both requests, with rows of these numbers of tokens from id `first` on.
fn tokens(first: i32, counts: [usize; 2]) -> OwnedBatch {
    let mut owned = OwnedBatch { block_stride: 8, ..OwnedBatch::new(K, 0) };
    for (request, count) in counts.into_iter().enumerate() {
        let rows = vec![vec![-1; K]; count];
        owned.push([request as i32, 1, first, first + count as i32], &rows);
        owned.blocks.extend(BLOCKS[request]);
    }
    owned
}

/// Returns the rows of a batch of [`tokens`]: id x of request r has version 10 r + layer.
fn rows_of(owned: &OwnedBatch, layer: usize) -> FreshRows {
    let mut fresh = FreshRows::new(&format(), owned.rows());
    for (request, rows) in owned.cu_q.windows(2).enumerate() {
        for (at, id) in (rows[0]..rows[1]).zip(owned.stable[request]..) {
            fresh.put(at as usize, id, (10 * request + layer) as u32);
        }
    }
    fresh
}

/// Appends the rows of a batch of [`tokens`] to a layer.
fn append(engine: &mut Engine, owned: &OwnedBatch, layer: usize) -> Result<()> {
    let rows = rows_of(owned, layer);
    engine.append(&owned.batch(), layer, &Fresh { segments: &rows.segments() })
}

/// Writes all rows of both requests with one append per layer.
pub fn prefill(engine: &mut Engine) {
    let owned = tokens(0, [128, 100]);
    (0..3).for_each(|layer| append(engine, &owned, layer).unwrap());
}

/// Checks that the pool holds exactly the rows of [`prefill`].
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

/// Returns a batch of one request, with the blocks of `request`, that selects ids in the step of an
/// indexer.
pub fn selection(request: usize, indexer: usize, at: [i32; 2], ids: &[i32]) -> OwnedBatch {
    let [state, generation] = at;
    let mut owned = OwnedBatch { block_stride: 8, indexer, ..OwnedBatch::new(K, 0) };
    owned.push([state, generation, -1, 100], &[ids.to_vec()]);
    owned.blocks.extend(BLOCKS[request]);
    owned
}

/// Selects ids in the step of an indexer, of request 1 in state 1 and of request 0 in others, and
/// checks every layer of the indexer. Returns the ids that were missed.
pub fn select(
    engine: &mut Engine,
    plan: &mut Plan,
    indexer: usize,
    at: [i32; 2],
    ids: &[i32],
) -> Vec<i32> {
    select_of(engine, plan, usize::from(at[0] == 1), indexer, at, ids)
}

/// Selects ids of a request as [`select`] does.
pub fn select_of(
    engine: &mut Engine,
    plan: &mut Plan,
    request: usize,
    indexer: usize,
    at: [i32; 2],
    ids: &[i32],
) -> Vec<i32> {
    let owned = selection(request, indexer, at, ids);
    engine.plan(&owned.batch(), plan).unwrap();
    for layer in (0..3).filter(|&layer| usize::from(layer > 0) == indexer) {
        engine.transfer(plan, layer, None).unwrap();
        let content = |_, id| (id, (10 * request + layer) as u32);
        assert_eq!(exact::check_step(engine, plan, &owned, layer, content), K);
    }
    plan.misses(0).id.to_vec()
}

pub fn ids(first: i32) -> Vec<i32> {
    (0..K as i32).map(|lane| (first + 3 * lane) % 100).collect()
}

#[test]
fn one_append_writes_the_rows_of_a_prefill() {
    on_both_devices(&config(), empty_pool, |engine| {
        prefill(engine);
        check_pool(engine);
        let mut plan = engine.new_plan(4, 2).unwrap();
        assert_eq!(select(engine, &mut plan, 1, [1, 1], &ids(0)).len(), K);
        // A plan still takes N_q rows per request.
        let refused = engine.plan(&tokens(0, [3, 1]).batch(), &mut plan);
        expect_refusal(refused, &["tokens of a request is 3", "0..=2"]);
        // Rows outside of the block table are refused before anything is written.
        expect_refusal(append(engine, &tokens(120, [9, 1]), 0), &["appended id is 128"]);
        check_pool(engine);
    });
}

#[test]
fn one_append_in_a_stream_writes_the_rows_of_a_prefill_from_device_memory() {
    on_ascend(&config(), empty_pool, |engine, _, context| {
        let stream = Stream::new(context).unwrap();
        let owned = tokens(0, [128, 100]);
        let rows: Vec<FreshRows> = (0..3).map(|layer| rows_of(&owned, layer)).collect();
        let arrays = DeviceArrays::new(context, &owned, &rows).unwrap();
        arrays.write(&owned, &rows).unwrap();
        let batch = DeviceBatch { ids: Default::default(), k: 0, ..arrays.batch() };
        let most = owned.rows();
        for layer in 0..3 {
            let fresh = DeviceFresh { segments: &arrays.fresh(layer) };
            // SAFETY: the arrays outlive the work, which is waited for below.
            let mut append = |rows| unsafe {
                engine.enqueue_append(&batch, rows, &[layer], &fresh, stream.raw())
            };
            append(most).unwrap();
            expect_refusal(append(most + 1), &["229 rows"]);
        }
        stream.synchronize(10_000).unwrap();
        check_pool(engine);
    });
}

/// That a load is refused while a layer lacks rows, and what it leaves then, is checked by random calls.
#[test]
fn a_refused_load_changes_nothing_and_loaded_ids_are_hits_of_the_first_selection() {
    on_both_devices(&config(), empty_pool, |engine| {
        prefill(engine);
        let mut plan = engine.new_plan(2, 1).unwrap();
        // More ids than K, among them padding, one twice and one that is no token.
        let (mut ids, many) = ((40..90).collect::<Vec<i32>>(), vec![0; SLOTS + 1]);
        ids.extend([-1, 45, 100]);
        let (generation, seq_len, block_table) = (1, 100, &BLOCKS[0][..]);
        let good = Load { indexer: 1, state: 0, generation, seq_len, ids: &ids, block_table };
        let (table, stats) = (engine.read_table(1, 0).unwrap().to_vec(), engine.stats());
        for (bad, part) in [
            (Load { state: 3, ..good }, "state is 3"),
            (Load { ids: &many, ..good }, "ids to load is 193"),
            (Load { indexer: 2, ..good }, "indexer is 2"),
            (Load { seq_len: -1, ..good }, "seq_len is -1"),
            (Load { block_table: &[], ..good }, "block_stride is 0"),
            (Load { state: 3, ids: &[], ..good }, "state is 3"),
        ] {
            expect_refusal(engine.load(&bad, &mut plan), &[part]);
        }
        assert!(engine.read_table(1, 0).unwrap() == table && engine.stats() == stats);
        assert_eq!(engine.load(&Load { ids: &[], ..good }, &mut plan).unwrap(), 0);
        assert_eq!([(); 2].map(|()| engine.load(&good, &mut plan).unwrap()), [50, 0]);
        // The ids are hits of the first selection. The other indexer and another generation have nothing.
        let selected: Vec<i32> = (0..K as i32).map(|lane| 40 + lane * 2).collect();
        assert_eq!(select(engine, &mut plan, 1, [0, 1], &selected), Vec::<i32>::new());
        assert_eq!(select(engine, &mut plan, 0, [0, 1], &selected), selected);
        assert_eq!(select(engine, &mut plan, 1, [0, 2], &selected), selected);
    });
}
