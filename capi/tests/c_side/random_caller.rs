//! A thread that makes random calls through the C ABI.

use std::ffi::c_void;
use std::ptr::{null, null_mut, without_provenance_mut};
use std::sync::atomic::{AtomicUsize, Ordering};

use avsg_capi::avsg_status::*;
use avsg_capi::*;
use avsg_testkit::splitmix::SplitMix64;

use avsg_capi_testkit::*;

use super::shared_handles::{HANDLES_PER_KIND, KINDS, Kind, Shared};

/// A thread that makes random calls, and what it has counted.
pub struct RandomCaller<'a> {
    /// State shared with the other threads.
    pub shared: &'a Shared,
    /// The source of every choice.
    pub random: SplitMix64,
    /// Compare the rows of each step that succeeds. Only a single thread may: others would change
    /// the slots.
    pub verify: bool,
    /// Part of every generation. It is raised after a plan without a transfer, so that every state
    /// starts cold.
    pub epoch: i32,
    /// Rows compared.
    pub checked: usize,
    /// Calls by status.
    pub seen: [usize; 10],
}

impl RandomCaller<'_> {
    pub(super) fn word(&mut self) -> u64 {
        self.random.word()
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        (self.word() % n as u64) as usize
    }

    /// Returns true once in `n` times on average.
    pub(super) fn rarely(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// Returns an index that is usually below `count`.
    fn index(&mut self, count: usize) -> usize {
        match self.below(24) {
            0 => count,
            1 => usize::MAX,
            2 => self.word() as usize,
            _ => self.below(count),
        }
    }

    /// Returns a length or size that is usually `right`.
    pub(super) fn mostly(&mut self, right: usize) -> usize {
        match self.below(120) {
            0 => 0,
            1 => right.wrapping_sub(1),
            2 => usize::MAX,
            3 => usize::MAX / 4,
            4 => self.below(right.max(1)),
            _ => right,
        }
    }

    /// Returns one of the shared handles of a kind.
    fn shared_handle(&mut self, kind: Kind) -> &AtomicUsize {
        let at = self.below(HANDLES_PER_KIND);
        &self.shared.handles[kind as usize][at]
    }

    /// Returns a handle that is usually one of a kind, and at times NULL, of another kind or a
    /// random number.
    fn handle<C>(&mut self, kind: Kind) -> *mut C {
        let kind = if self.rarely(60) { KINDS[self.below(4)] } else { kind };
        let bits = match self.below(90) {
            0 => 0,
            1 => self.word() as usize,
            2 => (self.word() as usize % (1 << 47)) | 1,
            _ => self.shared_handle(kind).load(Ordering::Relaxed),
        };
        without_provenance_mut(bits)
    }

    /// Overwrites the `size` of a struct now and then.
    pub(super) fn corrupt_size<T>(&mut self, value: &mut T) {
        if self.rarely(100) {
            let size = match self.below(4) {
                0 => 0,
                1 => usize::MAX,
                2 => self.word() as usize | 1 << 20,
                _ => self.below(size_of::<T>()),
            };
            // SAFETY: `T` is a struct of the header and begins with its `size`.
            unsafe { (&raw mut *value).cast::<usize>().write(size) };
        }
    }

    /// Returns a pointer to `value`, or NULL now and then.
    pub(super) fn pointer<T>(&mut self, value: &mut T) -> *mut T {
        if self.rarely(150) { null_mut() } else { value }
    }

    /// Counts a call and returns whether it succeeded. A failure must have a message and not be
    /// AVSG_INTERNAL.
    pub(super) fn record(&mut self, status: avsg_status) -> bool {
        self.shared.calls.fetch_add(1, Ordering::Relaxed);
        self.seen[status as usize] += 1;
        if status == AVSG_OK {
            return true;
        }
        assert_ne!(status, AVSG_INTERNAL, "{}", last_error());
        if self.seen[status as usize] % 64 == 1 {
            let text = last_error();
            assert!(text.contains("; ") && text.len() > 20, "{status:?}: {text}");
        }
        false
    }

    /// Returns a batch that may have a mistake, and its arrays.
    fn batch(&mut self, step: i32) -> (Arrays, avsg_batch) {
        let mut owned = Arrays::new(step);
        owned.generation = vec![2 * self.epoch + step / 2000, self.epoch];
        let stable = 100 + self.below(26) as i32;
        owned.decode_at(stable);
        if self.rarely(3) {
            owned.ids[16 + self.below(16)] = stable + self.below(2) as i32;
        }
        if self.rarely(40) {
            let at = self.below(32);
            owned.ids[at] = [-1, i32::MIN, -7][self.below(3)];
        }
        if self.rarely(30) {
            let bad = [-1, -2, 2, i32::MAX, i32::MIN, 0, 1][self.below(7)];
            let n = self.below(2);
            match self.below(5) {
                0 => owned.state[n] = bad,
                1 => owned.cu_q[n] = bad,
                2 => owned.seq[n] = bad,
                3 => owned.stable[n] = bad,
                _ => owned.cu_q[2] = bad,
            }
        }
        let mut batch = owned.batch();
        batch.k = self.mostly(batch.k);
        batch.ids_stride = self.mostly(batch.ids_stride);
        // Another stride that is valid would select other rows, and `row` does not return their
        // bytes.
        batch.block_stride = match self.mostly(8) {
            1..8 => 0,
            other => other,
        };
        for array in [
            &mut batch.ids,
            &mut batch.cu_q,
            &mut batch.state,
            &mut batch.generation,
            &mut batch.stable_len,
            &mut batch.seq_len,
            &mut batch.block_table,
        ] {
            let right = array.len;
            array.len = self.mostly(right);
            if self.rarely(400) {
                array.data = null();
            }
            if self.rarely(400) {
                array.data = array.data.wrapping_byte_add(1);
                // The array stays inside the allocation if the call accepts it.
                array.len = array.len.min(right).saturating_sub(1);
            }
        }
        self.corrupt_size(&mut batch);
        (owned, batch)
    }

    /// Returns the fresh rows of a batch, which may have a mistake.
    fn fresh(&mut self, owned: &Arrays) -> avsg_fresh {
        let mut fresh = owned.fresh();
        fresh.bytes[0] = self.mostly(fresh.bytes[0]);
        fresh.segments = self.mostly(2);
        if self.rarely(200) {
            fresh.data[1] = null();
        }
        self.corrupt_size(&mut fresh);
        fresh
    }

    /// Creates a pool, an engine, a plan or workers, at times with a mistake, and keeps its handle.
    fn create(&mut self) {
        match self.below(4) {
            0 => {
                let (mut config, mut created) = (pool_config(), null_mut());
                config.layers = self.mostly(1);
                config.segments = self.mostly(2);
                config.pages = if self.rarely(20) { self.word() as i32 } else { config.pages };
                self.corrupt_size(&mut config);
                let to = self.pointer(&mut created);
                // SAFETY: `config` is a struct with a `size` that may be wrong, and `to` is NULL or
                // a local variable.
                if self.record(unsafe { avsg_pool_create(&config, to) }) {
                    if config.segments != 2 {
                        return self.destroy(Kind::Pool, created.addr());
                    }
                    let handles = Handles::from_raw(created, null_mut(), null_mut());
                    (0..ROWS).for_each(|i| handles.write_row(0, i, &row(0, i)));
                    self.keep(Kind::Pool, created.addr());
                }
            }
            1 => {
                let (mut config, mut created) = (engine_config(), null_mut());
                config.slots = if self.rarely(10) { self.word() as u32 } else { 64 };
                config.table =
                    if self.rarely(10) { self.word() as i32 } else { self.below(2) as i32 };
                config.lifetime = if self.rarely(10) { self.word() as i32 } else { 0 };
                config.states = self.mostly(2);
                config.page = if self.rarely(10) { self.word() as u32 } else { 16 };
                config.workers = if self.rarely(2) { null() } else { self.handle(Kind::Workers) };
                self.corrupt_size(&mut config);
                let (pool, to) = (self.handle(Kind::Pool), self.pointer(&mut created));
                // SAFETY: `config` is a struct with a `size` that may be wrong, and `to` is NULL or
                // a local variable.
                if self.record(unsafe { avsg_engine_create(&config, pool, to) }) {
                    self.keep(Kind::Engine, created.addr());
                }
            }
            2 => self.create_workers(),
            _ => {
                let mut created = null_mut();
                let (rows, requests) = (self.mostly(4), self.mostly(2));
                let (engine, to) = (self.handle(Kind::Engine), self.pointer(&mut created));
                // SAFETY: `to` is NULL or a local variable, and handles are looked up.
                if self.record(unsafe { avsg_plan_create(engine, rows, requests, to) }) {
                    self.keep(Kind::Plan, created.addr());
                }
            }
        }
    }

    /// Puts a handle in the place of a shared one, and destroys that one.
    pub(super) fn keep(&mut self, kind: Kind, bits: usize) {
        let old = self.shared_handle(kind).swap(bits, Ordering::Relaxed);
        self.destroy(kind, old);
    }

    /// Destroys a handle, which may be stale.
    pub fn destroy(&mut self, kind: Kind, bits: usize) {
        let status = match kind {
            Kind::Pool => avsg_pool_destroy(without_provenance_mut(bits)),
            Kind::Engine => avsg_engine_destroy(without_provenance_mut(bits)),
            Kind::Plan => avsg_plan_destroy(without_provenance_mut(bits)),
            Kind::Workers => avsg_workers_destroy(without_provenance_mut(bits)),
        };
        self.record(status);
    }

    /// Makes a call of a step, or a plan and a transfer.
    fn step(&mut self) {
        let step = self.below(4000) as i32;
        let (owned, batch) = self.batch(step);
        let fresh = self.fresh(&owned);
        let (engine, plan) = (self.handle::<avsg_engine>(Kind::Engine), self.handle(Kind::Plan));
        let layer = if self.rarely(30) { self.index(1) } else { 0 };
        let stream =
            if self.rarely(300) { without_provenance_mut::<c_void>(8) } else { null_mut() };
        let fresh: *const avsg_fresh = if self.rarely(60) { null() } else { &fresh };
        // SAFETY: `owned` owns the arrays, each length is at most the true one or too large for any
        // memory, and handles are looked up.
        unsafe {
            match self.below(8) {
                0 => {
                    let planned = self.record(avsg_engine_plan(engine, &batch, plan, stream));
                    // A plan other than the one just created may be too old for the layer.
                    let other = if self.rarely(8) { self.handle(Kind::Plan) } else { plan };
                    let moved = avsg_engine_transfer(engine, other, layer, fresh, stream);
                    // Without this transfer every later one is refused, until the states start
                    // cold.
                    if (!self.record(moved) || other != plan) && planned {
                        self.epoch += 1;
                    }
                }
                1 => {
                    self.record(avsg_engine_append(engine, &batch, layer, fresh, stream));
                }
                _ => {
                    let status = avsg_engine_step(engine, &batch, plan, layer, fresh, stream);
                    if self.record(status) && self.verify {
                        let handles = Handles::from_raw(null_mut(), engine, plan);
                        // `expect_exact` needs the usual shape of the batch.
                        let shape = [batch.k, batch.ids_stride, batch.block_stride];
                        let usual = shape == [K, K, 8] && owned.cu_q == [0, 2, 4];
                        if usual && owned.seq[0] == 128 && owned.seq[1] > 100 {
                            self.checked += handles.expect_exact(&owned, 0);
                        }
                    }
                }
            }
        }
    }

    /// Makes a call that reads from or writes to a handle, outside of a step.
    fn query(&mut self) {
        let (pool, engine) =
            (self.handle::<avsg_pool>(Kind::Pool), self.handle::<avsg_engine>(Kind::Engine));
        let plan = self.handle::<avsg_plan>(Kind::Plan);
        let (layer, segment, index) = (self.index(1), self.index(2), self.index(ROWS));
        let (mut count, mut bytes, mut read) = (0, [0u8; 64], null());
        macro_rules! info {
            ($call:ident, $handle:expr, $($arg:expr),*) => {{
                let mut value = sized();
                self.corrupt_size(&mut value);
                let to = self.pointer(&mut value);
                $call($handle, $($arg,)* to)
            }};
        }
        // SAFETY: each pointer is NULL or to local memory of the stated length, and handles are
        // looked up.
        let status = unsafe {
            match self.below(16) {
                0 => info!(avsg_pool_get_info, pool,),
                1 => info!(avsg_engine_get_info, engine,),
                2 => info!(avsg_plan_get_arrays, plan,),
                3 => info!(avsg_plan_get_counters, plan,),
                4 => info!(avsg_plan_get_request, plan, self.index(2)),
                5 => info!(avsg_engine_buffer, engine, layer, segment),
                6 => avsg_pool_row(pool, layer, segment, index, &mut read),
                7 => {
                    let mut write = null_mut();
                    let to = self.pointer(&mut write);
                    avsg_pool_row_mut(pool, layer, segment, index, to)
                }
                8 => {
                    let len = self.mostly(ROW).min(64);
                    avsg_pool_read_row(pool, layer, index, bytes.as_mut_ptr().cast(), len)
                }
                9 => {
                    let (bytes, len) = (row(0, index.min(ROWS)), self.mostly(ROW).min(ROW));
                    avsg_pool_write_row(pool, layer, index, bytes.as_ptr().cast(), len)
                }
                10 => {
                    let (mut table, mut lengths) = ([0i32; 16], [0i32; 2]);
                    let states = [self.index(2) as i32, -1];
                    let (page, stride) = (self.mostly(16), self.mostly(8));
                    let stride = if stride > 8 { 3 } else { stride };
                    let (t, l) = (table.as_mut_ptr(), lengths.as_mut_ptr());
                    avsg_engine_block_table(engine, states.as_ptr(), 2, page, t, stride, l)
                }
                11 => {
                    let to = self.pointer(&mut count);
                    avsg_engine_table(engine, self.index(2), (&raw mut read).cast(), to)
                }
                12 => {
                    let mut chunks = [avsg_chunk { data: null_mut(), bytes: 0 }; 2];
                    avsg_pool_chunks(pool, chunks.as_mut_ptr(), self.below(3), &mut count)
                }
                13 => avsg_engine_invalidate(engine, self.index(2), index, self.mostly(ROWS)),
                14 => {
                    let (state, to) = (self.index(2), self.pointer(&mut count));
                    avsg_engine_indexer_table(engine, layer, state, (&raw mut read).cast(), to)
                }
                _ => {
                    let mut config = pool_config();
                    config.rows = self.mostly(ROWS);
                    self.corrupt_size(&mut config);
                    avsg_pool_bytes(&config, &mut count)
                }
            }
        };
        self.record(status);
    }

    /// Makes calls until the run's limit is reached.
    pub fn run(&mut self) {
        // The calls below need handles that exist.
        (0..40).for_each(|_| self.create());
        while self.shared.calls.load(Ordering::Relaxed) < self.shared.limit {
            // An engine takes some 50 ms to create, so that a short run creates about a hundred
            // handles.
            let interval = (self.shared.limit / 100).min(4000);
            if self.rarely(interval) {
                self.create();
            }
            if self.rarely(interval * 12) {
                let kind = KINDS[self.below(4)];
                let bits = self.handle::<()>(kind).addr();
                self.destroy(kind, bits);
            }
            match self.below(1000) {
                0..600 => self.step(),
                _ => self.query(),
            }
        }
    }
}
