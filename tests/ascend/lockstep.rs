//! One life on two engines: the Ascend device, with device arrays or host arrays, and the CPU device.
//! Two pools begin with the same rows, and after every step everything is compared.

use std::path::PathBuf;
use std::sync::Arc;

use avsg::ascend::acl::api::memory::{Way, copy};
use avsg::ascend::acl::owned::{Context, DeviceMemory, RawStream};
use avsg::ascend::{AscendOptions, RegisteredPool};
use avsg::device::params::Params;
use avsg::device::stage_one::record;
use avsg::engine::Choice;
use avsg::engine::{Config, DeviceArray, DeviceBatch, DeviceFresh, DeviceRows, Engine, Fresh};
use avsg::plan::Plan;
use avsg::pool::{HostPool, Pages, PoolConfig};
use avsg::rows::RowFormat;
use avsg_testkit::content::fill_row;

use avsg_testkit::batch::Owned;

/// What a row holds that nobody has made yet.
const UNMADE: u32 = 9_999;

/// What both engines are.
#[derive(Clone, Debug)]
pub struct Form {
    pub params: Params,
    pub states: usize,
    pub cores: usize,
    pub one_launch: bool,
    /// Requests of every batch, and the most rows of one.
    pub requests: usize,
    pub rows: usize,
    /// Block table entries of a request.
    pub blocks: usize,
    pub layers: usize,
    pub segments: &'static [usize],
    pub pool_rows: usize,
    /// Rows below it are in the pool from the beginning, with the layer as their version.
    pub made: usize,
}

impl Form {
    fn k(&self) -> usize {
        self.params.k as usize
    }

    pub fn config(&self) -> Config {
        // The one machine that is not measured first: engines are made by the hundred here.
        let machine = Choice::Emu;
        Config { cores: self.cores, machine, ..Config::new(self.params, self.states) }
    }

    fn pool_config(&self) -> PoolConfig {
        let format = RowFormat::segments(self.segments).unwrap();
        // Several chunks, so that rows of a request lie in more than one.
        let chunk_bytes = (self.pool_rows * self.segments[0] / 5).next_multiple_of(4096);
        let config = PoolConfig::new(self.layers, self.pool_rows, format);
        PoolConfig { pages: Pages::Plain, chunk_bytes, ..config }
    }

    fn fill(&self, pool: &HostPool) {
        let mut bytes = vec![0; self.segments.iter().sum()];
        for layer in 0..self.layers {
            for row in 0..self.pool_rows {
                let version = if row < self.made { layer as u32 } else { UNMADE };
                fill_row(row as i32, version, &mut bytes);
                pool.write_row(layer, row, &bytes).unwrap();
            }
        }
    }

    /// A pool for engines on the device, several perhaps.
    pub fn pool(&self, context: &Arc<Context>) -> RegisteredPool {
        let pool = RegisteredPool::create(context, &self.pool_config()).unwrap();
        self.fill(pool.pool());
        pool
    }
}

/// Device memory for a step's arrays and for what comes out.
struct Device {
    inputs: [DeviceMemory; 7],
    /// By layer and segment.
    fresh: Vec<Vec<DeviceMemory>>,
}

/// What a step found, request by request.
#[derive(Debug, Default, PartialEq)]
pub struct Found {
    /// K slots for each row.
    pub slots: Vec<i32>,
    valid: Vec<i32>,
    /// Positions, ids, slots and host rows of the misses.
    misses: Vec<[Vec<i32>; 4]>,
    /// Misses by token, of all tokens, and status bits.
    counts: Vec<i32>,
}

impl Found {
    fn of(plan: &Plan, step: &Owned) -> Self {
        let mut found = Self { valid: plan.valid().to_vec(), ..Self::default() };
        (0..plan.rows()).for_each(|row| found.slots.extend(plan.slots(row)));
        for r in 0..plan.requests() {
            let misses = plan.misses(r);
            let lists = [misses.position, misses.id, misses.slot, misses.row];
            found.misses.push(lists.map(<[i32]>::to_vec));
            let tokens = (step.cu_q[r + 1] - step.cu_q[r]) as usize;
            found.counts.extend((0..tokens).map(|t| plan.token_misses(r, t) as i32));
            found.counts.extend([misses.id.len() as i32, plan.status(r)]);
        }
        found
    }
}

/// Both engines.
pub struct Pair {
    pub ascend: Engine,
    cpu: Engine,
    pub ascend_plan: Plan,
    cpu_plan: Plan,
    context: Arc<Context>,
    device: Device,
    form: Form,
    /// This step's batch.
    pub step: Owned,
    /// Its rows, by layer and segment.
    fresh: Vec<Vec<Vec<u8>>>,
    /// What the device found in it.
    pub found: Found,
    /// Whether nobody else writes the pool.
    alone: bool,
    /// Slots that were compared.
    pub compared: usize,
}

impl Pair {
    /// With a pool of its own, by these kernels, or without any the library's own.
    pub fn new(form: &Form, context: &Arc<Context>, kernels: impl Into<Option<PathBuf>>) -> Self {
        Self { alone: true, ..Self::on(form, context, kernels, form.pool(context)) }
    }

    /// On a pool of the form, which others write as well.
    pub fn on(
        form: &Form,
        context: &Arc<Context>,
        kernels: impl Into<Option<PathBuf>>,
        pool: RegisteredPool,
    ) -> Self {
        let options = AscendOptions {
            one_launch: Some(form.one_launch),
            kernels: kernels.into(),
            ..AscendOptions::new(context.clone())
        };
        let ascend = Engine::on_ascend(form.config(), pool, &options).unwrap();
        let pool = HostPool::new(&form.pool_config()).unwrap();
        form.fill(&pool);
        let cpu = Engine::new(form.config(), pool).unwrap();
        let words = |n: usize| DeviceMemory::zeroed(context, 4 * n.max(1)).unwrap();
        let (n, rows, list) = (form.requests, form.rows, form.rows * form.k());
        let inputs = [list, n + 1, n, n, n, n, n * form.blocks].map(words);
        let part = |&bytes: &usize| DeviceMemory::zeroed(context, rows * bytes).unwrap();
        let fresh = (0..form.layers).map(|_| form.segments.iter().map(part).collect()).collect();
        Self {
            ascend_plan: ascend.new_plan(rows, n).unwrap(),
            cpu_plan: cpu.new_plan(rows, n).unwrap(),
            ascend,
            cpu,
            context: Arc::clone(context),
            device: Device { inputs, fresh },
            form: form.clone(),
            step: Owned::new(form.k(), 0),
            fresh: Vec::new(),
            found: Found::default(),
            alone: false,
            compared: 0,
        }
    }

    /// Where the device's arrays are: what a graph is captured with.
    pub fn device_batch(&self) -> DeviceBatch {
        let array = |m: &DeviceMemory| DeviceArray { address: m.address(), len: m.len() / 4 };
        let [ids, cu_q, state, generation, stable_len, seq_len, block_table] =
            self.device.inputs.each_ref().map(array);
        let (requests, k) = (self.form.requests, self.form.k());
        DeviceBatch {
            requests,
            k,
            ids,
            ids_stride: k,
            cu_q,
            state,
            generation,
            stable_len,
            seq_len,
            block_table,
            block_stride: self.form.blocks,
        }
    }

    /// A layer's fresh rows on the device.
    pub fn device_fresh(&self, layer: usize) -> Vec<DeviceRows> {
        let rows = |m: &DeviceMemory| DeviceRows { address: m.address(), bytes: m.len() };
        self.device.fresh[layer].iter().map(rows).collect()
    }

    /// Takes the next step and brings its arrays to the device. `content` says what a fresh row is on
    /// layer 0: id and version, which grows by the layer.
    pub fn bring(&mut self, mut step: Owned, content: impl Fn(usize) -> (i32, u32)) {
        let (n, form) = (step.ids.len(), &self.form);
        assert!(step.state.len() == form.requests && n <= form.rows * form.k());
        // Behind the last row lies junk.
        step.ids.resize(form.rows * form.k(), -9);
        let arrays = [
            &step.ids,
            &step.cu_q,
            &step.state,
            &step.generation,
            &step.stable,
            &step.seq,
            &step.blocks,
        ];
        for (memory, array) in self.device.inputs.iter().zip(arrays) {
            let bytes: Vec<u8> = array.iter().flat_map(|word| word.to_ne_bytes()).collect();
            memory.write(0, &bytes).unwrap();
        }
        self.fresh = (0..form.layers).map(|_| vec![Vec::new(); form.segments.len()]).collect();
        let mut bytes = vec![0; form.segments.iter().sum()];
        for (layer, parts) in self.fresh.iter_mut().enumerate() {
            for row in 0..form.rows {
                let (id, version) = content(row);
                fill_row(id, version + layer as u32, &mut bytes);
                let mut at = 0;
                for (part, bytes_of) in parts.iter_mut().zip(form.segments) {
                    part.extend(&bytes[at..at + bytes_of]);
                    at += bytes_of;
                }
            }
            for (memory, part) in self.device.fresh[layer].iter().zip(parts) {
                memory.write(0, part).unwrap();
            }
        }
        self.step = step;
    }

    /// Puts the whole step into a stream: what is captured once.
    pub fn enqueue(&mut self, stream: RawStream) -> avsg::Result<()> {
        let batch = self.device_batch();
        let rows: Vec<_> = (0..self.form.layers).map(|layer| self.device_fresh(layer)).collect();
        let fresh: Vec<_> = rows.iter().map(|rows| DeviceFresh { segments: rows }).collect();
        let (engine, plan) = (&mut self.ascend, &mut self.ascend_plan);
        // SAFETY: the arrays have the sizes that the batch says and live until the test has waited.
        unsafe {
            engine.enqueue_step(&batch, plan, 0, Some(&fresh[0]), stream)?;
            for (layer, fresh) in fresh.iter().enumerate().skip(1) {
                engine.enqueue_transfer(plan, layer, Some(fresh), stream)?;
            }
            for (layer, fresh) in fresh.iter().enumerate() {
                engine.enqueue_append(&batch, layer, fresh, stream)?;
            }
        }
        Ok(())
    }

    /// Compares a step in a stream, which is done.
    pub fn compare(&mut self) {
        self.read();
        self.compare_found();
    }

    /// Compares a step in a stream, which is done, where the device may have started cold since: its
    /// slots may be others then, but what they hold may not.
    pub fn compare_rows(&mut self) {
        self.read();
        run(&mut self.cpu, &mut self.cpu_plan, &self.step, &self.fresh).unwrap();
        let bytes: usize = self.form.segments.iter().sum();
        let (mut there, mut here) = (vec![0; bytes], vec![0; bytes]);
        for (r, pair) in self.step.cu_q.windows(2).enumerate() {
            for row in pair[0] as usize..pair[1] as usize {
                let found = &self.found.slots[row * self.form.k()..];
                for (&other, &slot) in found.iter().zip(self.cpu_plan.slots(row)) {
                    assert_eq!(other < 0, slot < 0, "row {row}");
                    let Ok(slot) = usize::try_from(slot) else { continue };
                    let (state, other) = (self.step.state[r] as usize, other as usize);
                    for layer in 0..self.form.layers {
                        self.ascend.buffer().slot_bytes(state, layer, other, &mut there).unwrap();
                        self.cpu.buffer().slot_bytes(state, layer, slot, &mut here).unwrap();
                        assert!(there == here, "layer {layer}, row {row}, slot {other}");
                    }
                    self.compared += 1;
                }
            }
        }
        self.compare_pools();
    }

    /// Does the step by host arrays, and compares it.
    pub fn step_by_host(&mut self) {
        run(&mut self.ascend, &mut self.ascend_plan, &self.step, &self.fresh).unwrap();
        self.found = Found::of(&self.ascend_plan, &self.step);
        self.compare_found();
        for r in 0..self.form.requests {
            let cuts = self.ascend.cuts(&self.ascend_plan, r);
            assert!(cuts.eq(self.cpu.cuts(&self.cpu_plan, r)), "cuts of request {r}");
        }
    }

    /// Reads what a step in a stream, which is done, left in the device's arrays.
    pub fn read(&mut self) {
        let (n, rows, list) = (self.form.requests, self.form.rows, self.form.rows * self.form.k());
        let there = self.ascend_plan.device_arrays().expect("a device's plan");
        let read = |address, words| read_words(&self.context, address, words);
        let (mut slots, mut valid) = (read(there.slot, list), read(there.valid, rows));
        let [position, id, to, from] = there.miss.map(|address| read(address, list));
        let records = read(there.record, n * record::WORDS);
        let (step, k) = (&self.step, self.form.k());
        let rows = *step.cu_q.last().unwrap() as usize;
        slots.truncate(rows * k);
        valid.truncate(rows);
        let mut found = Found { slots, valid, ..Found::default() };
        for (r, pair) in step.cu_q.windows(2).enumerate() {
            let record = &records[r * record::WORDS..][..record::WORDS];
            let (total, status) = (record[record::TOTAL as usize], record[record::STATUS as usize]);
            let (at, n) = (pair[0] as usize * k, total as usize);
            found.misses.push([&position, &id, &to, &from].map(|list| list[at..at + n].to_vec()));
            found.counts.extend(&record[..(pair[1] - pair[0]) as usize]);
            found.counts.extend([total, status]);
        }
        self.found = found;
    }

    fn compare_found(&mut self) {
        run(&mut self.cpu, &mut self.cpu_plan, &self.step, &self.fresh).unwrap();
        assert_eq!(self.found, Found::of(&self.cpu_plan, &self.step));
        let bytes: usize = self.form.segments.iter().sum();
        let mut rows = [vec![0; bytes], vec![0; bytes]];
        let engines = [&self.ascend, &self.cpu];
        let slots = self.form.params.slots as usize;
        for layer in 0..self.form.layers {
            for (state, slot) in
                (0..self.form.states).flat_map(|state| (0..slots).map(move |slot| (state, slot)))
            {
                for (engine, row) in engines.iter().zip(&mut rows) {
                    engine.buffer().slot_bytes(state, layer, slot, row).unwrap();
                }
                assert!(rows[0] == rows[1], "layer {layer}, state {state}, slot {slot}");
                self.compared += 1;
            }
        }
        for state in 0..self.form.states {
            // Between lifetimes and links lie 64 bytes that a machine may scribble on.
            let parts = |table: &[i32]| {
                let pad = 16 + slots + slots / 4;
                [&table[..pad], &table[pad + 16..]].concat()
            };
            let (there, here) = (parts(self.ascend.table(state)), parts(self.cpu.table(state)));
            assert!(there == here, "table {state}");
        }
        if self.alone {
            self.compare_pools();
        }
    }

    /// Every row of the pools. With others at work on one, call it when all are done.
    pub fn compare_pools(&self) {
        let bytes: usize = self.form.segments.iter().sum();
        let (mut there, mut here) = (vec![0; bytes], vec![0; bytes]);
        for layer in 0..self.form.layers {
            for row in 0..self.form.pool_rows {
                self.ascend.pool().read_row(layer, row, &mut there).unwrap();
                self.cpu.pool().read_row(layer, row, &mut here).unwrap();
                assert!(there == here, "layer {layer}, row {row} of the pool");
            }
        }
    }
}

/// Words of an array in device memory.
pub fn read_words(context: &Context, address: u64, words: usize) -> Vec<i32> {
    let mut read = vec![0; words];
    let _current = context.bind().unwrap();
    let (to, from) = (read.as_mut_ptr().cast(), std::ptr::without_provenance(address as usize));
    // SAFETY: an array of a living plan on the device, which holds so many words.
    unsafe { copy(context.acl(), to, from, 4 * words, Way::ToHost) }.unwrap();
    read
}

/// One step on one engine: every layer is transferred, then appended.
fn run(
    engine: &mut Engine,
    plan: &mut Plan,
    step: &Owned,
    fresh: &[Vec<Vec<u8>>],
) -> avsg::Result<()> {
    let parts: Vec<Vec<&[u8]>> =
        fresh.iter().map(|layer| layer.iter().map(Vec::as_slice).collect()).collect();
    let fresh: Vec<_> = parts.iter().map(|parts| Fresh { segments: parts }).collect();
    engine.step(&step.batch(), plan, 0, Some(&fresh[0]))?;
    for (layer, fresh) in fresh.iter().enumerate().skip(1) {
        engine.transfer(plan, layer, Some(fresh))?;
    }
    fresh
        .iter()
        .enumerate()
        .try_for_each(|(layer, fresh)| engine.append(&step.batch(), layer, fresh))
}
