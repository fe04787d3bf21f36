//! What tests of the C ABI share: structs as a C program fills them ([`sized`], [`pool_config`],
//! [`Arrays`]), a pool, an engine and a plan ([`Handles`]), rows and slots in a caller's memory
//! ([`caller_memory`]), devices by name ([`device`]), steps in device memory ([`device_arrays`]), an
//! [`allocator`], and assertions on the status and message of a call ([`ok`], [`expect_error`]).

pub mod allocator;
pub mod caller_memory;
pub mod device;
pub mod device_arrays;

use std::ffi::{CStr, c_void};
use std::mem::zeroed;
use std::ops::{Deref, DerefMut};
use std::ptr::{null, null_mut};
use std::sync::Arc;

use avsg::ascend::acl::Context;
use avsg::rows::RowFormat;
use avsg_capi::avsg_status::AVSG_OK;
use avsg_capi::*;
use avsg_sim::{Options, Session};
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::content::fill_row;
use avsg_testkit::exact::{assert_exact, for_each_id};
use avsg_testkit::fresh::FreshRows;
use avsg_testkit::memory;

use device::context_of;

/// Returns a struct of the header, zeroed, with its `size` set.
pub fn sized<T>() -> T {
    // SAFETY: `T` is a struct of the header, and any bytes are a value of those.
    let mut value: T = unsafe { zeroed() };
    // SAFETY: every struct of the header that is used here begins with its `size`.
    unsafe { (&raw mut value).cast::<usize>().write(size_of::<T>()) };
    value
}

/// Returns the struct that a call fills, which must succeed.
pub fn filled<T>(call: impl FnOnce(&mut T) -> avsg_status) -> T {
    let mut value = sized();
    ok(call(&mut value));
    value
}

/// Returns the message of this thread's last failure.
pub fn last_error() -> String {
    // SAFETY: the string is NUL-terminated and valid until this thread's next failure.
    unsafe { CStr::from_ptr(avsg_last_error()) }.to_str().unwrap().to_owned()
}

/// Asserts that a call succeeded.
#[track_caller]
pub fn ok(status: avsg_status) {
    assert_eq!(status, AVSG_OK, "{}", last_error());
}

/// Asserts that a call failed with this status, and that its message is one line with a remedy that
/// contains each of `parts`.
#[track_caller]
pub fn expect_error(status: avsg_status, expected: avsg_status, parts: &[&str]) {
    let text = last_error();
    assert_eq!(status, expected, "{text}");
    assert!(!text.contains('\n') && text.contains("; "), "one line, with a remedy: {text}");
    for part in parts {
        assert!(text.contains(part), "{part:?} in {text:?}");
    }
}

/// The number that asks for a plan's arrays in the memory of the process.
pub const HOST: i32 = avsg_memory_kind::AVSG_MEMORY_HOST as i32;
/// The number that asks for a plan's arrays in the memory of the device.
pub const DEVICE: i32 = avsg_memory_kind::AVSG_MEMORY_DEVICE as i32;

/// Bytes of a row.
pub const ROW: usize = 40;
/// Rows of each layer of the pool.
pub const ROWS: usize = 128;
/// K, the ids that a token selects at most.
pub const K: usize = 8;

/// Returns the format of a row: segments of 24 and 16 bytes.
pub fn format() -> RowFormat {
    RowFormat::segments(&[24, 16]).unwrap()
}

/// Returns the configuration of a pool of two layers with [`ROWS`] rows each.
pub fn pool_config() -> avsg_pool_config {
    let mut config: avsg_pool_config = sized();
    (config.layers, config.rows, config.segments) = (2, ROWS, 2);
    (config.segment_bytes[0], config.segment_bytes[1]) = (24, 16);
    config.pages = avsg_pages::AVSG_PAGES_PLAIN as i32;
    config
}

/// Returns the configuration of an engine on "cpu" with 64 slots and two states.
pub fn engine_config() -> avsg_engine_config {
    let mut config: avsg_engine_config = sized();
    (config.k, config.tokens, config.slots) = (K as u32, 2, 64);
    (config.states, config.cores, config.page) = (2, 1, 16);
    config
}

/// Returns [`engine_config`] for a device; an Ascend device needs 128 slots.
pub fn config_on(device: &'static CStr) -> avsg_engine_config {
    let mut config = engine_config();
    config.device = device.as_ptr();
    config.slots = if device == c"cpu" { 64 } else { 128 };
    config
}

/// Returns whether this machine has a C++ compiler, which the simulated Ascend needs, and prints a
/// line if not.
pub fn have_compiler() -> bool {
    let has_one = avsg_sim::compiler::cpp().is_some();
    if !has_one {
        println!("skipped: the emitted kernels need a C++ compiler, and this machine has none");
    }
    has_one
}

/// Runs a test on "cpu" and, if there is a compiler, on "ascend-sim", where it must not leak.
pub fn each_device(test: impl Fn(&'static CStr)) {
    test(c"cpu");
    if have_compiler() {
        let session = Session::new(Options { seed: 4, ..Options::default() });
        test(c"ascend-sim");
        assert_eq!(session.leaks(), Vec::<String>::new());
    }
}

/// Returns the initial bytes of row `index` of a layer.
pub fn row(layer: usize, index: usize) -> [u8; ROW] {
    let mut bytes = [0; ROW];
    fill_row(index as i32, layer as u32, &mut bytes);
    bytes
}

/// A pool with the rows of [`row`], an engine on it and a plan of that engine.
pub struct Handles {
    /// The pool.
    pub pool: *mut avsg_pool,
    /// The engine.
    pub engine: *mut avsg_engine,
    /// The plan, of at most 4 rows and 2 requests.
    pub plan: *mut avsg_plan,
    /// The context that slots in device memory are read with; None on "cpu".
    pub context: Option<Arc<Context>>,
}

impl Handles {
    /// Groups handles of an engine on "cpu"; each may be NULL.
    pub fn from_raw(pool: *mut avsg_pool, engine: *mut avsg_engine, plan: *mut avsg_plan) -> Self {
        Self { pool, engine, plan, context: None }
    }

    /// Creates handles on "cpu" with [`engine_config`].
    pub fn on_cpu() -> Self {
        Self::on(c"cpu")
    }

    /// Creates handles on "cpu" or "ascend-sim" with [`config_on`].
    pub fn on(device: &'static CStr) -> Self {
        Self::create(&pool_config(), &config_on(device))
    }

    /// Creates handles with these configurations.
    pub fn create(pool: &avsg_pool_config, config: &avsg_engine_config) -> Self {
        let mut handles = Self::from_raw(null_mut(), null_mut(), null_mut());
        // SAFETY: the structs have their `size` set, the name of a device is NULL or a string, and the
        // out-pointers are fields of `handles`.
        unsafe {
            if !config.device.is_null() {
                handles.context = context_of(CStr::from_ptr(config.device));
            }
            ok(avsg_pool_create(pool, &mut handles.pool));
            for layer in 0..2 {
                (0..pool.rows).for_each(|i| handles.write_row(layer, i, &row(layer, i)));
            }
            ok(avsg_engine_create(config, handles.pool, &mut handles.engine));
            ok(avsg_plan_create(handles.engine, 4, 2, &mut handles.plan));
        }
        handles
    }

    /// Calls `avsg_engine_append` with host arrays and returns its status.
    pub fn append(&self, owned: &OwnedBatch, rows: &FreshRows, layer: usize) -> avsg_status {
        let (batch, fresh) = (c_batch(owned), c_fresh(rows));
        // SAFETY: `owned` and `rows` own the arrays of the batch and the fresh rows.
        unsafe { avsg_engine_append(self.engine, &batch, &layer, 1, &fresh, null_mut()) }
    }

    /// Writes row `index` of a layer of the pool.
    pub fn write_row(&self, layer: usize, index: usize, bytes: &[u8]) {
        let (data, len) = (bytes.as_ptr().cast(), bytes.len());
        // SAFETY: `data` points to `len` bytes.
        ok(unsafe { avsg_pool_write_row(self.pool, layer, index, data, len) });
    }

    /// Calls `avsg_engine_step` with host arrays and returns its status.
    pub fn step(&self, owned: &Arrays, layer: usize) -> avsg_status {
        let fresh = owned.fresh();
        // SAFETY: `owned` owns the arrays of the batch and the fresh rows.
        unsafe {
            avsg_engine_step(self.engine, &owned.batch(), self.plan, layer, &fresh, null_mut())
        }
    }

    /// Asserts that every selected id of the requests that did not fail has a slot that holds its row.
    /// Returns the number of rows compared.
    pub fn expect_exact(&self, owned: &OwnedBatch, layer: usize) -> usize {
        // SAFETY: the struct has its `size` set.
        let (arrays, mut checked) =
            (filled(|to| unsafe { avsg_plan_get_arrays(self.plan, HOST, to) }), 0);
        let failed = failures(self.plan, owned.state.len());
        // SAFETY: the plan's arrays hold the batch's rows.
        let slots = unsafe { memory::read_words(None, arrays.slot, owned.rows() * K) };
        for_each_id(
            &owned.batch(),
            ROW,
            |row| &slots[row * K..][..K],
            |state, slot, bytes| {
                self.read_slot(state, layer, slot, bytes);
                true
            },
            |_, id| (id, layer as u32),
            |seen| {
                if failed.iter().all(|&(request, ..)| request != seen.request) {
                    checked += assert_exact(seen, layer);
                }
            },
        );
        checked
    }

    /// Copies the row in a slot to `row`. No call on the engine may be in progress.
    pub fn read_slot(&self, state: usize, layer: usize, slot: usize, row: &mut [u8]) {
        let part = |segment| {
            // SAFETY: the struct has its `size` set.
            let buffer =
                filled(|to| unsafe { avsg_engine_get_buffer(self.engine, layer, segment, to) });
            let offset = state * buffer.state_stride + slot * buffer.slot_stride;
            // SAFETY: the address is a slot of the engine's buffer, and no call is in progress.
            unsafe { self.bytes(buffer.base.wrapping_byte_add(offset), buffer.bytes) }
        };
        row.copy_from_slice(&[part(0), part(1)].concat());
    }

    /// Returns a copy of `n` bytes of the device's memory.
    ///
    /// # Safety
    /// `from` points to `n` initialised bytes, and no call that writes them is in progress.
    pub unsafe fn bytes(&self, from: *const c_void, n: usize) -> Vec<u8> {
        // SAFETY: `from` points to `n` bytes, which no call writes (`# Safety`).
        unsafe { memory::read_bytes(self.context.as_deref(), from, n) }
    }

    /// Destroys plan, engine and pool.
    pub fn destroy(self) {
        ok(avsg_plan_destroy(self.plan));
        ok(avsg_engine_destroy(self.engine));
        ok(avsg_pool_destroy(self.pool));
    }
}

/// Returns the rows of the misses of a request in a plan's last batch, or their ids.
#[expect(clippy::not_unsafe_ptr_arg_deref, reason = "the library looks a handle up")]
pub fn missed(plan: *const avsg_plan, request: usize, ids: bool) -> Vec<i32> {
    // SAFETY: the struct has its `size` set.
    let arrays = filled(|to| unsafe { avsg_plan_get_arrays(plan, HOST, to) });
    // SAFETY: the plan holds the request.
    unsafe {
        let summary = arrays.summary.add(request * AVSG_SUMMARY_WORDS);
        let misses = summary.add(AVSG_SUMMARY_MISSES).read() as usize;
        let list = if ids { arrays.miss_id } else { arrays.miss_row };
        let first = arrays.cu_q.add(request).read() as usize * arrays.k;
        memory::read_words(None, list.add(first), misses)
    }
}

/// Returns those of a plan's first `requests` requests that transfers left out, with the layer and the row
/// that are not whole.
#[expect(clippy::not_unsafe_ptr_arg_deref, reason = "the library looks a handle up")]
pub fn failures(plan: *const avsg_plan, requests: usize) -> Vec<(usize, usize, usize)> {
    // SAFETY: the struct has its `size` set.
    let arrays = filled(|to| unsafe { avsg_plan_get_arrays(plan, HOST, to) });
    // SAFETY: the plan holds so many requests.
    let [layers, rows] = unsafe {
        [arrays.failed_layer, arrays.failed_row]
            .map(|array| std::slice::from_raw_parts(array, requests))
    };
    let failed = (0..requests).filter(|&request| (layers[request], rows[request]) != (-1, -1));
    failed.map(|request| (request, layers[request] as usize, rows[request] as usize)).collect()
}

/// Returns whether the last transfer of a plan found that it must leave a request out, and the ids of the rows
/// that are not whole.
#[expect(clippy::not_unsafe_ptr_arg_deref, reason = "the library looks a handle up")]
pub fn lost_ids(plan: *const avsg_plan, request: usize) -> (bool, Vec<i32>) {
    let (mut count, mut ids) = (0, vec![0; 1000]);
    // SAFETY: the struct has its `size` set, the plan holds the request, and the array has 1000 elements.
    unsafe {
        let arrays = filled(|to| avsg_plan_get_arrays(plan, HOST, to));
        ok(avsg_plan_get_lost_ids(plan, request, ids.as_mut_ptr(), ids.len(), &mut count));
        ids.truncate(count);
        (*arrays.failed_new.add(request) == 1, ids)
    }
}

/// Returns the C struct of a batch in host memory.
pub fn c_batch(owned: &OwnedBatch) -> avsg_batch {
    let array = |v: &[i32]| avsg_i32s { data: v.as_ptr(), len: v.len() };
    c_batch_at(owned, owned.arrays().map(array))
}

/// Returns the C struct of a batch whose arrays are at these addresses, in the order of [`OwnedBatch::arrays`].
pub fn c_batch_at(owned: &OwnedBatch, arrays: [avsg_i32s; 7]) -> avsg_batch {
    let [ids, cu_q, state, generation, stable_len, seq_len, block_table] = arrays;
    avsg_batch {
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
        indexer: owned.indexer,
        ..sized()
    }
}

/// Returns the C struct of fresh rows in host memory.
pub fn c_fresh(rows: &FreshRows) -> avsg_fresh {
    let [first, second] = rows.parts() else { panic!("a row has two segments") };
    avsg_fresh {
        size: size_of::<avsg_fresh>(),
        segments: 2,
        data: [first.as_ptr().cast(), second.as_ptr().cast(), null(), null()],
        bytes: [first.len(), second.len(), 0, 0],
    }
}

/// A batch of two requests with two rows each, and fresh rows of the second request, which both
/// layers share.
#[derive(Clone, Debug)]
pub struct Arrays {
    owned: OwnedBatch,
    /// The fresh rows, one for each row of the batch.
    pub rows: FreshRows,
}

impl Arrays {
    /// Returns the batch of a step, whose number decides the ids.
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

    /// Gives the second request `stable` final tokens and fresh rows for the two tokens after them.
    pub fn decode_at(&mut self, stable: i32) {
        (self.stable[1], self.seq[1]) = (stable, stable + 2);
        (0..2).for_each(|g| self.rows.put(2 + g, stable + g as i32, 0));
    }

    /// Returns the C struct of the batch.
    pub fn batch(&self) -> avsg_batch {
        c_batch(&self.owned)
    }

    /// Returns the C struct of the fresh rows.
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
