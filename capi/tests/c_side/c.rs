//! The C side of a test: structs as a C program fills them, calls that must succeed, and what a call
//! that must not said.
#![allow(dead_code, reason = "each test uses its part")]

use std::ffi::{CStr, c_void};
use std::mem::zeroed;
use std::ops::{Deref, DerefMut};
use std::ptr::{null, null_mut};
use std::sync::Arc;

use avsg::ascend::acl::owned::Context;
use avsg::ascend::simulated;
use avsg::rows::RowFormat;
use avsg_capi::avsg_status::AVSG_OK;
use avsg_capi::*;
use avsg_sim::{Options, Session};
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::content::fill_row;
use avsg_testkit::exact::{assert_exact, for_each_id};
use avsg_testkit::fresh::FreshRows;
use avsg_testkit::memory;

/// A zeroed struct that knows its size.
pub fn sized<T>() -> T {
    // SAFETY: used with the structs of the header only, which any bytes are a value of.
    let mut value: T = unsafe { zeroed() };
    // SAFETY: each of them begins with its size.
    unsafe { (&raw mut value).cast::<usize>().write(size_of::<T>()) };
    value
}

/// The sentence of this thread's last failure.
pub fn last_error() -> String {
    // SAFETY: NUL-terminated, valid until this thread's next failure.
    unsafe { CStr::from_ptr(avsg_last_error()) }.to_str().unwrap().to_owned()
}

pub fn ok(status: avsg_status) {
    assert_eq!(status, AVSG_OK, "{}", last_error());
}

/// The call failed with this code and one line that names the value, the limit and the remedy.
#[track_caller]
pub fn fails(status: avsg_status, want: avsg_status, parts: &[&str]) {
    let text = last_error();
    assert_eq!(status, want, "{text}");
    assert!(!text.contains('\n') && text.contains("; "), "one line, with a remedy: {text}");
    for part in parts {
        assert!(text.contains(part), "{part:?} in {text:?}");
    }
}

pub const ROW: usize = 40;
pub const ROWS: usize = 128;
pub const K: usize = 8;

/// The format of a row.
pub fn format() -> RowFormat {
    RowFormat::segments(&[24, 16]).unwrap()
}

pub fn pool_config() -> avsg_pool_config {
    let mut config: avsg_pool_config = sized();
    (config.layers, config.rows, config.segments) = (2, ROWS, 2);
    (config.segment_bytes[0], config.segment_bytes[1]) = (24, 16);
    config.pages = avsg_pages::AVSG_PAGES_PLAIN as i32;
    config
}

pub fn engine_config() -> avsg_engine_config {
    let mut config: avsg_engine_config = sized();
    (config.k, config.tokens, config.slots) = (K as u32, 2, 64);
    (config.states, config.cores, config.page) = (2, 1, 16);
    // The only one that is not measured, so that creation is quick.
    config.machine = avsg_machine::AVSG_MACHINE_EMU as i32;
    config
}

/// [`engine_config`] on a device, which takes no fewer slots than 128.
pub fn config_on(device: &'static CStr) -> avsg_engine_config {
    let mut config = engine_config();
    config.device = device.as_ptr();
    config.slots = if device == c"cpu" { 64 } else { 128 };
    config
}

/// Whether a C++ compiler is here; says so if not.
pub fn compiler() -> bool {
    let there = avsg_sim::compiler::cpp().is_some();
    if !there {
        println!("skipped: no C++ compiler, which the emitted kernels need here");
    }
    there
}

/// The same test on the CPU and on the simulated Ascend, where nothing is left behind.
pub fn each_device(test: impl Fn(&'static CStr)) {
    test(c"cpu");
    if compiler() {
        let session = Session::new(Options { seed: 4, ..Options::default() });
        test(c"ascend-sim");
        assert_eq!(session.leaks(), Vec::<String>::new());
    }
}

/// The bytes of a row that nobody has changed.
pub fn row(layer: usize, at: usize) -> [u8; ROW] {
    let mut bytes = [0; ROW];
    fill_row(at as i32, layer as u32, &mut bytes);
    bytes
}

/// A pool whose rows are [`row`], an engine and a plan.
pub struct Life {
    pub pool: *mut avsg_pool,
    pub engine: *mut avsg_engine,
    pub plan: *mut avsg_plan,
    /// Reads the slots of a device.
    pub context: Option<Arc<Context>>,
}

impl Life {
    /// Of handles, on the CPU.
    pub fn of(pool: *mut avsg_pool, engine: *mut avsg_engine, plan: *mut avsg_plan) -> Self {
        Self { pool, engine, plan, context: None }
    }

    /// On the CPU.
    pub fn new() -> Self {
        Self::on(c"cpu")
    }

    /// On "cpu" or "ascend-sim".
    pub fn on(device: &'static CStr) -> Self {
        let context = (device != c"cpu").then(|| simulated::context().unwrap());
        Self::with(&config_on(device), context)
    }

    /// With an engine of the test's own; `context` is its device's, if it is one.
    pub fn with(config: &avsg_engine_config, context: Option<Arc<Context>>) -> Self {
        Self::with_rows(ROWS, config, context)
    }

    /// The same on a pool of so many rows.
    pub fn with_rows(
        rows: usize,
        config: &avsg_engine_config,
        context: Option<Arc<Context>>,
    ) -> Self {
        let mut life = Self { context, ..Self::of(null_mut(), null_mut(), null_mut()) };
        let pool = avsg_pool_config { rows, ..pool_config() };
        // SAFETY: structs with their sizes, and places for results, all alive during the call.
        unsafe {
            ok(avsg_pool_create(&pool, &mut life.pool));
            for (layer, at) in (0..2).flat_map(|l| (0..rows).map(move |at| (l, at))) {
                life.write_row(layer, at, &row(layer, at));
            }
            ok(avsg_engine_create(config, life.pool, &mut life.engine));
            ok(avsg_plan_create(life.engine, 4, 2, &mut life.plan));
        }
        life
    }

    /// Writes a row into the pool.
    pub fn write_row(&self, layer: usize, at: usize, bytes: &[u8]) {
        let (from, len) = (bytes.as_ptr().cast(), bytes.len());
        // SAFETY: so many bytes.
        ok(unsafe { avsg_pool_write_row(self.pool, layer, at, from, len) });
    }

    pub fn step(&self, owned: &Arrays, layer: usize) -> avsg_status {
        let fresh = owned.fresh();
        // SAFETY: `owned` keeps all arrays of the batch and the fresh rows.
        unsafe {
            avsg_engine_step(self.engine, &owned.batch(), self.plan, layer, &fresh, null_mut())
        }
    }

    /// Every selected id has a slot with its row in it. Returns how many were looked at.
    pub fn expect_exact(&self, owned: &OwnedBatch, layer: usize) -> usize {
        let (mut out, mut checked) = (sized::<avsg_plan_arrays>(), 0);
        // SAFETY: a struct with its size; the plan's arrays hold the batch's rows.
        let slots = unsafe {
            ok(avsg_plan_get_arrays(self.plan, &mut out));
            memory::read_words(None, out.slot, owned.rows() * K)
        };
        for_each_id(
            &owned.batch(),
            ROW,
            |row| &slots[row * K..][..K],
            |state, slot, bytes| {
                self.read_slot(state, layer, slot, bytes);
                true
            },
            |_, id| (id, layer as u32),
            |seen| checked += assert_exact(seen, layer),
        );
        checked
    }

    /// Reads the row in a slot, while no call runs.
    pub fn read_slot(&self, state: usize, layer: usize, slot: usize, into: &mut [u8]) {
        let mut rest = into;
        for segment in 0..2 {
            let mut buffer: avsg_buffer = sized();
            // SAFETY: a struct with its size.
            unsafe { ok(avsg_engine_buffer(self.engine, layer, segment, &mut buffer)) };
            let place = state * buffer.state_stride + slot * buffer.slot_stride;
            let (part, after) = rest.split_at_mut(buffer.bytes);
            // SAFETY: a slot of a state of the engine's buffer; no call runs.
            part.copy_from_slice(&unsafe {
                self.bytes(buffer.base.wrapping_byte_add(place), buffer.bytes)
            });
            rest = after;
        }
    }

    /// Bytes of the device's memory.
    ///
    /// # Safety
    /// There are so many at this address, and no call is under way.
    pub unsafe fn bytes(&self, from: *const c_void, n: usize) -> Vec<u8> {
        // SAFETY: the contract.
        unsafe { memory::read_bytes(self.context.as_deref(), from, n) }
    }

    pub fn end(self) {
        ok(avsg_plan_destroy(self.plan));
        ok(avsg_engine_destroy(self.engine));
        ok(avsg_pool_destroy(self.pool));
    }
}

/// The struct of a batch.
pub fn c_batch(owned: &OwnedBatch) -> avsg_batch {
    let array = |v: &[i32]| avsg_i32s { data: v.as_ptr(), len: v.len() };
    let [ids, cu_q, state, generation, stable_len, seq_len, block_table] =
        owned.arrays().map(array);
    avsg_batch {
        size: size_of::<avsg_batch>(),
        ids,
        ids_stride: owned.stride,
        k: owned.k,
        cu_q,
        state,
        generation,
        stable_len,
        seq_len,
        block_table,
        block_stride: owned.block_stride,
    }
}

/// The struct of a step's own rows.
pub fn c_fresh(rows: &FreshRows) -> avsg_fresh {
    let [first, second] = rows.parts() else { panic!("a row has two segments") };
    avsg_fresh {
        size: size_of::<avsg_fresh>(),
        segments: 2,
        data: [first.as_ptr().cast(), second.as_ptr().cast(), null(), null()],
        bytes: [first.len(), second.len(), 0, 0],
    }
}

/// A batch of two requests with two rows each, the second with fresh rows, which both layers share.
#[derive(Clone, Debug)]
pub struct Arrays {
    owned: OwnedBatch,
    pub rows: FreshRows,
}

impl Arrays {
    pub fn new(step: i32) -> Self {
        let id = |i: i32| (step * 3 + i / 8 * 5 + i * 7) % 100;
        let ids = [0, 8, 16, 24].map(|from| (from..from + 8).map(id).collect::<Vec<_>>());
        let blocks = (0..16).map(|b| b % 8).collect();
        let mut owned = OwnedBatch { blocks, block_stride: 8, ..OwnedBatch::new(K, 0) };
        owned.push([1, 1, -1, 128], &ids[..2]);
        owned.push([0, 1, 100, 102], &ids[2..]);
        let mut rows = FreshRows::new(&format(), 4);
        (0..4).for_each(|at| rows.put(at, 100 + at as i32 % 2, 0));
        Self { owned, rows }
    }

    /// The second request makes the rows from `stable` on.
    pub fn decode_at(&mut self, stable: i32) {
        (self.stable[1], self.seq[1]) = (stable, stable + 2);
        (0..2).for_each(|g| self.rows.put(2 + g, stable + g as i32, 0));
    }

    pub fn batch(&self) -> avsg_batch {
        c_batch(&self.owned)
    }

    pub fn fresh(&self) -> avsg_fresh {
        c_fresh(&self.rows)
    }
}

impl Deref for Arrays {
    type Target = OwnedBatch;

    fn deref(&self) -> &OwnedBatch {
        &self.owned
    }
}

impl DerefMut for Arrays {
    fn deref_mut(&mut self) -> &mut OwnedBatch {
        &mut self.owned
    }
}
