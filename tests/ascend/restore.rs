//! Prefill and restore, on the CPU and on the simulated device: many rows of a request are written by
//! one append, and chosen ids are loaded before they are selected.

use std::sync::Arc;

use avsg::ascend::acl::{Context, Stream};
use avsg::device::params::Params;
use avsg::engine::{
    Config, DeviceBatch, DeviceFresh, Engine, Fresh, Indexers, Load, MachineChoice,
};
use avsg::plan::Plan;
use avsg::pool::HostPool;
use avsg::rows::RowFormat;
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::content::check_row;
use avsg_testkit::device_arrays::DeviceArrays;
use avsg_testkit::fresh::FreshRows;
use avsg_testkit::{exact, fixture};

use crate::harness::on_both_devices;

pub const K: usize = 24;
pub const SLOTS: usize = 128;
const PAGE: u32 = 16;
/// The blocks of two requests, in any order.
const BLOCKS: [[i32; 8]; 2] = [[9, 2, 14, 5, 0, 11, 7, 3], [8, 1, 15, 4, 10, 6, 13, 12]];

pub fn config() -> Config {
    let params = Params { page: PAGE, ..Params::wide(K as u32, 2, SLOTS as u32) };
    Config {
        cores: 3,
        machine: MachineChoice::Emu,
        indexers: Indexers::of_layers(&[0, 1, 1]).unwrap(),
        ..Config::new(params, 3)
    }
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
pub fn tokens(first: i32, counts: [usize; 2]) -> OwnedBatch {
    let mut owned = OwnedBatch { block_stride: 8, ..OwnedBatch::new(K, 0) };
    for (request, count) in counts.into_iter().enumerate() {
        let rows = vec![vec![-1; K]; count];
        owned.push([request as i32, 1, first, first + count as i32], &rows);
        owned.blocks.extend(BLOCKS[request]);
    }
    owned
}

/// Returns the rows of a batch of [`tokens`]: id x of request r has version 10 r + layer.
pub fn rows_of(owned: &OwnedBatch, layer: usize) -> FreshRows {
    let mut fresh = FreshRows::new(&format(), owned.rows());
    for request in 0..2 {
        let (from, to) = (owned.cu_q[request] as usize, owned.cu_q[request + 1] as usize);
        for at in from..to {
            let id = owned.stable[request] + (at - from) as i32;
            fresh.put(at, id, (10 * request + layer) as u32);
        }
    }
    fresh
}

pub fn with_fresh<T>(rows: &FreshRows, run: impl FnOnce(&Fresh<'_>) -> T) -> T {
    let parts: Vec<&[u8]> = rows.parts().iter().map(|part| &part[..]).collect();
    run(&Fresh { segments: &parts })
}

/// Writes all rows of both requests with one append per layer.
pub fn prefill(engine: &mut Engine) {
    let owned = tokens(0, [128, 100]);
    for layer in 0..3 {
        let rows = rows_of(&owned, layer);
        with_fresh(&rows, |fresh| engine.append(&owned.batch(), layer, fresh).unwrap());
    }
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
    on_both_devices(&config(), empty_pool, |engine, _, _| {
        prefill(engine);
        check_pool(engine);
        let mut plan = engine.new_plan(4, 2).unwrap();
        assert_eq!(select(engine, &mut plan, 1, [1, 1], &ids(0)).len(), K);
        // A plan still takes N_q rows per request.
        let text = engine.plan(&tokens(0, [3, 1]).batch(), &mut plan).unwrap_err().to_string();
        assert!(text.contains("tokens of a request is 3") && text.contains("0..=2"), "{text}");
        // Rows outside of the block table are refused before anything is written.
        let long = tokens(120, [9, 1]);
        let rows = rows_of(&long, 0);
        let text = with_fresh(&rows, |fresh| engine.append(&long.batch(), 0, fresh)).unwrap_err();
        assert!(text.to_string().contains("appended id is 128"), "{text}");
        check_pool(engine);
    });
}

#[test]
fn one_append_in_a_stream_writes_the_rows_of_a_prefill_from_device_memory() {
    on_both_devices(&config(), empty_pool, |engine, _, context| {
        let Some(context) = context else { return };
        prefill_in_a_stream(engine, context);
        check_pool(engine);
    });
}

fn prefill_in_a_stream(engine: &mut Engine, context: &Arc<Context>) {
    let stream = Stream::new(context).unwrap();
    let owned = tokens(0, [128, 100]);
    let rows: Vec<FreshRows> = (0..3).map(|layer| rows_of(&owned, layer)).collect();
    let arrays = DeviceArrays::new(context, &owned, &rows).unwrap();
    arrays.write(&owned, &rows).unwrap();
    let batch = DeviceBatch { ids: Default::default(), k: 0, ..arrays.batch() };
    let most = owned.rows();
    for layer in 0..3 {
        let segments = arrays.fresh(layer);
        let fresh = DeviceFresh { segments: &segments };
        // SAFETY: the arrays outlive the work, which is waited for below.
        unsafe { engine.enqueue_append(&batch, most, layer, &fresh, stream.raw()).unwrap() };
        // SAFETY: the call is refused.
        let refused =
            unsafe { engine.enqueue_append(&batch, most + 1, layer, &fresh, stream.raw()) };
        assert!(refused.unwrap_err().to_string().contains("229 rows"), "the rows are counted");
    }
    stream.synchronize(10_000).unwrap();
}

#[test]
fn loaded_ids_are_hits_of_the_first_selection() {
    on_both_devices(&config(), empty_pool, |engine, _, _| {
        prefill(engine);
        let mut plan = engine.new_plan(2, 1).unwrap();
        // More ids than K, among them padding and one twice.
        let mut chosen: Vec<i32> = (0..60).collect();
        chosen.extend([-1, 5, 100]);
        let load = |state: i32, ids| Load {
            indexer: 1,
            state,
            generation: 7,
            seq_len: 100,
            ids,
            block_table: &BLOCKS[1],
        };
        assert_eq!(engine.load(&load(1, &chosen), &mut plan).unwrap(), 60);
        assert_eq!(engine.load(&load(1, &chosen), &mut plan).unwrap(), 0);
        let selected: Vec<i32> = (0..K as i32).map(|lane| lane * 2).collect();
        assert_eq!(select(engine, &mut plan, 1, [1, 7], &selected), Vec::<i32>::new());
        // The other indexer and another generation have nothing.
        assert_eq!(select(engine, &mut plan, 0, [1, 7], &selected), selected);
        assert_eq!(select(engine, &mut plan, 1, [1, 8], &selected), selected);
        assert_eq!(engine.load(&load(1, &[]), &mut plan).unwrap(), 0);
        let many = vec![0; SLOTS + 1];
        for (bad, part) in
            [(load(1, &many), "ids to load is 129"), (load(3, &chosen), "state is 3")]
        {
            let text = engine.load(&bad, &mut plan).unwrap_err().to_string();
            assert!(text.contains(part), "{part:?} in {text:?}");
        }
    });
}

#[test]
fn a_refused_load_changes_nothing() {
    on_both_devices(&config(), empty_pool, |engine, _, _| {
        prefill(engine);
        let mut plans = [(); 2].map(|()| engine.new_plan(2, 1).unwrap());
        let owned = selection(0, 1, [0, 1], &ids(3));
        engine.plan(&owned.batch(), &mut plans[0]).unwrap();
        engine.transfer(&mut plans[0], 1, None).unwrap();
        let chosen: Vec<i32> = (40..90).collect();
        let good = Load {
            indexer: 1,
            state: 0,
            generation: 1,
            seq_len: 100,
            ids: &chosen,
            block_table: &BLOCKS[0],
        };
        let (table, stats) = (engine.read_indexer_table(1, 0).unwrap().to_vec(), engine.stats());
        let refused = "plan number is 2, but layer 2 lacks the rows of plan 1 for state 0";
        for (bad, into, part) in [
            (good, 0, refused),
            (good, 1, refused),
            (Load { state: 3, ..good }, 1, "state is 3"),
            (Load { indexer: 2, ..good }, 1, "indexer is 2"),
            (Load { seq_len: -1, ..good }, 1, "seq_len is -1"),
            (Load { block_table: &[], ..good }, 1, "block_stride is 0"),
            (Load { state: 3, ids: &[], ..good }, 1, "state is 3"),
        ] {
            let text = engine.load(&bad, &mut plans[into]).unwrap_err().to_string();
            assert!(text.contains(part), "{part:?} in {text:?}");
        }
        assert!(engine.read_indexer_table(1, 0).unwrap() == table && engine.stats() == stats);
        // The plan is still the last one, and due on layer 2.
        engine.transfer(&mut plans[0], 2, None).unwrap();
        for layer in 1..3 {
            let content = |_, id| (id, layer as u32);
            assert_eq!(exact::check_step(engine, &plans[0], &owned, layer, content), K);
        }
        assert_eq!(engine.load(&good, &mut plans[1]).unwrap(), 50 - plan_hits(&chosen));
        assert_eq!(select(engine, &mut plans[0], 1, [0, 1], &chosen[..K]), Vec::<i32>::new());
    });
}

/// Returns how many ids of a load the selection `ids(3)` has put into slots.
fn plan_hits(chosen: &[i32]) -> usize {
    ids(3).iter().filter(|id| chosen.contains(id)).count()
}
