//! The C side of a test: structs as a C program fills them, calls that must succeed, and what a call
//! that must not said.
#![allow(dead_code, reason = "each test uses its part")]

use std::ffi::{CStr, c_void};
use std::mem::zeroed;
use std::ptr::{null, null_mut};
use std::sync::Arc;

use avsg::ascend::acl::api::memory::{Way, copy};
use avsg::ascend::acl::owned::Context;
use avsg::ascend::simulated;
use avsg_capi::avsg_status::AVSG_OK;
use avsg_capi::*;
use avsg_sim::{Options, Session};

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

/// The bytes of a row.
pub fn row(layer: usize, at: usize) -> [u8; ROW] {
    core::array::from_fn(|i| (at * 31 + layer * 101 + i * 7 + at * i) as u8)
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
        let mut life = Self { context, ..Self::of(null_mut(), null_mut(), null_mut()) };
        // SAFETY: structs with their sizes, and places for results, all alive during the call.
        unsafe {
            ok(avsg_pool_create(&pool_config(), &mut life.pool));
            for (layer, at) in (0..2).flat_map(|l| (0..ROWS).map(move |at| (l, at))) {
                let bytes = row(layer, at);
                ok(avsg_pool_write_row(life.pool, layer, at, bytes.as_ptr().cast(), ROW));
            }
            ok(avsg_engine_create(config, life.pool, &mut life.engine));
            ok(avsg_plan_create(life.engine, 4, 2, &mut life.plan));
        }
        life
    }

    pub fn step(&self, owned: &Arrays, layer: usize) -> avsg_status {
        let fresh = owned.fresh();
        // SAFETY: `owned` keeps all arrays of the batch and the fresh rows.
        unsafe {
            avsg_engine_step(self.engine, &owned.batch(), self.plan, layer, &fresh, null_mut())
        }
    }

    /// Every selected id has a slot with its row in it. Returns how many were looked at.
    pub fn expect_exact(&self, owned: &Arrays, layer: usize) -> usize {
        let (mut out, mut checked) = (sized::<avsg_plan_arrays>(), 0);
        let mut buffers = [sized::<avsg_buffer>(); 2];
        // SAFETY: structs with their sizes.
        unsafe {
            ok(avsg_plan_get_arrays(self.plan, &mut out));
            for (segment, buffer) in buffers.iter_mut().enumerate() {
                ok(avsg_engine_buffer(self.engine, layer, segment, buffer));
            }
        }
        for (at, &id) in owned.ids.iter().enumerate() {
            // SAFETY: the plan's arrays hold the batch's rows.
            let slot = unsafe { *out.slot.add(at) };
            let request = at / K / 2;
            if id < 0 || owned.state[request] < 0 {
                assert_eq!(slot, -1);
                continue;
            }
            let want = row(layer, id as usize);
            let mut rest = &want[..];
            for buffer in &buffers {
                let place = owned.state[request] as usize * buffer.state_stride
                    + usize::try_from(slot)
                        .unwrap_or_else(|_| panic!("id {id} at {at}: {owned:?}"))
                        * buffer.slot_stride;
                let from = buffer.base.wrapping_byte_add(place);
                // SAFETY: a slot of a state of the engine's buffer; no call runs.
                let got = unsafe { self.bytes(from, buffer.bytes) };
                let (part, after) = rest.split_at(buffer.bytes);
                assert_eq!(got, part, "id {id} in slot {slot}");
                rest = after;
            }
            checked += 1;
        }
        checked
    }

    /// Bytes of the device's memory.
    ///
    /// # Safety
    /// There are so many at this address, and no call is under way.
    pub unsafe fn bytes(&self, from: *const c_void, n: usize) -> Vec<u8> {
        let mut bytes = vec![0u8; n];
        match &self.context {
            // SAFETY: the contract.
            None => unsafe { bytes.as_mut_ptr().copy_from(from.cast(), n) },
            Some(context) => {
                let _current = context.bind().unwrap();
                let to = bytes.as_mut_ptr().cast();
                // SAFETY: the contract.
                unsafe { copy(context.acl(), to, from, n, Way::ToHost) }.unwrap();
            }
        }
        bytes
    }

    pub fn end(self) {
        ok(avsg_plan_destroy(self.plan));
        ok(avsg_engine_destroy(self.engine));
        ok(avsg_pool_destroy(self.pool));
    }
}

/// The arrays of a batch of two requests with two rows each, the second with fresh rows.
#[derive(Clone, Debug)]
pub struct Arrays {
    pub ids: Vec<i32>,
    pub cu_q: Vec<i32>,
    pub state: Vec<i32>,
    pub generation: Vec<i32>,
    pub stable: Vec<i32>,
    pub seq: Vec<i32>,
    pub blocks: Vec<i32>,
    pub fresh: [Vec<u8>; 2],
}

impl Arrays {
    pub fn new(step: i32) -> Self {
        let ids = (0..32).map(|i| (step * 3 + i / 8 * 5 + i * 7) % 100).collect();
        let mut fresh = [vec![0; 4 * 24], vec![0; 4 * 16]];
        for g in 0..4 {
            let bytes = row(0, 100 + g % 2);
            fresh[0][g * 24..][..24].copy_from_slice(&bytes[..24]);
            fresh[1][g * 16..][..16].copy_from_slice(&bytes[24..]);
        }
        Self {
            ids,
            cu_q: vec![0, 2, 4],
            state: vec![1, 0],
            generation: vec![1, 1],
            stable: vec![-1, 100],
            seq: vec![128, 102],
            blocks: (0..16).map(|b| b % 8).collect(),
            fresh,
        }
    }

    pub fn batch(&self) -> avsg_batch {
        let array = |v: &Vec<i32>| avsg_i32s { data: v.as_ptr(), len: v.len() };
        avsg_batch {
            size: size_of::<avsg_batch>(),
            ids: array(&self.ids),
            ids_stride: K,
            k: K,
            cu_q: array(&self.cu_q),
            state: array(&self.state),
            generation: array(&self.generation),
            stable_len: array(&self.stable),
            seq_len: array(&self.seq),
            block_table: array(&self.blocks),
            block_stride: 8,
        }
    }

    pub fn fresh(&self) -> avsg_fresh {
        let data = |i: usize| self.fresh[i].as_ptr().cast::<c_void>();
        avsg_fresh {
            size: size_of::<avsg_fresh>(),
            segments: 2,
            data: [data(0), data(1), null(), null()],
            bytes: [self.fresh[0].len(), self.fresh[1].len(), 0, 0],
        }
    }
}
