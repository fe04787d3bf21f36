//! Random calls of an engine over a pool in memory and of one over a pool in a file: both permit the same
//! calls, and after each of them all slots have the same bytes.

use avsg::disk::PoolFile;
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::splitmix::SplitMix64;
use avsg_testkit::{memory, tier};

use super::pair::{self, K, OF_LAYER, ROWS, STATES, Setting};
use crate::caller::{Call, Caller, blocks};

const PLANS: usize = 3;
/// Tokens of the longest prefill.
const PREFILL: usize = 70;

/// Draws the n-th call. A request that no plan can be transferred for has another generation later.
fn draw(rng: &mut SplitMix64, n: usize, blocks: &[i32], last: usize) -> Call {
    let (layer, indexer) = (rng.below(OF_LAYER.len()), rng.below(3));
    let at = if rng.below(3) > 0 { last } else { rng.below(PLANS) };
    let states = [rng.below(STATES), rng.below(STATES)];
    let kind = rng.below(48);
    let mut generation = || (n / 16) as i32 - i32::from(rng.below(10) == 0);
    let generations = [generation(), generation()];
    let mut owned = OwnedBatch { indexer, ..OwnedBatch::new(K, 0) };
    owned.block_stride = blocks.len();
    for (request, generation) in generations.into_iter().enumerate() {
        let state = (states[0] + request) % STATES;
        let state = if rng.below(5) == 0 { -1 } else { state as i32 };
        let tokens = rng.below(3);
        let stable = if rng.below(2) == 0 { -1 } else { rng.below(ROWS - PREFILL) as i32 };
        let seq = if stable < 0 { ROWS as i32 } else { stable + tokens as i32 };
        let rows: Vec<Vec<i32>> = (0..tokens).map(|_| ids(rng, seq)).collect();
        owned.push([state, generation, stable, seq], &rows);
        owned.blocks.extend(blocks);
    }
    let first = rng.below(ROWS - PREFILL) as i32;
    match kind {
        0..6 => Call::Plan(at, owned),
        6..16 => Call::Step(at, OwnedBatch { indexer: OF_LAYER[layer], ..owned }, layer),
        16..22 => Call::Transfer(at, layer),
        22..27 => Call::TransferAll(at, rng.below(2 * K)),
        27..30 => Call::TransferLayers(at),
        30..34 => Call::Discard(at),
        34 => Call::Fork(states[0], generations[0], vec![states[1] as i32], vec![generations[1]]),
        35 => {
            let ids = (first..first + rng.below(60) as i32).collect();
            Call::Load(at, indexer, [states[0] as i32, generations[0]], ids)
        }
        36 => Call::Invalidate(states[0], first..first + 1 + rng.below(40) as i32),
        37..39 => Call::Append(owned, layer..layer + 1, rng.below(1 << 20) as u32),
        39..41 => Call::Append(owned, layer..OF_LAYER.len(), rng.below(1 << 20) as u32),
        41 => {
            let tokens = 1 + rng.below(PREFILL);
            let mut owned = OwnedBatch::new(K, 0);
            owned.push([0, 1, first, first + tokens as i32], &vec![vec![-1; K]; tokens]);
            (owned.blocks, owned.block_stride) = (blocks.to_vec(), blocks.len());
            Call::Append(owned, layer..OF_LAYER.len(), rng.below(1 << 20) as u32)
        }
        42..47 => Call::Write(layer, rng.below(ROWS), rng.below(1 << 20) as u32),
        _ => Call::Flush,
    }
}

/// Returns K ids below `seq`, some of which are padding, repeated, neighbours or far away.
fn ids(rng: &mut SplitMix64, seq: i32) -> Vec<i32> {
    let base = rng.below(seq.max(1) as usize) as i32;
    let id = |lane| match rng.below(8) {
        0 => -1,
        1 => base,
        2..5 => (base + lane) % seq.max(1),
        _ => rng.below(seq.max(1) as usize) as i32,
    };
    (0..K as i32).map(id).collect()
}

/// Makes random calls of both engines, and compares them after each. Returns how many
/// plans were transferred to all layers, and how many calls were refused.
fn compare(setting: &Setting, seed: u64, calls: usize) -> [usize; 2] {
    let mut memory = pair::engine(setting, &setting.in_memory()).unwrap();
    let mut file = pair::engine(setting, &setting.in_file()).unwrap();
    let blocks = blocks(&memory);
    let mut callers = [&mut memory, &mut file].map(|engine| Caller::new(engine, PLANS));
    let mut rng = SplitMix64::new(seed);
    let (mut transfers, mut refused, mut last) = (0, 0, 0);
    for n in 0..calls {
        let call = draw(&mut rng, n, &blocks, last);
        if let Call::Plan(at, _) | Call::Step(at, ..) = call {
            last = at;
        }
        let [memory, file] =
            callers.each_mut().map(|caller| caller.run(&call).map_err(|error| error.to_string()));
        let text = || format!("call {n} of seed {seed} with {setting:?}: {call:?}");
        assert_eq!(memory, file, "{}", text());
        refused += usize::from(memory.is_err());
        transfers += usize::from(memory.is_ok() && matches!(call, Call::TransferAll(..)));
        for at in 0..PLANS {
            let [memory, file] = callers.each_ref().map(|caller| caller.result(at));
            assert!(memory == file, "plan {at} after {}", text());
        }
        if n % 8 == 0 || n + 1 == calls {
            let [memory, file] = callers.each_ref().map(|caller| pair::slots(caller.engine));
            let differ = memory.iter().zip(&file).position(|(memory, file)| memory != file);
            assert_eq!(differ, None, "byte of the slots after {}", text());
        }
    }
    let [memory, file] = callers.each_ref().map(|caller| memory::read_rows(caller.engine.pool()));
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
    let calls = if tier::thorough() { 500 } else { 100 };
    let cases = tier::cases("pools in files", all, 8, axes);
    let (count, mut sums) = (cases.len(), [0; 2]);
    for (at, (segments, options)) in cases.into_iter().enumerate() {
        let mut setting = Setting::new(SEGMENTS[segments]);
        let on = |bit: usize| options >> bit & 1 == 1;
        let (buffered, io_uring) = (on(0) || setting.file.buffered, !on(1));
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
