//! An engine on plain arrays that runs a step in two ways: with the device library on a CPU
//! machine, and with the emitted kernels.

use std::ffi::c_void;
use std::ptr::null_mut;

use avsg_device::machine::cpu::Scalar;
use avsg_device::machine::emu::Emu;
use avsg_device::memory::table_words;
use avsg_device::memory::{clear_state, learn, split_state, state_words};
use avsg_device::params::{ID_LIMIT, Lifetime, NO_STABLE_LEN, Params};
use avsg_device::request::{Blocks, MissList, Request, Rows, Share, Span, record};
use avsg_device::rules::rules;
use avsg_device::sequential::Sequential;
use avsg_device::stage_one::stage_one;
use avsg_device::tiling::Launch;
use avsg_device::work::{split_work, work_words};

use super::arrays::{Batch, Outputs, Plan, UNTOUCHED};
use super::compiled::Compiled;
use super::harness::{RunOptions, launch, shim_launch};
use super::layer_memory::{LayerMemory, Places, SplitMix64, kv_offset, tiling};
use super::shim::{Failure, Launch as ShimLaunch};

/// The CPU machine.
type Machine = Emu<16>;

/// What calls a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// The host library.
    Host,
    /// An operator package.
    Operator,
    /// An operator package in a graph whose shapes are all known, which passes no launch scalars.
    OperatorOfKnownShapes,
}

impl Caller {
    /// Adds the last arguments of a kernel: arrays that an operator updates in place once more, the
    /// workspace and the launch scalars.
    fn finish<'a>(
        self,
        launch: ShimLaunch<'a>,
        updated: &[*mut c_void],
        scalars: &'a [i32],
    ) -> ShimLaunch<'a> {
        let updated = if self == Self::Host { &[] } else { updated };
        let launch = updated.iter().fold(launch, |launch, &at| launch.raw(at)).raw(null_mut());
        match self {
            Self::OperatorOfKnownShapes => launch.raw(null_mut()),
            _ => launch.input(scalars),
        }
    }
}

/// Tables and rows of all states.
pub struct TestEngine {
    pub p: Params,
    pub caller: Caller,
    pub states: usize,
    pub pool_units: usize,
    pub tables: Vec<i32>,
    pub layer: LayerMemory,
    pub places: Places,
}

/// The tables and the device buffer of an engine.
type Contents = (Vec<i32>, Vec<Vec<u8>>);

impl TestEngine {
    pub fn new(p: &Params, states: usize, pool_units: usize, layer: LayerMemory) -> Self {
        let mut tables = vec![0; states * table_words(p)];
        tables.chunks_exact_mut(table_words(p)).for_each(|table| clear_state(p, table));
        let (caller, places) = (Caller::Host, Places::default());
        Self { p: *p, caller, states, pool_units, tables, layer, places }
    }

    /// Returns the tables and the device buffer, which a step may change.
    pub fn contents(&self) -> Contents {
        (
            self.tables.clone(),
            self.layer.segments.iter().map(|segment| segment.kv.clone()).collect(),
        )
    }

    pub fn restore(&mut self, (tables, kv): &Contents) {
        self.tables.copy_from_slice(tables);
        self.layer
            .segments
            .iter_mut()
            .zip(kv)
            .for_each(|(segment, kv)| segment.kv.copy_from_slice(kv));
    }

    /// Checks the outputs of a step, the tables and the device buffer.
    pub fn expect_same(&self, got: &Plan, (want, after): (&Plan, &Contents), what: &str) {
        assert_eq!(got.record, want.record, "{what}: records");
        assert_eq!(got.valid, want.valid, "{what}: valid counts");
        assert!(got.slot == want.slot, "{what}: slots");
        assert!(got.miss == want.miss, "{what}: miss lists");
        let got = self.contents();
        assert!(got.0 == after.0, "{what}: tables");
        assert!(got.1 == after.1, "{what}: rows");
    }

    /// Returns a random batch with padded requests, fresh rows, invalid ids and invalid blocks, and with states and lengths
    /// that are out of range.
    pub fn random_batch(&self, random: &mut SplitMix64, requests: usize) -> Batch {
        let p = &self.p;
        let page = p.page as usize;
        let k = [p.k as usize, p.k as usize, 1 + random.below(p.k as usize)][random.below(3)];
        let stride = k + random.below(5);
        let entries = if page == 0 { 0 } else { 40 };
        let mut b = Batch {
            k,
            ids_stride: stride,
            cu_q: vec![0],
            block_stride: entries,
            ..Batch::default()
        };
        let mut free: Vec<_> = (0..self.states as i32).collect();
        for request in 0..requests {
            let tokens = random.below(p.tokens as usize + 1);
            b.cu_q.push(b.cu_q[request] + tokens as i32);
            let padded = free.is_empty() || random.below(6) == 0;
            let none = [-1, self.states as i32, i32::MIN][request % 3];
            b.state.push(if padded { none } else { free.swap_remove(random.below(free.len())) });
            b.generation.push(i32::from(random.below(5) == 0));
            let context = self.pool_units * page.max(1);
            let seq = tokens
                + random.below(context.min(40 * page.max(usize::from(page == 0) * context)) - 8);
            let stable = (random.below(4) > 0).then(|| (seq - tokens) as i32);
            b.stable.push(stable.unwrap_or([-1, i32::MAX][request % 2]));
            b.seq.push(match random.below(16) {
                0 => -9,
                1 if page > 0 && stable.is_none() => i32::MAX,
                _ => seq as i32,
            });
            let from = random.below(seq.max(1));
            for _ in 0..tokens {
                let stretch = [1, 1, 3, 16][random.below(4)];
                b.ids.extend((0..stride).map(|i| match random.below(30) {
                    0 => -1,
                    1 => i32::MIN + random.below(3) as i32,
                    2 => seq as i32 + random.below(3) as i32,
                    3 => i32::MAX,
                    4 => random.below(seq.max(1)) as i32,
                    5 => seq as i32 - 1 - random.below(4) as i32,
                    _ => ((from + i * stretch) % seq.max(1)) as i32,
                }));
            }
            b.blocks.extend((0..entries).map(|_| match random.below(20) {
                0 => -1,
                1 => self.pool_units as i32,
                _ => random.below(self.pool_units) as i32,
            }));
        }
        // No array is empty.
        b.ids.push(0);
        b
    }

    /// Returns the outputs with miss lists that are cut to their lengths.
    pub fn cut_lists(&self, b: &Batch, out: &Outputs) -> Plan {
        let miss = (0..b.state.len()).map(|r| {
            let at = b.cu_q[r] as usize * self.p.k as usize;
            let n = out.record[r * record::WORDS + record::TOTAL as usize] as usize;
            out.miss.each_ref().map(|list| list[at..at + n].to_vec())
        });
        let (slot, valid, record) = (out.slot.clone(), out.valid.clone(), out.record.clone());
        Plan { miss: miss.collect(), slot, valid, record }
    }

    /// Returns the index of a state, if there is one.
    fn state(&self, state: i32) -> Option<usize> {
        usize::try_from(state).ok().filter(|&state| state < self.states)
    }

    /// Runs one step on the CPU machine, as `Engine::step` does.
    pub fn step_on_cpu(&mut self, b: &Batch) -> Plan {
        let out = self.plan_on_cpu(b);
        let plan = self.cut_lists(b, &out);
        self.copy_on_cpu(b, &plan);
        plan
    }

    /// Plans a batch on the CPU machine.
    pub fn plan_on_cpu(&mut self, b: &Batch) -> Outputs {
        let (p, k) = (self.p, self.p.k as usize);
        let rows = *b.cu_q.last().expect("cu_q is not empty") as usize;
        let (mut slot, mut valid) = (vec![-1; rows * k], vec![0; rows]);
        let mut record = vec![0; b.state.len() * record::WORDS];
        let mut lists = [(); 4].map(|()| vec![UNTOUCHED; rows * k]);
        let mut work = vec![0x5A5A_5A5A; work_words::<Sequential>(&p)];
        for r in 0..b.state.len() {
            let (first, end) = (b.cu_q[r] as usize, b.cu_q[r + 1] as usize);
            let Some(state) = self.state(b.state[r]) else { continue };
            let words = &mut self.tables[state * table_words(&p)..][..state_words(&p)];
            let mut state = split_state::<Machine>(&p, words);
            let mut work = split_work::<Machine, Sequential>(&p, &mut work);
            let word = |n: usize| Scalar::new(n as i32);
            let stable =
                if b.stable[r] < 0 { NO_STABLE_LEN } else { b.stable[r].min(NO_STABLE_LEN) };
            let [position, id, miss_slot, row] = &mut lists;
            let mut request = Request::<Machine> {
                tokens: word(end - first),
                k: word(b.k),
                generation: Scalar::new(b.generation[r]),
                stable: Scalar::new(stable),
                limit: Scalar::new(b.seq[r].clamp(0, ID_LIMIT)),
                rows: word(self.pool_units),
                ids: Rows {
                    words: &b.ids,
                    at: word(first * b.ids_stride),
                    stride: word(b.ids_stride),
                },
                blocks: Blocks {
                    words: &b.blocks,
                    at: word(r * b.block_stride),
                    len: word(b.block_stride),
                },
                slot: Rows { words: &mut slot, at: word(first * k), stride: word(k) },
                valid: Span { words: &mut valid, at: word(first) },
                misses: MissList { position, id, slot: miss_slot, row, at: word(first * k) },
                record: Span { words: &mut record, at: word(r * record::WORDS) },
                share: Share { shared: word(0), at: word(0), len: word(0) },
                deferred: word(0),
            };
            stage_one(Emu, &p, &mut state, &mut work, &mut request);
            if p.lifetime == Lifetime::Learned {
                learn(&p, words);
            }
        }
        for (r, &state) in b.state.iter().enumerate() {
            let Some(state) = self.state(state) else { continue };
            let slots = &mut slot[b.cu_q[r] as usize * k..b.cu_q[r + 1] as usize * k];
            self.places.globalize(&p, state, slots);
        }
        Outputs { slot, valid, miss: lists, record }
    }

    /// Copies the misses of a plan.
    pub fn copy_on_cpu(&mut self, b: &Batch, plan: &Plan) {
        for (r, [_, _, slots, rows]) in plan.miss.iter().enumerate() {
            for (&slot, &row) in slots.iter().zip(rows) {
                let to = self.places.index(&self.p, b.state[r] as usize, slot as usize);
                let Some(to) = to else { continue };
                self.copy_row(to, row, b.cu_q[r] as usize);
            }
        }
    }

    /// Copies a host row, or a fresh row if `row` is negative, to a slot.
    fn copy_row(&mut self, slot: usize, row: i32, first: usize) {
        for s in 0..self.layer.segments.len() {
            let t = self.layer.segments[s].layout;
            let bytes = match usize::try_from(row) {
                Ok(row) => self.layer.host_row(s, row).to_vec(),
                Err(_) => {
                    let at = (first + !row as usize) * t.fresh_stride as usize;
                    self.layer.segments[s].fresh[at..at + t.bytes as usize].to_vec()
                }
            };
            let to = kv_offset(slot, t.kv_stride);
            self.layer.segments[s].kv[to..to + bytes.len()].copy_from_slice(&bytes);
        }
    }

    /// Returns the launch scalars of a step.
    pub fn scalars(&self, b: &Batch, cores: u32) -> Vec<i32> {
        let segments = self.layer.layouts();
        tiling(
            &self.p,
            self.places.scalars(Launch {
                rows: *b.cu_q.last().expect("cu_q is not empty") as u32,
                k: b.k as u32,
                ids_stride: b.ids_stride as u32,
                block_stride: b.block_stride as u32,
                pool_units: self.pool_units as u32,
                states: self.states as u32,
                ..launch(b.state.len(), cores, &segments)
            }),
        )
    }

    /// Runs one step with emitted kernels, either `[avsg_step]` or `[avsg_plan, avsg_transfer]`.
    /// Also returns the bytes of unified buffer that each kernel used.
    pub fn step_emitted(
        &mut self,
        b: &Batch,
        kernels: &[&Compiled],
        options: RunOptions,
    ) -> Result<(Plan, Vec<u32>), Failure> {
        let (p, k) = (self.p, self.p.k as usize);
        let rows = *b.cu_q.last().expect("cu_q is not empty") as usize;
        let mut out = Outputs::untouched(b.state.len(), rows, k);
        let scalars = self.scalars(b, options.cores);
        let tables = self.tables.as_mut_ptr().cast();
        let [kv0, kv1] = self.kv();
        let step_updates = [tables, kv0, kv1];
        let rule = rules(&p.lifetime).map(Vec::from).unwrap_or_default();
        let mut peaks = vec![];
        let step = kernels.len() == 1;

        let name = kernels[0].name(if step { "avsg_step" } else { "avsg_plan" });
        let launch = shim_launch(&name, options);
        let launch = b.pass(launch).device(&mut self.tables);
        let launch = if rule.is_empty() { launch.raw(null_mut()) } else { launch.input(&rule) };
        let launch = match step {
            true => self.layer.pass(launch, &self.places),
            false => self.places.pass(launch),
        };
        let updated = if step { &step_updates } else { &step_updates[..1] };
        let launch = self.caller.finish(out.pass(launch), updated, &scalars);
        peaks.push(launch.run(&kernels[0].kernels)?);

        if !step {
            peaks.push(self.transfer(b, &out, kernels[1], &scalars, options)?);
        }
        Ok((self.cut_lists(b, &out), peaks))
    }

    /// Runs the emitted transfer of a plan with these outputs. Returns the bytes of unified buffer that it used.
    pub fn transfer(
        &mut self,
        b: &Batch,
        out: &Outputs,
        kernels: &Compiled,
        scalars: &[i32],
        options: RunOptions,
    ) -> Result<u32, Failure> {
        let (kv, name) = (self.kv(), kernels.name("avsg_transfer"));
        let launch = shim_launch(&name, options).input(&b.cu_q).input(&b.state);
        let launch = launch.input(&out.miss[2]).input(&out.miss[3]).input(&out.record);
        let launch = self.layer.pass(launch, &self.places);
        self.caller.finish(launch, &kv, scalars).run(&kernels.kernels)
    }

    /// Returns the addresses of the segments of the device buffer.
    fn kv(&mut self) -> [*mut c_void; 2] {
        let mut kv = [null_mut(); 2];
        for (at, segment) in kv.iter_mut().zip(&mut self.layer.segments) {
            *at = segment.kv.as_mut_ptr().cast();
        }
        kv
    }
}
