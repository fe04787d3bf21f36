//! A random life in device arrays beside the same life on the CPU device: two engines, two pools with
//! the same rows, and every step's results compared.

use std::path::PathBuf;
use std::sync::Arc;

use avsg::acl::owned::{Context, DeviceMemory, RawStream};
use avsg::content::fill_row;
use avsg::device::params::Params;
use avsg::device::stage_one::record;
use avsg::engine::{Batch, Config, DeviceBatch, DeviceFresh, DevicePlan, Engine, Fresh};
use avsg::launch::acl::{AscendOptions, RegisteredPool};
use avsg::plan::Plan;
use avsg::pool::{HostPool, Pages, PoolConfig};
use avsg::rows::RowFormat;
use avsg::splitmix::SplitMix64;
use avsg_sim::Session;

use super::stand;

const K: usize = 12;
const SLOTS: usize = 128;
const TOKENS: usize = 2;
const REQUESTS: usize = 4;
const STATES: usize = 3;
const ROWS: usize = REQUESTS * TOKENS;
const PAGE: usize = 16;
/// Blocks of a request.
const BLOCKS: usize = 8;
pub const LAYERS: usize = 2;
const SEGMENTS: [usize; 2] = [40, 8];

/// A step's arrays on the host.
#[derive(Default)]
struct Arrays {
    ids: Vec<i32>,
    cu_q: Vec<i32>,
    state: Vec<i32>,
    generation: Vec<i32>,
    stable: Vec<i32>,
    seq: Vec<i32>,
    blocks: Vec<i32>,
}

/// Device memory for them and for what comes out.
struct Device {
    inputs: [DeviceMemory; 7],
    outputs: [DeviceMemory; 7],
    fresh: [[DeviceMemory; 2]; LAYERS],
}

/// Both engines.
pub struct Pair {
    pub ascend: Engine,
    cpu: Engine,
    cpu_plan: Plan,
    device: Device,
    arrays: Arrays,
    /// This step's rows, by layer and segment.
    fresh: Vec<[Vec<u8>; 2]>,
    dice: SplitMix64,
    generation: [i32; STATES],
    stable: [usize; STATES],
    versions: u32,
    /// Rows that were compared.
    pub rows: usize,
}

fn params() -> Params {
    Params { page: PAGE as u32, ..Params::wide(K as u32, TOKENS as u32, SLOTS as u32) }
}

fn pool_config() -> PoolConfig {
    let format = RowFormat::segments(&SEGMENTS).unwrap();
    let rows = STATES * BLOCKS * PAGE;
    PoolConfig { pages: Pages::Plain, chunk_bytes: 4096, ..PoolConfig::new(LAYERS, rows, format) }
}

fn fill(pool: &HostPool) {
    let mut bytes = [0; SEGMENTS[0] + SEGMENTS[1]];
    for (layer, row) in (0..LAYERS).flat_map(|layer| (0..pool.rows()).map(move |r| (layer, r))) {
        fill_row(row as i32, layer as u32, &mut bytes);
        pool.write_row(layer, row, &bytes).unwrap();
    }
}

impl Pair {
    /// With the session's kernels.
    pub fn new(session: &Session, context: &Arc<Context>, seed: u64, one_launch: bool) -> Self {
        let kernels = stand::kernels(session, &Self::config());
        Self::with(kernels, context, seed, one_launch)
    }

    /// With the kernels that are shipped.
    pub fn emitted(context: &Arc<Context>, seed: u64, one_launch: bool) -> Self {
        let kernels = avsg::launch::acl::simulated::emit(&params()).unwrap();
        Self::with(kernels, context, seed, one_launch)
    }

    fn config() -> Config {
        Config { cores: 5, ..Config::new(params(), STATES) }
    }

    fn with(kernels: PathBuf, context: &Arc<Context>, seed: u64, one_launch: bool) -> Self {
        let config = Self::config();
        let options = AscendOptions {
            one_launch: Some(one_launch),
            ..AscendOptions::new(context.clone(), kernels)
        };
        let pool = RegisteredPool::create(context, &pool_config()).unwrap();
        fill(pool.pool());
        let ascend = Engine::on_ascend(config, pool, &options).unwrap();
        let pool = HostPool::new(&pool_config()).unwrap();
        fill(&pool);
        let cpu = Engine::new(config, pool).unwrap();
        let cpu_plan = cpu.new_plan(ROWS, REQUESTS).unwrap();
        let words = |n: usize| DeviceMemory::zeroed(context, 4 * n).unwrap();
        let n = REQUESTS;
        let inputs = [ROWS * K, n + 1, n, n, n, n, n * BLOCKS].map(words);
        let list = ROWS * K;
        let outputs = [list, ROWS, list, list, list, list, n * record::WORDS].map(words);
        let rows = |_| SEGMENTS.map(|bytes| DeviceMemory::zeroed(context, ROWS * bytes).unwrap());
        let fresh = [0, 1].map(rows);
        Self {
            ascend,
            cpu,
            cpu_plan,
            device: Device { inputs, outputs, fresh },
            arrays: Arrays::default(),
            fresh: Vec::new(),
            dice: SplitMix64::new(seed),
            generation: [0; STATES],
            stable: [20; STATES],
            versions: 100,
            rows: 0,
        }
    }

    fn roll(&mut self, n: usize) -> usize {
        (self.dice.word() % n as u64) as usize
    }

    pub fn device_batch(&self) -> DeviceBatch {
        let [ids, cu_q, state, generation, stable_len, seq_len, block_table] =
            self.device.inputs.each_ref().map(DeviceMemory::address);
        let (k, ids_stride, block_stride) = (K, K, BLOCKS);
        let (requests, rows) = (REQUESTS, ROWS);
        DeviceBatch {
            requests,
            rows,
            k,
            ids,
            ids_stride,
            cu_q,
            state,
            generation,
            stable_len,
            seq_len,
            block_table,
            block_stride,
        }
    }

    pub fn device_plan(&self) -> DevicePlan {
        let [slot, valid, position, id, to, row, record] =
            self.device.outputs.each_ref().map(DeviceMemory::address);
        DevicePlan { slot, valid, miss: [position, id, to, row], record }
    }

    pub fn device_fresh(&self, layer: usize) -> DeviceFresh {
        DeviceFresh { segments: self.device.fresh[layer].each_ref().map(DeviceMemory::address) }
    }

    /// Where the device's pool begins.
    #[allow(dead_code, reason = "one test looks for it")]
    pub fn pool_address(&self) -> usize {
        self.ascend.pool().chunks().next().unwrap().ptr().addr()
    }

    /// Puts a whole step into a stream: what is captured once.
    pub fn enqueue(&mut self, stream: RawStream) -> avsg::Result<()> {
        let (batch, plan) = (self.device_batch(), self.device_plan());
        let fresh = [self.device_fresh(0), self.device_fresh(1)];
        // SAFETY: the arrays have the sizes that the batch says and live until the test has waited.
        unsafe {
            self.ascend.enqueue_step(&batch, &plan, 0, Some(&fresh[0]), stream)?;
            self.ascend.enqueue_transfer(&batch, &plan, 1, Some(&fresh[1]), stream)?;
            self.ascend.enqueue_append(&batch, 0, &fresh[0], stream)?;
            self.ascend.enqueue_append(&batch, 1, &fresh[1], stream)
        }
    }

    /// Draws the next step and brings its arrays to the device: joins, leaves, permuted states,
    /// padded requests, any number of tokens, bad ids, and rows of this very step.
    pub fn next(&mut self) {
        let mut a = Arrays { cu_q: vec![0], ids: vec![-9; ROWS * K], ..Arrays::default() };
        let mut order: Vec<usize> = (0..STATES).collect();
        self.dice.shuffle(&mut order);
        for request in 0..REQUESTS {
            let state = order.get(request).copied().filter(|_| self.roll(5) > 0);
            let tokens = self.roll(TOKENS + 1);
            let first = a.cu_q[request] as usize;
            a.cu_q.push((first + tokens) as i32);
            a.blocks.extend((0..BLOCKS).map(|b| (state.unwrap_or(0) * BLOCKS + b) as i32));
            let Some(state) = state else {
                a.state.push(-1);
                let junk = self.roll(99) as i32;
                a.generation.push(junk);
                a.stable.push(junk - 50);
                a.seq.push(-junk);
                continue;
            };
            if self.roll(6) == 0 || self.stable[state] + TOKENS > BLOCKS * PAGE {
                // Another request takes the state.
                self.generation[state] += 1;
                self.stable[state] = self.roll(60);
            }
            let stable = self.stable[state];
            for token in 0..tokens {
                for lane in 0..K {
                    let seq = stable + tokens;
                    a.ids[(first + token) * K + lane] = match self.roll(12) {
                        0 => -1 - self.roll(3) as i32,
                        1 => (seq + self.roll(9)) as i32,
                        2 => i32::MAX - self.roll(2) as i32,
                        3 | 4 => (stable + self.roll(tokens)) as i32,
                        _ => self.roll(seq) as i32,
                    };
                }
            }
            a.state.push(state as i32);
            a.generation.push(self.generation[state]);
            a.stable.push(stable as i32);
            a.seq.push((stable + tokens) as i32);
            // Some drafts are rejected.
            self.stable[state] += if tokens == 0 { 0 } else { 1 + self.roll(tokens) };
        }
        self.versions += 10;
        self.fresh = (0..LAYERS).map(|layer| self.rows_of(&a, layer)).collect();
        self.arrays = a;
        let a = &self.arrays;
        let arrays = [&a.ids, &a.cu_q, &a.state, &a.generation, &a.stable, &a.seq, &a.blocks];
        for (memory, array) in self.device.inputs.iter().zip(arrays) {
            let bytes: Vec<u8> = array.iter().flat_map(|word| word.to_ne_bytes()).collect();
            memory.write(0, &bytes).unwrap();
        }
        for (memories, rows) in self.device.fresh.iter().zip(&self.fresh) {
            for (memory, bytes) in memories.iter().zip(rows) {
                memory.write(0, bytes).unwrap();
            }
        }
    }

    fn rows_of(&self, a: &Arrays, layer: usize) -> [Vec<u8>; 2] {
        let mut parts = [Vec::new(), Vec::new()];
        let mut bytes = [0; SEGMENTS[0] + SEGMENTS[1]];
        for row in 0..ROWS {
            fill_row(row as i32, self.versions + layer as u32, &mut bytes);
            parts[0].extend(&bytes[..SEGMENTS[0]]);
            parts[1].extend(&bytes[SEGMENTS[0]..]);
        }
        assert_eq!(a.cu_q.len(), REQUESTS + 1);
        parts
    }

    /// Does the same step on the CPU and compares everything. Call it when the stream is done.
    pub fn compare(&mut self) {
        let a = &self.arrays;
        let batch = Batch {
            ids: &a.ids,
            ids_stride: K,
            k: K,
            cu_q: &a.cu_q,
            state: &a.state,
            generation: &a.generation,
            stable_len: &a.stable,
            seq_len: &a.seq,
            block_table: &a.blocks,
            block_stride: BLOCKS,
        };
        let parts: Vec<[&[u8]; 2]> =
            self.fresh.iter().map(|l| l.each_ref().map(Vec::as_slice)).collect();
        let fresh: Vec<_> = parts.iter().map(|parts| Fresh { segments: parts }).collect();
        self.cpu.step(&batch, &mut self.cpu_plan, 0, Some(&fresh[0])).unwrap();
        self.cpu.transfer(&mut self.cpu_plan, 1, Some(&fresh[1])).unwrap();
        for (layer, fresh) in fresh.iter().enumerate() {
            self.cpu.append(&batch, layer, fresh).unwrap();
        }
        let read = |i: usize| -> Vec<i32> {
            let memory = &self.device.outputs[i];
            let mut bytes = vec![0; memory.len()];
            memory.read(0, &mut bytes).unwrap();
            bytes.as_chunks::<4>().0.iter().map(|b| i32::from_ne_bytes(*b)).collect()
        };
        let [slot, valid, position, id, to, from, record] = std::array::from_fn(read);
        let plan = &self.cpu_plan;
        for row in 0..plan.rows() {
            assert_eq!(&slot[row * K..][..K], plan.slots(row), "slots of row {row}");
        }
        assert_eq!(&valid[..plan.rows()], plan.valid());
        for r in 0..REQUESTS {
            let misses = plan.misses(r);
            let (at, n) = (a.cu_q[r] as usize * K, misses.id.len());
            let lists = [&position, &id, &to, &from].map(|list| &list[at..at + n]);
            assert_eq!(lists, [misses.position, misses.id, misses.slot, misses.row]);
            let record = &record[r * record::WORDS..][..record::WORDS];
            assert_eq!(record[record::TOTAL as usize] as usize, n);
            assert_eq!(record[record::STATUS as usize], plan.status(r));
        }
        self.compare_bytes();
    }

    /// Whether every returned slot of a row that this step made holds it, on both layers: for gathers
    /// that read them from the pool.
    pub fn fresh_rows_arrived(&self) -> bool {
        let a = &self.arrays;
        let mut slots = vec![0; 4 * ROWS * K];
        self.device.outputs[0].read(0, &mut slots).unwrap();
        let slots: Vec<i32> =
            slots.as_chunks::<4>().0.iter().map(|b| i32::from_ne_bytes(*b)).collect();
        let mut got = [0; SEGMENTS[0] + SEGMENTS[1]];
        let mut right = true;
        for r in (0..REQUESTS).filter(|&r| a.state[r] >= 0) {
            let (first, end) = (a.cu_q[r] as usize * K, a.cu_q[r + 1] as usize * K);
            for (at, &slot) in slots.iter().enumerate().take(end).skip(first) {
                if a.ids[at] < a.stable[r] || a.ids[at] >= a.seq[r] {
                    continue;
                }
                let row = a.cu_q[r] as usize + (a.ids[at] - a.stable[r]) as usize;
                for layer in 0..LAYERS {
                    let (state, slot) = (a.state[r] as usize, slot as usize);
                    self.ascend.buffer().slot_bytes(state, layer, slot, &mut got).unwrap();
                    let version = self.versions + layer as u32;
                    right &= avsg::content::check_row(row as i32, version, &got);
                }
            }
        }
        right
    }

    fn compare_bytes(&mut self) {
        let mut rows = [[0; SEGMENTS[0] + SEGMENTS[1]]; 2];
        let engines = [&self.ascend, &self.cpu];
        for layer in 0..LAYERS {
            for state in 0..STATES {
                for slot in 0..SLOTS {
                    for (engine, row) in engines.iter().zip(&mut rows) {
                        engine.buffer().slot_bytes(state, layer, slot, row).unwrap();
                    }
                    assert!(rows[0] == rows[1], "layer {layer}, state {state}, slot {slot}");
                    self.rows += 1;
                }
            }
            for row in 0..self.cpu.pool().rows() {
                for (engine, bytes) in engines.iter().zip(&mut rows) {
                    engine.pool().read_row(layer, row, bytes).unwrap();
                }
                assert!(rows[0] == rows[1], "layer {layer}, row {row} of the pool");
            }
        }
        for state in 0..STATES {
            // Between lifetimes and links lie 64 bytes that a machine may scribble on.
            let parts = |table: &[i32]| {
                let pad = 16 + SLOTS + SLOTS / 4;
                [&table[..pad], &table[pad + 16..]].concat()
            };
            let (there, here) = (parts(self.ascend.table(state)), parts(self.cpu.table(state)));
            assert!(there == here, "table {state}");
        }
    }
}
