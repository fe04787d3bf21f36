//! One thread that makes random calls.

use std::ffi::c_void;
use std::ptr::{null, null_mut, without_provenance_mut};
use std::sync::atomic::{AtomicUsize, Ordering};

use avsg_capi::avsg_status::*;
use avsg_capi::*;
use avsg_testkit::splitmix::SplitMix64;

use super::c::*;

/// Handles of each kind that a run juggles with; some are always stale.
pub const HANDLES: usize = 4;

/// What the threads of a run share.
pub struct Shared {
    pub handles: [[AtomicUsize; HANDLES]; 3],
    pub calls: AtomicUsize,
    pub limit: usize,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Pool,
    Engine,
    Plan,
}

pub struct Player<'a> {
    pub shared: &'a Shared,
    pub dice: SplitMix64,
    /// Alone: results may be looked at.
    pub verify: bool,
    /// Raised when a plan was made and not transferred: everything starts cold then.
    pub epoch: i32,
    pub checked: usize,
    pub seen: [usize; 10],
}

impl Player<'_> {
    fn word(&mut self) -> u64 {
        self.dice.word()
    }

    fn below(&mut self, n: usize) -> usize {
        (self.word() % n as u64) as usize
    }

    /// Once in n times.
    fn rarely(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// A good index, mostly.
    fn index(&mut self, count: usize) -> usize {
        match self.below(24) {
            0 => count,
            1 => usize::MAX,
            2 => self.word() as usize,
            _ => self.below(count),
        }
    }

    /// A length or size that is right, mostly.
    fn spoilt(&mut self, right: usize) -> usize {
        match self.below(120) {
            0 => 0,
            1 => right.wrapping_sub(1),
            2 => usize::MAX,
            3 => usize::MAX / 4,
            4 => self.below(right.max(1)),
            _ => right,
        }
    }

    fn place(&mut self, kind: Kind) -> &AtomicUsize {
        let at = self.below(HANDLES);
        &self.shared.handles[kind as usize][at]
    }

    fn handle<C>(&mut self, kind: Kind) -> *mut C {
        let kind = if self.rarely(60) {
            [Kind::Pool, Kind::Engine, Kind::Plan][self.below(3)]
        } else {
            kind
        };
        let bits = match self.below(90) {
            0 => 0,
            1 => self.word() as usize,
            2 => (self.word() as usize % (1 << 47)) | 1,
            _ => self.place(kind).load(Ordering::Relaxed),
        };
        without_provenance_mut(bits)
    }

    fn size<T>(&mut self, value: &mut T) {
        if self.rarely(100) {
            let size = match self.below(4) {
                0 => 0,
                1 => usize::MAX,
                2 => self.word() as usize | 1 << 20,
                _ => self.below(size_of::<T>()),
            };
            // SAFETY: structs of the header begin with their size.
            unsafe { (&raw mut *value).cast::<usize>().write(size) };
        }
    }

    /// The pointer, or NULL now and then.
    fn at<T>(&mut self, value: &mut T) -> *mut T {
        if self.rarely(150) { null_mut() } else { value }
    }

    /// Counts a call; whatever it answered must be said in words and be no defect.
    fn told(&mut self, status: avsg_status) -> bool {
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
        batch.k = self.spoilt(batch.k);
        batch.ids_stride = self.spoilt(batch.ids_stride);
        // Any other stride would make another valid block table, whose rows `row` does not know.
        batch.block_stride = match self.spoilt(8) {
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
            array.len = self.spoilt(right);
            if self.rarely(400) {
                array.data = null();
            }
            if self.rarely(400) {
                array.data = array.data.wrapping_byte_add(1);
                // Still inside, should it be taken.
                array.len = array.len.min(right).saturating_sub(1);
            }
        }
        self.size(&mut batch);
        (owned, batch)
    }

    fn fresh(&mut self, owned: &Arrays) -> avsg_fresh {
        let mut fresh = owned.fresh();
        fresh.bytes[0] = self.spoilt(fresh.bytes[0]);
        fresh.segments = self.spoilt(2);
        if self.rarely(200) {
            fresh.data[1] = null();
        }
        self.size(&mut fresh);
        fresh
    }

    fn create(&mut self) {
        match self.below(3) {
            0 => {
                let (mut config, mut made) = (pool_config(), null_mut());
                config.layers = self.spoilt(1);
                config.segments = self.spoilt(2);
                config.pages = if self.rarely(20) { self.word() as i32 } else { config.pages };
                self.size(&mut config);
                let to = self.at(&mut made);
                // SAFETY: a struct and a place, or NULL.
                if self.told(unsafe { avsg_pool_create(&config, to) }) {
                    if config.segments != 2 {
                        return self.destroy(Kind::Pool, made.addr());
                    }
                    for at in 0..ROWS {
                        Life::of(made, null_mut(), null_mut()).write_row(0, at, &row(0, at));
                    }
                    self.keep(Kind::Pool, made.addr());
                }
            }
            1 => {
                let (mut config, mut made) = (engine_config(), null_mut());
                config.slots = if self.rarely(10) { self.word() as u32 } else { 64 };
                config.table =
                    if self.rarely(10) { self.word() as i32 } else { self.below(2) as i32 };
                config.lifetime = if self.rarely(10) { self.word() as i32 } else { 0 };
                config.states = self.spoilt(2);
                config.page = if self.rarely(10) { self.word() as u32 } else { 16 };
                self.size(&mut config);
                let (pool, to) = (self.handle(Kind::Pool), self.at(&mut made));
                // SAFETY: as above.
                if self.told(unsafe { avsg_engine_create(&config, pool, to) }) {
                    self.keep(Kind::Engine, made.addr());
                }
            }
            _ => {
                let mut made = null_mut();
                let (rows, requests) = (self.spoilt(4), self.spoilt(2));
                let (engine, to) = (self.handle(Kind::Engine), self.at(&mut made));
                // SAFETY: as above.
                if self.told(unsafe { avsg_plan_create(engine, rows, requests, to) }) {
                    self.keep(Kind::Plan, made.addr());
                }
            }
        }
    }

    /// Puts a handle into a place; what was there is destroyed or becomes a leak of nothing but a stale one.
    fn keep(&mut self, kind: Kind, bits: usize) {
        let old = self.place(kind).swap(bits, Ordering::Relaxed);
        self.destroy(kind, old);
    }

    pub fn destroy(&mut self, kind: Kind, bits: usize) {
        let status = match kind {
            Kind::Pool => avsg_pool_destroy(without_provenance_mut(bits)),
            Kind::Engine => avsg_engine_destroy(without_provenance_mut(bits)),
            Kind::Plan => avsg_plan_destroy(without_provenance_mut(bits)),
        };
        self.told(status);
    }

    fn step(&mut self) {
        let step = self.below(4000) as i32;
        let (owned, batch) = self.batch(step);
        let fresh = self.fresh(&owned);
        let (engine, plan) = (self.handle::<avsg_engine>(Kind::Engine), self.handle(Kind::Plan));
        let layer = if self.rarely(30) { self.index(1) } else { 0 };
        let stream =
            if self.rarely(300) { without_provenance_mut::<c_void>(8) } else { null_mut() };
        let fresh_at: *const avsg_fresh = if self.rarely(60) { null() } else { &fresh };
        // SAFETY: `owned` keeps the arrays; lengths are not above theirs, or refused. Whatever a handle
        // is, it is looked up.
        unsafe {
            match self.below(8) {
                0 => {
                    let planned = self.told(avsg_engine_plan(engine, &batch, plan, stream));
                    // Now and then another plan, which may be too old.
                    let other = if self.rarely(8) { self.handle(Kind::Plan) } else { plan };
                    let moved = avsg_engine_transfer(engine, other, layer, fresh_at, stream);
                    // Without the transfer every later one is refused: the states start cold.
                    if (!self.told(moved) || other != plan) && planned {
                        self.epoch += 1;
                    }
                }
                1 => {
                    self.told(avsg_engine_append(engine, &batch, layer, fresh_at, stream));
                }
                _ => {
                    let status = avsg_engine_step(engine, &batch, plan, layer, fresh_at, stream);
                    if self.told(status) && self.verify {
                        let life = Life::of(null_mut(), engine, plan);
                        // Only whole rows, as `Life` knows them.
                        let shape = [batch.k, batch.ids_stride, batch.block_stride];
                        let whole = shape == [K, K, 8] && owned.cu_q == [0, 2, 4];
                        if whole && owned.seq[0] == 128 && owned.seq[1] > 100 {
                            self.checked += life.expect_exact(&owned, 0);
                        }
                    }
                }
            }
        }
    }

    fn look(&mut self) {
        let (pool, engine) =
            (self.handle::<avsg_pool>(Kind::Pool), self.handle::<avsg_engine>(Kind::Engine));
        let plan = self.handle::<avsg_plan>(Kind::Plan);
        let (layer, segment, at) = (self.index(1), self.index(2), self.index(ROWS));
        let (mut count, mut bytes, mut read) = (0, [0u8; 64], null());
        macro_rules! info {
            ($call:ident, $handle:expr, $($arg:expr),*) => {{
                let mut value = sized();
                self.size(&mut value);
                let to = self.at(&mut value);
                $call($handle, $($arg,)* to)
            }};
        }
        // SAFETY: places for results of the stated sizes; handles are looked up.
        let status = unsafe {
            match self.below(14) {
                0 => info!(avsg_pool_get_info, pool,),
                1 => info!(avsg_engine_get_info, engine,),
                2 => info!(avsg_plan_get_arrays, plan,),
                3 => info!(avsg_plan_get_counters, plan,),
                4 => info!(avsg_plan_get_request, plan, self.index(2)),
                5 => info!(avsg_engine_buffer, engine, layer, segment),
                6 => avsg_pool_row(pool, layer, segment, at, &mut read),
                7 => {
                    let mut write = null_mut();
                    let to = self.at(&mut write);
                    avsg_pool_row_mut(pool, layer, segment, at, to)
                }
                8 => {
                    let len = self.spoilt(ROW).min(64);
                    avsg_pool_read_row(pool, layer, at, bytes.as_mut_ptr().cast(), len)
                }
                9 => {
                    let (bytes, len) = (row(0, at.min(ROWS)), self.spoilt(ROW).min(ROW));
                    avsg_pool_write_row(pool, layer, at, bytes.as_ptr().cast(), len)
                }
                10 => {
                    let (mut table, mut lengths) = ([0i32; 16], [0i32; 2]);
                    let states = [self.index(2) as i32, -1];
                    let (page, stride) = (self.spoilt(16), self.spoilt(8));
                    let stride = if stride > 8 { 3 } else { stride };
                    let (t, l) = (table.as_mut_ptr(), lengths.as_mut_ptr());
                    avsg_engine_block_table(engine, states.as_ptr(), 2, page, t, stride, l)
                }
                11 => {
                    let to = self.at(&mut count);
                    avsg_engine_table(engine, self.index(2), (&raw mut read).cast(), to)
                }
                12 => {
                    let mut chunks = [avsg_chunk { data: null_mut(), bytes: 0 }; 2];
                    avsg_pool_chunks(pool, chunks.as_mut_ptr(), self.below(3), &mut count)
                }
                _ => {
                    let mut config = pool_config();
                    config.rows = self.spoilt(ROWS);
                    self.size(&mut config);
                    avsg_pool_bytes(&config, &mut count)
                }
            }
        };
        self.told(status);
    }

    pub fn play(&mut self) {
        // Something to begin with.
        (0..40).for_each(|_| self.create());
        while self.shared.calls.load(Ordering::Relaxed) < self.shared.limit {
            // Engines take some 50 ms to make: about a hundred in a short run.
            let whole = (self.shared.limit / 100).min(4000);
            if self.rarely(whole) {
                self.create();
            }
            if self.rarely(whole * 12) {
                let kind = [Kind::Pool, Kind::Engine, Kind::Plan][self.below(3)];
                let bits = self.handle::<()>(kind).addr();
                self.destroy(kind, bits);
            }
            match self.below(1000) {
                0..600 => self.step(),
                _ => self.look(),
            }
        }
    }
}
