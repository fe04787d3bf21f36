//! A captured step through C, in a stream that the caller made and captures itself: one graph is
//! replayed over a life, and finds and copies what the CPU does.

#[path = "c_side/c.rs"]
mod c;

use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut, without_provenance};
use std::sync::Arc;

use avsg::ascend::acl::api::memory::{Way, copy};
use avsg::ascend::acl::owned::{Context, DeviceMemory};
use avsg::ascend::simulated;
use avsg_capi::avsg_status::*;
use avsg_capi::*;
use avsg_sim::{Options, Session, entries, sys};
use avsg_testkit::splitmix::SplitMix64;
use c::*;

const STEPS: i32 = 30;

fn life(device: &'static CStr, launches: u32) -> Life {
    let context = (device != c"cpu").then(|| simulated::context().unwrap());
    let config = avsg_engine_config { cores: 6, slots: 128, launches, ..config_on(device) };
    Life::with(&config, context)
}

/// A random step: permuted states, new generations, padded requests, any number of tokens, bad ids,
/// rows of the step itself.
fn arrays(random: &mut SplitMix64, step: i32) -> Arrays {
    let mut below = |n: usize| random.below(n) as i32;
    let mut arrays = Arrays::new(step);
    arrays.ids.iter_mut().for_each(|id| *id = below(108) - 4);
    let (first, second) = (below(3), below(3));
    arrays.cu_q = vec![0, first, first + second];
    arrays.seq[1] = 100 + second;
    arrays.state = if below(2) == 0 { vec![0, 1] } else { vec![1, 0] };
    if below(5) == 0 {
        arrays.state[below(2) as usize] = -1;
    }
    arrays.generation = vec![1 + step / 7, 1 + step / 5];
    arrays.fresh.iter_mut().flatten().for_each(|byte| *byte = byte.wrapping_add(step as u8));
    arrays
}

/// A batch in device memory, at the same addresses in every step.
struct OnDevice {
    arrays: [DeviceMemory; 7],
    fresh: [DeviceMemory; 2],
}

impl OnDevice {
    fn new(context: &Arc<Context>, like: &Arrays) -> Self {
        let memory = |bytes: usize| DeviceMemory::zeroed(context, bytes).unwrap();
        Self {
            arrays: Self::parts(like).map(|array| memory(4 * array.len())),
            fresh: like.fresh.each_ref().map(|bytes| memory(bytes.len())),
        }
    }

    fn parts(a: &Arrays) -> [&Vec<i32>; 7] {
        [&a.ids, &a.cu_q, &a.state, &a.generation, &a.stable, &a.seq, &a.blocks]
    }

    fn write(&self, step: &Arrays) {
        for (memory, array) in self.arrays.iter().zip(Self::parts(step)) {
            let bytes: Vec<u8> = array.iter().flat_map(|word| word.to_ne_bytes()).collect();
            memory.write(0, &bytes).unwrap();
        }
        for (memory, bytes) in self.fresh.iter().zip(&step.fresh) {
            memory.write(0, bytes).unwrap();
        }
    }

    /// The structs that a C program fills: addresses and lengths, which a graph keeps.
    fn batch(&self, like: &Arrays) -> (avsg_batch, avsg_fresh) {
        let (mut batch, mut fresh) = (like.batch(), like.fresh());
        let places = [
            &mut batch.ids,
            &mut batch.cu_q,
            &mut batch.state,
            &mut batch.generation,
            &mut batch.stable_len,
            &mut batch.seq_len,
            &mut batch.block_table,
        ];
        for (place, memory) in places.into_iter().zip(&self.arrays) {
            place.data = without_provenance(memory.address() as usize);
        }
        for (place, memory) in fresh.data.iter_mut().zip(&self.fresh) {
            *place = without_provenance(memory.address() as usize);
        }
        (batch, fresh)
    }
}

/// Bytes at an address of a device, or of this process.
fn bytes(at: *const c_void, n: usize, context: Option<&Context>) -> Vec<u8> {
    let mut bytes = vec![0u8; n];
    match context {
        // SAFETY: so many bytes of an engine or a plan that is alive; no call runs.
        None => unsafe { bytes.as_mut_ptr().copy_from(at.cast(), n) },
        Some(context) => {
            let _current = context.bind().unwrap();
            // SAFETY: as above, in device memory.
            unsafe { copy(context.acl(), bytes.as_mut_ptr().cast(), at, n, Way::ToHost) }.unwrap();
        }
    }
    bytes
}

fn words(at: *const i32, n: usize, context: Option<&Context>) -> Vec<i32> {
    let bytes = bytes(at.cast(), 4 * n, context);
    bytes.as_chunks::<4>().0.iter().map(|word| i32::from_ne_bytes(*word)).collect()
}

/// Slots, valid counts, miss lists and records of a step, and the whole device buffer.
fn found(life: &Life, step: &Arrays) -> (Vec<i32>, Vec<u8>) {
    let context = life.context.as_deref();
    let (mut plan, mut buffer) = (sized::<avsg_plan_arrays>(), Vec::new());
    // SAFETY: a struct with its size.
    unsafe { ok(avsg_plan_get_device_arrays(life.plan, &mut plan)) };
    let rows = step.cu_q[2] as usize;
    let mut all = words(plan.slot, rows * K, context);
    all.extend(words(plan.valid, rows, context));
    for request in 0..2 {
        // Misses of each token, of all of them, and the status bits.
        let record = words(plan.record.wrapping_add(16 * request), 10, context);
        let (first, end) = (step.cu_q[request] as usize, step.cu_q[request + 1] as usize);
        all.extend(&record[..end - first]);
        all.extend(&record[8..]);
        for list in [plan.miss_position, plan.miss_id, plan.miss_slot, plan.miss_row] {
            all.extend(words(list.wrapping_add(first * K), record[8] as usize, context));
        }
    }
    for (layer, segment) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let mut at: avsg_buffer = sized();
        // SAFETY: a struct with its size.
        unsafe { ok(avsg_engine_buffer(life.engine, layer, segment, &mut at)) };
        buffer.extend(bytes(at.base, 2 * at.state_stride, context));
    }
    (all, buffer)
}

/// A whole step: plan, two layers, and the rows of both to the pool.
///
/// # Safety
/// As for the calls.
unsafe fn step(life: &Life, batch: &avsg_batch, fresh: &avsg_fresh, stream: *mut c_void) {
    // SAFETY: the contract.
    unsafe {
        ok(avsg_engine_step(life.engine, batch, life.plan, 0, fresh, stream));
        ok(avsg_engine_transfer(life.engine, life.plan, 1, fresh, stream));
        ok(avsg_engine_append(life.engine, batch, 0, fresh, stream));
        ok(avsg_engine_append(life.engine, batch, 1, fresh, stream));
    }
}

/// A call of the runtime that a C program makes itself.
macro_rules! acl {
    ($name:ident($($arg:expr),*)) => {
        // SAFETY: handles that are alive, and places for results.
        assert_eq!(unsafe { entries::$name($($arg),*) }, sys::ACL_SUCCESS, stringify!($name))
    };
}

#[test]
fn a_graph_that_the_caller_captured_is_replayed_over_a_life() {
    if !compiler() {
        return;
    }
    for launches in [1, 2] {
        let session = Session::new(Options { seed: 3, ..Options::default() });
        let (cpu, device) = (life(c"cpu", 0), life(c"ascend-sim", launches));
        let context = device.context.clone().unwrap();
        let current = context.bind().unwrap();
        let (mut stream, mut graph, mut random) = (null_mut(), null_mut(), SplitMix64::new(21));
        let like = Arrays::new(0);
        let there = OnDevice::new(&context, &like);
        let (batch, fresh) = there.batch(&like);
        acl!(aclrtCreateStream(&mut stream));

        let launched = session.launches();
        acl!(aclmdlRICaptureBegin(stream, sys::ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
        // SAFETY: everything lives until the stream was waited for.
        unsafe { step(&device, &batch, &fresh, stream) };
        acl!(aclmdlRICaptureEnd(stream, &mut graph));
        assert_eq!(session.launches(), launched, "captured work does not run");
        for at in 0..STEPS {
            let owned = arrays(&mut random, at);
            there.write(&owned);
            acl!(aclmdlRIExecuteAsync(graph, stream));
            acl!(aclrtSynchronizeStream(stream));
            // SAFETY: `owned` keeps all arrays.
            unsafe { step(&cpu, &owned.batch(), &owned.fresh(), null_mut()) };
            let (here, there) = (found(&cpu, &owned), found(&device, &owned));
            assert_eq!(here.0, there.0, "{launches} launches, step {at}");
            assert!(here.1 == there.1, "{launches} launches, step {at}: other bytes");
        }
        let tables = |life: &Life| {
            [0, 1].map(|state| {
                let (mut at, mut n) = (null(), 0);
                // SAFETY: places for results; the table stays until the next call.
                unsafe { ok(avsg_engine_table(life.engine, state, &mut at, &mut n)) };
                words(at, n, None)
            })
        };
        // A step, the other layer's transfer, and two appends.
        let each = launches as usize + 3;
        assert_eq!(session.launches() - launched, STEPS as usize * each);
        assert!(tables(&cpu) == tables(&device), "{launches} launches: other tables");
        acl!(aclmdlRIDestroy(graph));
        acl!(aclrtDestroyStream(stream));
        drop((there, current));
        drop(context);
        device.end();
        cpu.end();
        assert_eq!(session.leaks(), Vec::<String>::new());
    }
}

/// A call that waits, while its thread captures a stream: it is refused, and the engine is not lost.
#[test]
fn a_call_that_waits_in_a_capture_harms_nothing_but_itself() {
    if !compiler() {
        return;
    }
    let session = Session::new(Options { seed: 4, ..Options::default() });
    let life = life(c"ascend-sim", 0);
    let context = life.context.clone().unwrap();
    let current = context.bind().unwrap();
    let (mut stream, mut graph) = (null_mut(), null_mut());
    let owned = Arrays::new(1);
    let there = OnDevice::new(&context, &owned);
    let (batch, fresh) = there.batch(&owned);
    there.write(&owned);
    acl!(aclrtCreateStream(&mut stream));
    acl!(aclmdlRICaptureBegin(stream, sys::ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
    let parts = ["code 107030", "not permitted while a stream is captured"];
    fails(life.step(&owned, 0), AVSG_DEVICE, &parts);
    // Tables are in doubt now, and a capture cannot mend them.
    // SAFETY: everything lives until the stream is waited for, here and below.
    let status = unsafe { avsg_engine_plan(life.engine, &batch, life.plan, stream) };
    fails(status, AVSG_INVALID, &["shaken", "plan once outside of a capture"]);
    acl!(aclmdlRICaptureEnd(stream, &mut graph));
    acl!(aclmdlRIDestroy(graph));
    ok(life.step(&owned, 0));
    assert!(life.expect_exact(&owned, 0) >= 30);

    acl!(aclmdlRICaptureBegin(stream, sys::ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
    // SAFETY: as above.
    unsafe { step(&life, &batch, &fresh, stream) };
    acl!(aclmdlRICaptureEnd(stream, &mut graph));
    acl!(aclmdlRIExecuteAsync(graph, stream));
    acl!(aclrtSynchronizeStream(stream));
    acl!(aclmdlRIDestroy(graph));
    acl!(aclrtDestroyStream(stream));
    drop((there, current));
    drop(context);
    life.end();
    assert_eq!(session.leaks(), Vec::<String>::new());
}
