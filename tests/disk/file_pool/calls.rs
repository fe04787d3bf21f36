//! Random calls of an engine over a pool in memory and of one over a pool in a file: both permit the same
//! calls, and after each of them all slots have the same bytes.

use std::ops::Range;

use avsg::Result;
use avsg::disk::PoolFile;
use avsg::engine::{Engine, Fresh, Load};
use avsg::plan::Plan;
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::content::fill_row;
use avsg_testkit::fresh::FreshRows;
use avsg_testkit::splitmix::SplitMix64;
use avsg_testkit::step_result::StepResult;
use avsg_testkit::tier;

use super::pair::{self, K, OF_LAYER, ROWS, STATES, Setting};

const PLANS: usize = 3;
/// Tokens of the longest prefill.
const PREFILL: usize = 70;

/// A call of an engine. Plans are numbers below [`PLANS`].
#[derive(Clone, Debug)]
enum Call {
    Plan(usize, OwnedBatch),
    Step(usize, OwnedBatch, usize),
    Transfer(usize, usize),
    /// Transfers a plan to every layer of its indexer. After each transfer, the row of this miss is written
    /// again.
    TransferAll(usize, usize),
    /// Transfers a plan to every layer of its indexer in one call.
    TransferLayers(usize),
    Discard(usize),
    /// Appends the fresh rows of the batch, in the version, to a layer.
    Append(OwnedBatch, usize, u32),
    /// Appends the fresh rows of the batch, in the version and those above it, from this layer on.
    AppendLayers(OwnedBatch, usize, u32),
    /// From a state in a generation to another state in another generation.
    Fork([usize; 2], [i32; 2]),
    /// Loads ids for an indexer, with the plan of this number.
    Load(usize, usize, [i32; 2], Vec<i32>),
    Invalidate(usize, Range<i32>),
    /// Writes a row of a layer in a version, or only its last segment.
    Write(usize, usize, u32, bool),
    Flush,
}

/// An engine, its plans, and the batches that they were made for.
struct Caller {
    engine: Engine,
    plans: Vec<Plan>,
    batches: Vec<OwnedBatch>,
}

impl Caller {
    fn new(engine: Engine) -> Self {
        let plans = (0..PLANS).map(|_| engine.new_plan(4, 2).unwrap()).collect();
        Self { engine, plans, batches: vec![OwnedBatch::new(K, 0); PLANS] }
    }

    /// Makes a call and returns its number, if it has one, or its error.
    fn call(&mut self, call: &Call) -> std::result::Result<usize, String> {
        self.run(call).map_err(|error| error.to_string())
    }

    fn run(&mut self, call: &Call) -> Result<usize> {
        let engine = &mut self.engine;
        match call {
            Call::Plan(at, owned) => {
                engine.plan(&owned.batch(), &mut self.plans[*at])?;
                self.batches[*at] = owned.clone();
            }
            Call::Step(at, owned, layer) => {
                let rows = fresh(engine, owned, 1000 + *layer as u32);
                let segments = rows.segments();
                let fresh = Fresh { segments: &segments };
                engine.step(&owned.batch(), &mut self.plans[*at], *layer, Some(&fresh))?;
                self.batches[*at] = owned.clone();
            }
            Call::Transfer(at, layer) => self.transfer(*at, *layer)?,
            Call::TransferAll(at, nth) => {
                let indexer = self.plans[*at].indexer();
                for layer in (0..OF_LAYER.len()).filter(|&layer| OF_LAYER[layer] == indexer) {
                    self.transfer(*at, layer)?;
                    let row = self.plans[*at].misses(0).row.get(*nth).copied();
                    let Some(row) = row.and_then(|row| usize::try_from(row).ok()) else { continue };
                    for later in layer..OF_LAYER.len() {
                        self.run(&Call::Write(later, row, *nth as u32, true))?;
                    }
                }
            }
            Call::TransferLayers(at) => {
                let (plan, owned) = (&mut self.plans[*at], &self.batches[*at]);
                let of_plan = |layer: &usize| OF_LAYER[*layer] == plan.indexer();
                let layers: Vec<usize> = (0..OF_LAYER.len()).filter(of_plan).collect();
                let rows = layers.iter().map(|&layer| fresh(engine, owned, 1000 + layer as u32));
                let rows: Vec<FreshRows> = rows.collect();
                let segments = FreshRows::segments_of(&rows);
                engine.transfer_layers(plan, &layers, Some(&Fresh { segments: &segments }))?;
            }
            Call::Discard(at) => {
                engine.discard(&mut self.plans[*at])?;
                self.batches[*at] = OwnedBatch::new(K, 0);
            }
            Call::Append(owned, layer, version) => {
                let rows = fresh(engine, owned, *version);
                let segments = rows.segments();
                engine.append(&owned.batch(), *layer, &Fresh { segments: &segments })?;
            }
            Call::AppendLayers(owned, first, version) => {
                let layers: Vec<usize> = (*first..OF_LAYER.len()).collect();
                let rows = layers.iter().map(|&layer| fresh(engine, owned, version + layer as u32));
                let rows: Vec<FreshRows> = rows.collect();
                let segments = FreshRows::segments_of(&rows);
                engine.append_layers(&owned.batch(), &layers, &Fresh { segments: &segments })?;
            }
            Call::Fork([from, to], [old, new]) => engine.fork(*from, *old, *to, *new)?,
            Call::Load(at, indexer, [state, generation], ids) => {
                let (state, generation, indexer) = (*state, *generation, *indexer);
                let blocks: Vec<i32> = blocks(engine.config().params.page);
                let (seq_len, block_table) = (ROWS as i32, &blocks[..]);
                let load = Load { indexer, state, generation, seq_len, ids, block_table };
                self.batches[*at] = OwnedBatch::new(K, 0);
                return engine.load(&load, &mut self.plans[*at]);
            }
            Call::Invalidate(state, ids) => return engine.invalidate(*state, ids.clone()),
            Call::Write(layer, row, version, whole) => {
                let format = engine.pool().format().clone();
                let mut bytes = vec![0; format.bytes()];
                fill_row(*row as i32, *version, &mut bytes);
                if *whole {
                    engine.pool().write_row(*layer, *row, &bytes)?;
                } else {
                    let last = format.as_slice().len() - 1;
                    let part = &bytes[..format.as_slice()[last].bytes];
                    engine.pool().write_segment(*layer, last, *row, part)?;
                }
            }
            Call::Flush => engine.pool().flush()?,
        }
        Ok(0)
    }

    fn transfer(&mut self, at: usize, layer: usize) -> Result<()> {
        let rows = fresh(&self.engine, &self.batches[at], 1000 + layer as u32);
        let segments = rows.segments();
        self.engine.transfer(&mut self.plans[at], layer, Some(&Fresh { segments: &segments }))
    }

    fn result(&self, at: usize) -> Option<StepResult> {
        let (plan, owned) = (&self.plans[at], &self.batches[at]);
        (plan.requests() + 1 == owned.cu_q.len()).then(|| StepResult::from_plan(plan, &owned.cu_q))
    }
}

/// Returns the fresh rows of a batch.
fn fresh(engine: &Engine, owned: &OwnedBatch, version: u32) -> FreshRows {
    let mut rows = FreshRows::new(engine.pool().format(), owned.rows().max(1));
    (0..owned.rows()).for_each(|at| rows.put(at, at as i32, version));
    rows
}

/// Returns the blocks of every request: all of the pool, in descending order.
fn blocks(page: u32) -> Vec<i32> {
    if page == 0 { Vec::new() } else { (0..(ROWS / page as usize) as i32).rev().collect() }
}

/// Draws the n-th call. A request that no plan can be transferred for has another generation later.
fn draw(rng: &mut SplitMix64, n: usize, page: u32, last: usize) -> Call {
    let (layer, indexer) = (rng.below(OF_LAYER.len()), rng.below(3));
    let at = if rng.below(3) > 0 { last } else { rng.below(PLANS) };
    let states = [rng.below(STATES), rng.below(STATES)];
    let kind = rng.below(48);
    let mut generation = || (n / 16) as i32 - i32::from(rng.below(10) == 0);
    let generations = [generation(), generation()];
    let mut owned = OwnedBatch { indexer, ..OwnedBatch::new(K, 0) };
    owned.block_stride = blocks(page).len();
    for (request, generation) in generations.into_iter().enumerate() {
        let state = (states[0] + request) % STATES;
        let state = if rng.below(5) == 0 { -1 } else { state as i32 };
        let tokens = rng.below(3);
        let stable = if rng.below(2) == 0 { -1 } else { rng.below(ROWS - PREFILL) as i32 };
        let seq = if stable < 0 { ROWS as i32 } else { stable + tokens as i32 };
        let rows: Vec<Vec<i32>> = (0..tokens).map(|_| ids(rng, seq)).collect();
        owned.push([state, generation, stable, seq], &rows);
        owned.blocks.extend(blocks(page));
    }
    let first = rng.below(ROWS - PREFILL) as i32;
    match kind {
        0..6 => Call::Plan(at, owned),
        6..16 => Call::Step(at, OwnedBatch { indexer: OF_LAYER[layer], ..owned }, layer),
        16..22 => Call::Transfer(at, layer),
        22..27 => Call::TransferAll(at, rng.below(2 * K)),
        27..30 => Call::TransferLayers(at),
        30..34 => Call::Discard(at),
        34 => Call::Fork(states, generations),
        35 => {
            let ids = (first..first + rng.below(60) as i32).collect();
            Call::Load(at, indexer, [states[0] as i32, generations[0]], ids)
        }
        36 => Call::Invalidate(states[0], first..first + 1 + rng.below(40) as i32),
        37..39 => Call::Append(owned, layer, rng.below(1 << 20) as u32),
        39..41 => Call::AppendLayers(owned, layer, rng.below(1 << 20) as u32),
        41 => {
            let tokens = 1 + rng.below(PREFILL);
            let mut owned = OwnedBatch::new(K, 0);
            owned.push([0, 1, first, first + tokens as i32], &vec![vec![-1; K]; tokens]);
            (owned.blocks, owned.block_stride) = (blocks(page), blocks(page).len());
            Call::AppendLayers(owned, layer, rng.below(1 << 20) as u32)
        }
        42..47 => Call::Write(layer, rng.below(ROWS), rng.below(1 << 20) as u32, rng.below(3) > 0),
        _ => Call::Flush,
    }
}

/// Returns K ids below `seq`, some of which are padding, repeated, neighbours or far away.
fn ids(rng: &mut SplitMix64, seq: i32) -> Vec<i32> {
    let base = rng.below(seq.max(1) as usize) as i32;
    (0..K as i32)
        .map(|lane| match rng.below(8) {
            0 => -1,
            1 => base,
            2..5 => (base + lane) % seq.max(1),
            _ => rng.below(seq.max(1) as usize) as i32,
        })
        .collect()
}

/// Makes random calls of both engines, and compares them after each. Returns how many
/// plans were transferred to all layers, and how many calls were refused.
fn compare(setting: &Setting, seed: u64, calls: usize) -> [usize; 2] {
    let memory = pair::engine(setting, &setting.in_memory()).unwrap();
    let file = pair::engine(setting, &setting.in_file()).unwrap();
    let mut callers = [Caller::new(memory), Caller::new(file)];
    let mut rng = SplitMix64::new(seed);
    let (mut transfers, mut refused, mut last) = (0, 0, 0);
    for n in 0..calls {
        let call = draw(&mut rng, n, setting.page, last);
        if let Call::Plan(at, _) | Call::Step(at, ..) = call {
            last = at;
        }
        let [memory, file] = callers.each_mut().map(|caller| caller.call(&call));
        let text = || format!("call {n} of seed {seed} with {setting:?}: {call:?}");
        assert_eq!(memory, file, "{}", text());
        refused += usize::from(memory.is_err());
        transfers += usize::from(memory.is_ok() && matches!(call, Call::TransferAll(..)));
        for at in 0..PLANS {
            let [memory, file] = callers.each_ref().map(|caller| caller.result(at));
            assert!(memory == file, "plan {at} after {}", text());
        }
        if n % 8 == 0 || n + 1 == calls {
            let [memory, file] = callers.each_ref().map(|caller| pair::slots(&caller.engine));
            let differ = memory.iter().zip(&file).position(|(memory, file)| memory != file);
            assert_eq!(differ, None, "byte of the slots after {}", text());
        }
    }
    let [memory, file] = callers.each_ref().map(|caller| pair::rows(caller.engine.pool()));
    assert!(memory == file, "rows of the pools, seed {seed} with {setting:?}");
    [transfers, refused]
}

/// Row sizes that are and are not multiples of a block, with and without room in the slots.
const SEGMENTS: [&[[usize; 2]]; 6] = [
    &[[64, 64]],
    &[[40, 47], [9, 9], [70, 71]],
    &[[512, 512]],
    &[[504, 512]],
    &[[504, 4096]],
    &[[1152, 1536]],
];

#[test]
fn random_calls_give_the_slots_of_a_pool_in_memory() {
    let all: Vec<_> = (0..SEGMENTS.len())
        .flat_map(|segments| (0..8).map(move |options| (segments, options)))
        .collect();
    let axes = |&(segments, options): &(usize, usize)| {
        let bits = (0..3).map(|bit| (options >> bit & 1).to_string());
        std::iter::once(segments.to_string()).chain(bits).collect()
    };
    let calls = if tier::thorough() { 500 } else { 150 };
    let cases = tier::cases("pools in files", all, 8, axes);
    let (count, mut sums) = (cases.len(), [0; 2]);
    for (at, (segments, options)) in cases.into_iter().enumerate() {
        let mut setting = Setting::new(SEGMENTS[segments]);
        let on = |bit: usize| options >> bit & 1 == 1;
        let buffered = on(0) || setting.file.buffered;
        let io_uring = !on(1);
        // A short queue of writes has to write records of which it has some layers.
        let queue_bytes = if at % 2 == 0 { 1 << 14 } else { setting.file.queue_bytes };
        setting.file = PoolFile { buffered, io_uring, queue_bytes, ..setting.file };
        setting.page = if on(2) { 16 } else { 0 };
        setting.cores = 1 + at % 3;
        let counts = compare(&setting, tier::SEED + at as u64, calls);
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    assert!(sums.iter().all(|&sum| sum > count * calls / 20), "{sums:?} of {count} times {calls}");
}
