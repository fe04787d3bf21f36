//! An engine on plain arrays that runs a step in two ways: by the kernels in Rust that tests of the host library run on the
//! simulated device, and by the emitted ones.

use std::ffi::c_void;
use std::ptr::null_mut;

use super::{
    Batch, Compiled, LayerMemory, Outputs, Places, RunFailure, RunOptions, ShimLaunch, SplitMix64,
    optional, run_in_rust, shim_launch, tiling,
};
use avsg_device::kernels::KernelName;
use avsg_device::memory::{clear_state, table_words};
use avsg_device::one_request::{ROW, SLOT};
use avsg_device::params::Params;
use avsg_device::rules::rules;
use avsg_device::tiling::Launch;

/// Tables and rows of all states.
pub struct TestEngine {
    pub p: Params,
    /// Whether an operator package calls the kernels, and not the host library.
    pub operator: bool,
    /// Whether the compiler of the package knows all shapes, so that calls pass no launch scalars.
    pub known_shapes: bool,
    pub states: usize,
    pub pool_units: usize,
    pub tables: Vec<i32>,
    pub layer: LayerMemory,
    pub places: Places,
}

/// The tables and the device buffer of an engine.
pub type Contents = (Vec<i32>, Vec<Vec<u8>>);

impl TestEngine {
    /// Returns an engine without steps, with this many states, rows or blocks of the pool, and fresh rows. `format` and
    /// `shift` are those of [`LayerMemory::new`].
    pub fn new(
        random: &mut SplitMix64,
        p: &Params,
        places: Places,
        (states, pool_units, fresh): (usize, usize, usize),
        format: &[(usize, usize)],
        shift: u32,
    ) -> Self {
        let mut tables = vec![0; states * table_words(p)];
        tables.chunks_exact_mut(table_words(p)).for_each(|table| clear_state(p, table));
        let (rows, slots) = (pool_units * p.page.max(1) as usize, places.slots(p, states));
        let layer = LayerMemory::new(random, format, rows, shift, slots, fresh);
        let (operator, known_shapes) = (false, false);
        Self { p: *p, operator, known_shapes, states, pool_units, tables, layer, places }
    }

    /// Returns the tables and the device buffer, which a step may change.
    pub fn contents(&self) -> Contents {
        let kv = self.layer.segments.iter().map(|segment| segment.kv.clone()).collect();
        (self.tables.clone(), kv)
    }

    pub fn restore(&mut self, (tables, kv): &Contents) {
        self.tables.copy_from_slice(tables);
        let segments = self.layer.segments.iter_mut().zip(kv);
        segments.for_each(|(segment, kv)| segment.kv.copy_from_slice(kv));
    }

    /// Runs a step on the CPU, and by `run` with one launch and with two, and checks that all give the same outputs, tables and
    /// rows. The engine keeps the state after the step. Returns the outputs.
    pub fn expect_as_on_cpu(
        &mut self,
        b: &Batch,
        what: &str,
        mut run: impl FnMut(&mut Self, bool) -> Result<Outputs, RunFailure>,
    ) -> Outputs {
        let before = self.contents();
        let want = self.step_on_cpu(b);
        let after = self.contents();
        for two in [false, true] {
            let what = format!("{what}, two launches: {two}");
            self.restore(&before);
            let got = run(self, two).unwrap_or_else(|e| panic!("{what}: {e:?}"));
            assert_eq!(got.summary, want.summary, "{what}: summaries");
            assert_eq!(got.valid, want.valid, "{what}: valid counts");
            assert!(got.slot == want.slot, "{what}: slots");
            assert!(got.miss == want.miss, "{what}: miss lists");
            let got = self.contents();
            assert!(got.0 == after.0, "{what}: tables");
            assert!(got.1 == after.1, "{what}: rows");
        }
        want
    }

    /// Returns a random batch with padded requests, fresh rows, invalid ids and invalid blocks, and with states and lengths
    /// that are out of range.
    pub fn random_batch(&self, random: &mut SplitMix64, requests: usize) -> Batch {
        let p = &self.p;
        let page = p.page as usize;
        let k = [p.k as usize, p.k as usize, 1 + random.below(p.k as usize)][random.below(3)];
        let ids_stride = k + random.below(5);
        let block_stride = if page == 0 { 0 } else { 40 };
        let mut b = Batch { k, ids_stride, block_stride, cu_q: vec![0], ..Batch::default() };
        let mut free: Vec<_> = (0..self.states as i32).collect();
        for request in 0..requests {
            let tokens = random.below(p.tokens as usize + 1);
            b.cu_q.push(b.cu_q[request] + tokens as i32);
            let padded = free.is_empty() || random.below(6) == 0;
            let none = [-1, self.states as i32, i32::MIN][request % 3];
            b.state.push(if padded { none } else { free.swap_remove(random.below(free.len())) });
            b.generation.push(i32::from(random.below(5) == 0));
            let longest = if page == 0 { self.pool_units } else { page * self.pool_units.min(40) };
            let seq = tokens + random.below(longest - 8);
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
                b.ids.extend((0..ids_stride).map(|i| match random.below(30) {
                    0 => -1,
                    1 => i32::MIN + random.below(3) as i32,
                    2 => seq as i32 + random.below(3) as i32,
                    3 => i32::MAX,
                    4 => random.below(seq.max(1)) as i32,
                    5 => seq as i32 - 1 - random.below(4) as i32,
                    _ => ((from + i * stretch) % seq.max(1)) as i32,
                }));
            }
            b.blocks.extend((0..block_stride).map(|_| match random.below(20) {
                0 => -1,
                1 => self.pool_units as i32,
                _ => random.below(self.pool_units) as i32,
            }));
        }
        // No array is empty.
        b.ids.push(0);
        b
    }

    /// Runs one step by the kernel in Rust.
    pub fn step_on_cpu(&mut self, b: &Batch) -> Outputs {
        let k = self.p.k as usize;
        let (mut out, scalars) = (Outputs::untouched(b, k), self.scalars(b, 1));
        // Lifetime rules are for vector cores.
        let launch = b.pass(ShimLaunch::new("")).device(&mut self.tables).raw(null_mut());
        let launch = out.pass(self.layer.pass(launch, &self.places));
        run_in_rust(KernelName::Step, &self.p, &launch.raw(null_mut()).input(&scalars));
        out.cut_lists(b, k)
    }

    /// Returns the launch scalars of a step.
    pub fn scalars(&self, b: &Batch, cores: u32) -> Vec<i32> {
        let segments = self.layer.layouts();
        let launch = b.launch(self.pool_units, cores, &segments);
        let (states, kv_blocks) = (self.states as u32, self.places.blocks as u32);
        tiling(&self.p, Launch { states, kv_blocks, slot_base: self.places.base, ..launch })
    }

    /// Runs one step with emitted kernels, either `[avsg_step]` or `[avsg_plan, avsg_transfer]`.
    /// Also returns the bytes of unified buffer that each kernel used.
    pub fn step_emitted(
        &mut self,
        b: &Batch,
        kernels: &[&Compiled],
        options: RunOptions,
    ) -> Result<(Outputs, Vec<u32>), RunFailure> {
        let mut out = Outputs::untouched(b, self.p.k as usize);
        let scalars = self.scalars(b, options.cores);
        let step = kernels.len() == 1;
        let mut peaks = vec![self.plan(b, &mut out, kernels[0], &scalars, (step, options))?];
        if !step {
            peaks.push(self.transfer(b, &out, kernels[1], &scalars, options)?);
        }
        Ok((out.cut_lists(b, self.p.k as usize), peaks))
    }

    /// Runs the emitted plan of a batch, or the whole step. Returns the bytes of unified buffer that it used.
    pub fn plan(
        &mut self,
        b: &Batch,
        out: &mut Outputs,
        kernels: &Compiled,
        scalars: &[i32],
        (step, options): (bool, RunOptions),
    ) -> Result<u32, RunFailure> {
        let [kv0, kv1] = self.kv();
        let updates = [self.tables.as_mut_ptr().cast(), kv0, kv1];
        let rule = rules(&self.p.lifetime).map(Vec::from).unwrap_or_default();
        let caller = (self.operator, self.known_shapes);
        let name = kernels.name(if step { "avsg_step" } else { "avsg_plan" });
        let launch = b.pass(shim_launch(&name, options)).device(&mut self.tables);
        let launch = optional(launch, &rule);
        let (launch, updated) = match step {
            true => (self.layer.pass(launch, &self.places), &updates[..]),
            false => (optional(launch, &self.places.table), &updates[..1]),
        };
        Self::finish(caller, out.pass(launch), updated, scalars).run(&kernels.kernels)
    }

    /// Adds the last arguments of a kernel: arrays that an operator updates in place once more, the
    /// workspace and the launch scalars.
    fn finish<'a>(
        (operator, known_shapes): (bool, bool),
        launch: ShimLaunch<'a>,
        updated: &[*mut c_void],
        scalars: &'a [i32],
    ) -> ShimLaunch<'a> {
        let updated = if operator { updated } else { &[] };
        let launch = updated.iter().fold(launch, |launch, &at| launch.raw(at)).raw(null_mut());
        if known_shapes { launch.raw(null_mut()) } else { launch.input(scalars) }
    }

    /// Runs the emitted transfer of a plan with these outputs. Returns the bytes of unified buffer that it used.
    pub fn transfer(
        &mut self,
        b: &Batch,
        out: &Outputs,
        kernels: &Compiled,
        scalars: &[i32],
        options: RunOptions,
    ) -> Result<u32, RunFailure> {
        let (kv, name) = (self.kv(), kernels.name("avsg_transfer"));
        let caller = (self.operator, self.known_shapes);
        let launch = shim_launch(&name, options).input(&b.cu_q).input(&b.state);
        let launch = launch.input(&out.miss[SLOT]).input(&out.miss[ROW]).input(&out.summary);
        let launch = self.layer.pass(launch, &self.places);
        Self::finish(caller, launch, &kv, scalars).run(&kernels.kernels)
    }

    /// Returns the addresses of the segments of the device buffer.
    fn kv(&mut self) -> [*mut c_void; 2] {
        let mut all = self.layer.segments.iter_mut().map(|s| s.kv.as_mut_ptr().cast());
        [(); 2].map(|()| all.next().unwrap_or(null_mut()))
    }
}
