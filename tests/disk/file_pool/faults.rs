//! Faults of a disk below an engine. A call that fails names the row, no slot is wrong afterwards, and the
//! engine goes on as its error says.

use std::time::Duration;

use avsg::disk::{Direction, PoolFile};
use avsg::engine::{Engine, Fresh, Load};
use avsg::plan::Plan;
use avsg::pool::HostPool;
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::content::check_row;
use avsg_testkit::faulty_disk::{Fault, Faults};
use avsg_testkit::fresh::FreshRows;

use super::pair::{self, K, ROWS, Setting};

const EIO: i32 = 5;
const ENOSPC: i32 = 28;
/// The time limit of a pool whose disk hangs.
const SOON: Duration = Duration::from_millis(60);

/// A format that is read through the engine's bounce buffer, and one that is read into slots.
const FORMATS: [&[[usize; 2]]; 2] = [&[[40, 47], [9, 9]], &[[1000, 1024]]];
/// Layers of an indexer with one layer and of one with two.
const LAYERS: [usize; 2] = [0, 1];

/// An engine over a disk with faults, one over memory, and a plan of each.
struct Pair {
    file: (Engine, Plan),
    memory: (Engine, Plan),
    faults: Faults,
}

impl Pair {
    fn new(setting: &Setting) -> Self {
        let faults = Faults::default();
        let wrap = |disk| faults.wrap(disk);
        let pool = HostPool::new_through(&setting.in_file(), &wrap).unwrap();
        pair::fill(&pool);
        // Rows in the queue of writes would not be read from the disk.
        pool.flush().unwrap();
        Self::over(setting, pool, faults)
    }

    fn over(setting: &Setting, pool: HostPool, faults: Faults) -> Self {
        let with_plan = |engine: Engine| {
            let plan = engine.new_plan(4, 2).unwrap();
            (engine, plan)
        };
        let file = with_plan(Engine::new(setting.config(), pool).unwrap());
        let memory = with_plan(pair::engine(setting, &setting.in_memory()).unwrap());
        Self { file, memory, faults }
    }

    fn both(&mut self, mut call: impl FnMut(&mut Engine, &mut Plan)) {
        for (engine, plan) in [&mut self.file, &mut self.memory] {
            call(engine, plan);
        }
    }

    #[track_caller]
    fn check(&self) {
        assert!(pair::slots(&self.file.0) == pair::slots(&self.memory.0));
    }

    /// Plans a batch and transfers it to all layers of its indexer.
    fn step(&mut self, step: usize, layer: usize) {
        let owned = batch(step, layer);
        self.both(|engine, plan| {
            engine.step(&owned.batch(), plan, layer, None).unwrap();
            for other in pair::layers_beside(layer) {
                engine.transfer(plan, other, None).unwrap();
            }
        });
        self.check();
    }
}

/// Returns a batch of two requests, the second with some ids of the first.
fn batch(step: usize, layer: usize) -> OwnedBatch {
    let id = |lane: usize, request: usize| ((step * 90 + lane * 7 + request * 3) % ROWS) as i32;
    let mut owned = OwnedBatch { indexer: pair::OF_LAYER[layer], ..OwnedBatch::new(K, 0) };
    for request in 0..2 {
        let ids = (0..K).map(|lane| id(lane, request * (lane % 2))).collect();
        owned.push([request as i32, 1, -1, ROWS as i32], &[ids]);
    }
    owned
}

/// Runs a test for each format, kind of indexer and way to read.
fn everywhere(test: impl Fn(&Setting, usize)) {
    for segments in FORMATS {
        for io_uring in [true, false] {
            for layer in LAYERS {
                let mut setting = Setting::new(segments);
                setting.file = PoolFile { io_uring, ..setting.file };
                test(&setting, layer);
            }
        }
    }
}

/// Asserts that a call failed with an error that contains each of `parts`.
#[track_caller]
fn expect<T>(result: avsg::Result<T>, parts: &[&str]) {
    let text = result.err().expect("an error").to_string();
    for part in parts {
        assert!(text.contains(part), "{part:?} in {text:?}");
    }
}

/// The faults of a read, and what their errors name.
const READ_FAULTS: [(Fault, &[&str]); 2] = [
    (Fault::Errno(EIO), &["row ", "at byte ", "Input/output error"]),
    (Fault::End, &["row ", "at byte "]),
];

#[test]
fn a_transfer_that_failed_is_repeated() {
    everywhere(|setting, layer| {
        let mut pair = Pair::new(setting);
        pair.step(0, layer);
        for (step, (fault, parts)) in (1..).zip(READ_FAULTS) {
            for skip in [0, 5] {
                let owned = batch(step * 2 + skip, layer);
                pair.faults.set_nth(fault, Direction::Read, skip);
                let (engine, plan) = &mut pair.file;
                expect(engine.step(&owned.batch(), plan, layer, None), parts);
                // The plan is known, and no later plan is transferred before it.
                let mut next = engine.new_plan(4, 2).unwrap();
                let later = batch(step * 2 + skip + 1, layer);
                let refused = engine.step(&later.batch(), &mut next, layer, None);
                expect(refused, &["lacks the rows of plan"]);
                pair.faults.set_nth(fault, Direction::Read, 2);
                expect(engine.transfer(plan, layer, None), parts);
                assert_eq!(pair.faults.hits(), 2);
                pair.faults.clear();
                engine.transfer(plan, layer, None).unwrap();
                let (engine, plan) = &mut pair.memory;
                engine.step(&owned.batch(), plan, layer, None).unwrap();
                pair.both(|engine, plan| {
                    for other in pair::layers_beside(layer) {
                        engine.transfer(plan, other, None).unwrap();
                    }
                });
                pair.check();
            }
        }
        pair.step(40, layer);
        // The tables learned once from each plan.
        let indexer = pair::OF_LAYER[layer];
        for state in 0..2 {
            let of =
                |engine: &mut Engine| engine.read_indexer_table(indexer, state).unwrap().to_vec();
            assert!(of(&mut pair.file.0) == of(&mut pair.memory.0));
        }
    });
}

#[test]
fn a_plan_that_was_not_transferred_is_discarded() {
    everywhere(|setting, layer| {
        let mut pair = Pair::new(setting);
        pair.step(0, layer);
        for (step, (fault, parts)) in (1..).zip(READ_FAULTS) {
            let owned = batch(step, layer);
            pair.faults.set_nth(fault, Direction::Read, 1);
            let (engine, plan) = &mut pair.file;
            expect(engine.step(&owned.batch(), plan, layer, None), parts);
            pair.faults.clear();
            let (engine, plan) = &mut pair.memory;
            engine.plan(&owned.batch(), plan).unwrap();
            pair.both(|engine, plan| engine.discard(plan).unwrap());
            // Both miss the ids again.
            let misses = |(engine, plan): &mut (Engine, Plan)| {
                engine.step(&owned.batch(), plan, layer, None).unwrap();
                plan.total_misses()
            };
            let count = misses(&mut pair.file);
            assert_eq!(count, misses(&mut pair.memory));
            assert!(count > K);
            pair.both(|engine, plan| {
                for other in pair::layers_beside(layer) {
                    engine.transfer(plan, other, None).unwrap();
                }
            });
            // The slots that failed reads wrote belong to no id, and may differ.
            let state = |engine: &mut Engine| pair::listed(engine, layer);
            assert!(state(&mut pair.file.0) == state(&mut pair.memory.0));
        }
    });
}

#[test]
fn a_short_read_is_no_fault() {
    everywhere(|setting, layer| {
        let mut pair = Pair::new(setting);
        let block = pair.file.0.pool().disk_info().unwrap().block;
        pair.faults.set_all(Fault::Short(block), Direction::Read);
        for step in 0..3 {
            pair.step(step, layer);
        }
    });
}

/// Repeats a transfer as long as it runs out of time, which it may on a machine with other work.
fn patiently(mut transfer: impl FnMut() -> avsg::Result<()>) {
    let late = |error: &avsg::Error| error.to_string().contains("timed out");
    let result = (0..1000).map(|_| transfer()).find(|result| !result.as_ref().is_err_and(late));
    result.expect("an end of the waits").unwrap();
}

#[test]
fn a_disk_that_hangs_is_named_and_waited_for() {
    for (segments, layer) in FORMATS.into_iter().zip([1, 0]) {
        let mut setting = Setting::new(segments);
        // The file is made and filled with a longer limit.
        let path = setting.file.path.join("kept");
        setting.file = PoolFile { keep: true, path, ..setting.file };
        let filled = HostPool::new(&setting.in_file()).unwrap();
        pair::fill(&filled);
        filled.flush().unwrap();
        drop(filled);
        setting.file.timeout = SOON;
        let faults = Faults::default();
        let pool = HostPool::open_through(&setting.in_file(), &|disk| faults.wrap(disk)).unwrap();
        let mut pair = Pair::over(&setting, pool, faults);
        let owned = batch(1, layer);
        pair.faults.set_all(Fault::Slow, Direction::Read);
        let (engine, plan) = &mut pair.file;
        expect(engine.step(&owned.batch(), plan, layer, None), &["timed out"]);
        // Nothing else is read into memory that the disk may still write.
        expect(engine.transfer(plan, layer, None), &["earlier transfer", "timed out"]);
        pair.faults.clear();
        patiently(|| engine.transfer(plan, layer, None));
        let (engine, plan) = &mut pair.memory;
        engine.step(&owned.batch(), plan, layer, None).unwrap();
        for other in pair::layers_beside(layer) {
            pair.both(|engine, plan| patiently(|| engine.transfer(plan, other, None)));
        }
        pair.check();
        // An engine may be dropped meanwhile.
        pair.faults.set_all(Fault::Slow, Direction::Read);
        let owned = batch(2, layer);
        let (engine, plan) = &mut pair.file;
        expect(engine.step(&owned.batch(), plan, layer, None), &["timed out"]);
    }
}

#[test]
fn a_load_that_failed_is_forgotten_and_repeated() {
    everywhere(|setting, layer| {
        let mut pair = Pair::new(setting);
        pair.step(0, layer);
        let ids: Vec<i32> = (100..190).collect();
        let indexer = pair::OF_LAYER[layer];
        let (seq_len, block_table) = (ROWS as i32, &[][..]);
        let load = Load { indexer, state: 1, generation: 1, seq_len, ids: &ids, block_table };
        pair.faults.set_nth(Fault::Errno(EIO), Direction::Read, 1);
        let (engine, plan) = &mut pair.file;
        expect(engine.load(&load, plan), &["row ", "Input/output error"]);
        pair.faults.clear();
        engine.load(&load, plan).unwrap();
        let (engine, plan) = &mut pair.memory;
        engine.load(&load, plan).unwrap();
        for (engine, plan) in [&mut pair.file, &mut pair.memory] {
            assert_eq!(engine.load(&load, plan).unwrap(), 0, "all ids hit");
        }
        pair.step(3, layer);
    });
}

/// Appends K rows of a layer.
fn append(engine: &mut Engine, first: usize, layer: usize) -> avsg::Result<()> {
    let mut owned = OwnedBatch::new(K, 0);
    owned.push([0, 1, first as i32, (first + K) as i32], &vec![vec![-1; K]; K]);
    let mut fresh = FreshRows::new(engine.pool().format(), K);
    (0..K).for_each(|at| fresh.put(at, (first + at) as i32, 77 + layer as u32));
    engine.append(&owned.batch(), layer, &Fresh { segments: &fresh.segments() })
}

#[test]
fn a_write_that_failed_is_told_and_tried_again() {
    let layers = 0..pair::OF_LAYER.len();
    let places = (0..ROWS - K).step_by(K).flat_map(|first| layers.clone().map(move |l| (first, l)));
    everywhere(|setting, layer| {
        let errno = if setting.file.io_uring { EIO } else { ENOSPC };
        let file = PoolFile { queue_bytes: 1 << 16, ..setting.file.clone() };
        let (mut setting, format) = (setting.clone(), setting.format());
        setting.file = file;
        let mut pair = Pair::new(&setting);
        pair.step(0, layer);
        pair.faults.set_all(Fault::Errno(errno), Direction::Write);
        // More rows than the queue of writes holds.
        let mut told = Vec::new();
        for (first, layer) in places.clone() {
            match append(&mut pair.file.0, first, layer) {
                Ok(()) => append(&mut pair.memory.0, first, layer).unwrap(),
                Err(error) => {
                    assert!(error.to_string().contains("row "), "{error}");
                    told.push((first, layer));
                }
            }
        }
        assert!(!told.is_empty());
        // A row that was refused is not what it was before.
        let (mut row, mut refused) = (vec![0; format.bytes()], 0);
        for (id, layer) in told.iter().flat_map(|&(first, l)| (0..K).map(move |n| (first + n, l))) {
            match pair.file.0.pool().read_row(layer, id, &mut row) {
                Ok(()) => assert!(check_row(id as i32, 77 + layer as u32, &row)),
                Err(error) => {
                    assert!(error.to_string().contains("its write was refused"), "{error}");
                    refused += 1;
                }
            }
        }
        assert!(refused > 0);
        expect(pair.file.0.pool().flush(), &["row ", "at byte "]);
        pair.faults.clear();
        // What was refused is appended again, and what was taken is not lost.
        for (first, layer) in told {
            pair.both(|engine, _| append(engine, first, layer).unwrap());
        }
        pair.file.0.pool().flush().unwrap();
        let rows = |engine: &Engine| pair::rows(engine.pool());
        assert!(rows(&pair.file.0) == rows(&pair.memory.0));
        pair.both(|engine, _| {
            for state in 0..2 {
                engine.invalidate(state, 0..ROWS as i32).unwrap();
            }
        });
        pair.step(1, layer);
    });
}
