//! Devices through C: the same life on each gives the same slots, misses and bytes, with host arrays
//! and in a stream; and what is said where a device is not there.

#[path = "c_side/c.rs"]
mod c;
#[path = "c_side/streams.rs"]
mod streams;
#[path = "c_side/there.rs"]
mod there;

use std::ffi::CStr;
use std::ptr::{null, null_mut};

use avsg::ascend::acl::api::memory::{Way, copy};
use avsg::ascend::acl::owned::{Context, Stream};
use avsg_capi::avsg_status::*;
use avsg_capi::*;
use avsg_sim::{Options, Session};
use avsg_testkit::splitmix::SplitMix64;
use c::*;
use there::{There, life};

/// What a step found, for comparison.
#[derive(Debug, Default, PartialEq)]
struct Found {
    words: Vec<i32>,
    bytes: Vec<u8>,
}

/// A random step: permuted states, new generations, padded requests, bad ids, fresh rows.
fn arrays(random: &mut SplitMix64, step: i32) -> Arrays {
    let mut below = |n: usize| random.below(n) as i32;
    let mut arrays = Arrays::new(step);
    arrays.ids.iter_mut().for_each(|id| *id = below(108) - 4);
    arrays.state = if below(2) == 0 { vec![0, 1] } else { vec![1, 0] };
    if below(5) == 0 {
        arrays.state[below(2) as usize] = -1;
    }
    arrays.generation = vec![1 + step / 7, 1 + step / 5];
    arrays
}

/// The device buffer, whosever memory it is.
fn buffer(life: &Life) -> Vec<u8> {
    let mut all = Vec::new();
    for (layer, segment) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let mut at: avsg_buffer = sized();
        // SAFETY: a struct with its size; the slots of both states, while no call runs.
        unsafe {
            ok(avsg_engine_buffer(life.engine, layer, segment, &mut at));
            all.extend(life.bytes(at.base, 2 * at.state_stride));
        }
    }
    all
}

/// Slots, valid counts and miss lists of a plan that was made with a NULL stream.
fn found(life: &Life) -> Vec<i32> {
    let (mut words, mut counters) = (Vec::new(), sized::<avsg_plan_counters>());
    // SAFETY: structs with their sizes; the plan's arrays have the lengths that it says.
    unsafe {
        ok(avsg_plan_get_counters(life.plan, &mut counters));
        for n in 0..counters.requests {
            let mut one: avsg_plan_request = sized();
            ok(avsg_plan_get_request(life.plan, n, &mut one));
            let array = |at: *const i32, len| std::slice::from_raw_parts(at, len).to_vec();
            words.extend([one.status, one.misses as i32]);
            words.extend(array(one.slot, one.rows * K));
            words.extend(array(one.valid, one.rows));
            for list in [one.miss_position, one.miss_id, one.miss_slot, one.miss_row] {
                words.extend(array(list, one.misses));
            }
        }
    }
    words.extend([counters.hits as i32, counters.misses as i32]);
    words
}

const STEPS: i32 = 24;

/// Lives a life with host arrays; every other step is a plan and transfers.
fn live(device: &'static CStr) -> Vec<Found> {
    let life = life(device);
    let mut random = SplitMix64::new(5);
    let mut log = Vec::new();
    for step in 0..STEPS {
        let owned = arrays(&mut random, step);
        let (batch, fresh) = (owned.batch(), owned.fresh());
        // SAFETY: `owned` keeps all arrays.
        unsafe {
            if step % 2 == 0 {
                ok(avsg_engine_step(life.engine, &batch, life.plan, 0, &fresh, null_mut()));
            } else {
                ok(avsg_engine_plan(life.engine, &batch, life.plan, null_mut()));
                ok(avsg_engine_transfer(life.engine, life.plan, 0, &fresh, null_mut()));
            }
            ok(avsg_engine_transfer(life.engine, life.plan, 1, &fresh, null_mut()));
            if step % 3 == 0 {
                ok(avsg_engine_append(life.engine, &batch, 0, &fresh, null_mut()));
            }
        }
        let bytes = buffer(&life);
        log.push(Found { words: found(&life), bytes });
    }
    for state in 0..2 {
        let (mut words, mut count) = (null(), 0);
        // SAFETY: places for results; the table stays until the next call.
        let table = unsafe {
            ok(avsg_engine_table(life.engine, state, &mut words, &mut count));
            std::slice::from_raw_parts(words, count).to_vec()
        };
        log.push(Found { words: table, bytes: Vec::new() });
    }
    life.end();
    log
}

/// "ascend" is the device's own code over a library by path, which is the simulator's.
#[test]
fn a_life_is_the_same_on_every_device() {
    if !compiler() {
        return;
    }
    let session = Session::new(Options { seed: 9, ..Options::default() });
    let cpu = live(c"cpu");
    assert!(cpu.iter().map(|f| f.words.len()).sum::<usize>() > 1000);
    for device in [c"ascend-sim", c"ascend"] {
        for (step, (cpu, found)) in cpu.iter().zip(live(device)).enumerate() {
            assert_eq!(cpu.words, found.words, "step {step} on {device:?}");
            assert!(cpu.bytes == found.bytes, "step {step} on {device:?}: other bytes");
        }
    }
    assert_eq!(session.leaks(), Vec::<String>::new());
}

/// Two engines share a pool's registration, whichever goes first.
#[test]
fn engines_share_a_registered_pool() {
    if !compiler() {
        return;
    }
    let session = Session::new(Options::default());
    let life = life(c"ascend-sim");
    let (mut config, mut second) = (engine_config(), null_mut());
    (config.device, config.slots) = (c"ascend-sim".as_ptr(), 128);
    // SAFETY: structs with their sizes.
    unsafe {
        let mut info: avsg_engine_info = sized();
        ok(avsg_engine_create(&config, life.pool, &mut second));
        ok(avsg_engine_get_info(second, &mut info));
        assert_eq!(CStr::from_ptr(info.device.as_ptr()), c"ascend-sim");
        assert_eq!(CStr::from_ptr(info.machine.as_ptr()), c"none");
    }
    fails(avsg_pool_demote(life.pool), AVSG_BUSY, &["in use by an engine"]);
    ok(avsg_plan_destroy(life.plan));
    ok(avsg_engine_destroy(life.engine));
    let life = Life { engine: second, plan: null_mut(), ..life };
    let mut plan = null_mut();
    let owned = Arrays::new(1);
    // SAFETY: `owned` keeps all arrays.
    unsafe {
        ok(avsg_plan_create(second, 4, 2, &mut plan));
        ok(avsg_engine_step(second, &owned.batch(), plan, 0, &owned.fresh(), null_mut()));
    }
    Life { plan, ..life }.end();
    assert_eq!(session.leaks(), Vec::<String>::new());
}

fn on_host<const N: usize>(context: &Context, from: *const i32) -> [i32; N] {
    let mut words = [0; N];
    let _current = context.bind().unwrap();
    let (to, bytes) = (words.as_mut_ptr().cast(), 4 * N);
    // SAFETY: an array of the plan in device memory that holds so many words.
    unsafe { copy(context.acl(), to, from.cast(), bytes, Way::ToHost) }.unwrap();
    words
}

#[test]
fn a_step_in_a_stream_is_the_cpus() {
    if compiler() {
        let session = Session::new(Options { seed: 2, ..Options::default() });
        [c"ascend-sim", c"ascend"].into_iter().for_each(in_a_stream);
        assert_eq!(session.leaks(), Vec::<String>::new());
    }
}

fn in_a_stream(device: &'static CStr) {
    let (cpu, device) = (life(c"cpu"), life(device));
    let context = device.context.clone().unwrap();
    let stream = Stream::new(&context).unwrap();
    let raw = stream.raw().handle();
    let mut random = SplitMix64::new(8);
    for step in 0..STEPS {
        let owned = arrays(&mut random, step);
        let (batch, fresh) = (owned.batch(), owned.fresh());
        // SAFETY: `owned` keeps all arrays.
        unsafe {
            ok(avsg_engine_step(cpu.engine, &batch, cpu.plan, 0, &fresh, null_mut()));
            ok(avsg_engine_transfer(cpu.engine, cpu.plan, 1, &fresh, null_mut()));
            ok(avsg_engine_append(cpu.engine, &batch, 0, &fresh, null_mut()));
        }
        let there = There::new(&context, &owned);
        let (batch, fresh) = (there.batch, there.fresh);
        // SAFETY: everything stays until the stream was waited for.
        unsafe {
            if step % 2 == 0 {
                ok(avsg_engine_step(device.engine, &batch, device.plan, 0, &fresh, raw));
            } else {
                ok(avsg_engine_plan(device.engine, &batch, device.plan, raw));
                ok(avsg_engine_transfer(device.engine, device.plan, 0, &fresh, raw));
            }
            ok(avsg_engine_transfer(device.engine, device.plan, 1, &fresh, raw));
            ok(avsg_engine_append(device.engine, &batch, 0, &fresh, raw));
        }
        stream.synchronize(10_000).unwrap();
        let mut found: avsg_plan_arrays = sized();
        let mut here: avsg_plan_arrays = sized();
        // SAFETY: structs with their sizes; 4 rows and 2 requests.
        unsafe {
            ok(avsg_plan_get_device_arrays(device.plan, &mut found));
            ok(avsg_plan_get_device_arrays(cpu.plan, &mut here));
            assert_eq!(
                &on_host::<{ 4 * K }>(&context, found.slot)[..],
                std::slice::from_raw_parts(here.slot, 4 * K)
            );
            assert_eq!(
                &on_host::<4>(&context, found.valid)[..],
                std::slice::from_raw_parts(here.valid, 4)
            );
            for request in 0..2 {
                let counts = std::slice::from_raw_parts(here.record.add(16 * request), 10);
                let same = on_host::<10>(&context, found.record.wrapping_add(16 * request));
                assert_eq!(&same[8..], &counts[8..], "step {step}");
                let (at, n) = (request * 2 * K, counts[8] as usize);
                for (there, here) in
                    [(found.miss_id, here.miss_id), (found.miss_row, here.miss_row)]
                {
                    let there = on_host::<{ 2 * K }>(&context, there.wrapping_add(at));
                    assert_eq!(&there[..n], std::slice::from_raw_parts(here.add(at), n));
                }
            }
        }
        assert!(buffer(&cpu) == buffer(&device), "step {step}: other bytes");
    }
    // What a stream planned is not the host's to read or transfer.
    let (mut counters, mut one) = (sized::<avsg_plan_counters>(), sized::<avsg_plan_request>());
    let says = ["device memory", "avsg_plan_get_device_arrays"];
    // SAFETY: structs with their sizes.
    unsafe {
        fails(avsg_plan_get_counters(device.plan, &mut counters), AVSG_UNSUPPORTED, &says);
        fails(avsg_plan_get_request(device.plan, 0, &mut one), AVSG_UNSUPPORTED, &says);
        let status = avsg_engine_transfer(device.engine, device.plan, 0, null(), null_mut());
        fails(status, AVSG_UNSUPPORTED, &says);
        let owned = Arrays::new(3);
        let (batch, fresh) = (owned.batch(), owned.fresh());
        ok(avsg_engine_plan(device.engine, &batch, device.plan, null_mut()));
        let status = avsg_engine_transfer(device.engine, device.plan, 0, &fresh, raw);
        fails(status, AVSG_INVALID, &["not a stream's"]);
        ok(avsg_engine_transfer(device.engine, device.plan, 0, &fresh, null_mut()));
    }
    device.end();
    cpu.end();
    drop((stream, context));
}

/// The device's name, and what only it asks for.
#[test]
fn the_device_by_path() {
    if !compiler() {
        return;
    }
    let life = life(c"ascend");
    let (mut info, mut engine) = (sized::<avsg_engine_info>(), null_mut());
    let mut config = config_on(c"ascend");
    let runtime = there::library().into_os_string().into_encoded_bytes();
    let runtime = std::ffi::CString::new(runtime).unwrap();
    config.runtime = runtime.as_ptr();
    // SAFETY: structs with their sizes, strings that live until the call returns.
    unsafe {
        ok(avsg_engine_get_info(life.engine, &mut info));
        assert_eq!(CStr::from_ptr(info.device.as_ptr()), c"ascend");
        let status = avsg_engine_create(&config, life.pool, &mut engine);
        fails(status, AVSG_INVALID, &["geometry is Wide table, K 8", "this library", "avsg emit"]);
        config.device_id = 9;
        config.kernels = c"/nowhere".as_ptr();
        let status = avsg_engine_create(&config, life.pool, &mut engine);
        fails(status, AVSG_INVALID, &["device is 9", "libavsg_ascendcl_sim.so has 1"]);
    }
    life.end();
}

#[test]
fn devices_that_are_not_there() {
    let session = Session::new(Options::default());
    let life = Life::new();
    let refuse = |spoil: &dyn Fn(&mut avsg_engine_config), want, parts: &[&str]| {
        let (mut config, mut engine) = (engine_config(), null_mut());
        spoil(&mut config);
        // SAFETY: a struct with its size; its strings are literals.
        fails(unsafe { avsg_engine_create(&config, life.pool, &mut engine) }, want, parts);
        assert!(engine.is_null(), "NULL after a failure");
    };
    refuse(&|c| c.device = c"npu".as_ptr(), AVSG_INVALID, &["\"npu\"", "no such", "avsg_devices"]);
    let nowhere = |c: &mut avsg_engine_config| {
        (c.device, c.runtime) = (c"ascend".as_ptr(), c"/nowhere/libascendcl.so".as_ptr());
    };
    refuse(&nowhere, AVSG_UNSUPPORTED, &["Ascend runtime", "tried /nowhere/libascendcl.so"]);
    // No Ascend machine runs this: there the next lines would find the real one.
    if avsg::ascend::acl::Acl::open(&avsg::ascend::acl::Source::System).is_err() {
        let parts = ["libacl_rt.so", "libascendcl.so", "set_env.sh"];
        refuse(&|c| c.device = c"ascend".as_ptr(), AVSG_UNSUPPORTED, &parts);
    }
    let sim = |c: &mut avsg_engine_config| (c.device, c.slots) = (c"ascend-sim".as_ptr(), 128);
    let far = |c: &mut avsg_engine_config| {
        sim(c);
        c.device_id = 77;
    };
    refuse(&far, AVSG_INVALID, &["device is 77"]);
    let empty = |c: &mut avsg_engine_config| {
        sim(c);
        c.kernels = c"/nowhere".as_ptr();
    };
    refuse(&empty, AVSG_UNSUPPORTED, &["a kernel", "/nowhere/avsg_plan.o"]);
    let strategy = |c: &mut avsg_engine_config| {
        sim(c);
        c.strategy = 1;
    };
    refuse(&strategy, AVSG_INVALID, &["strategy is request", "balanced"]);
    // SAFETY: static strings.
    let names = unsafe { CStr::from_ptr(avsg_devices()) }.to_str().unwrap();
    assert_eq!(names, "cpu ascend ascend-sim");
    life.end();
    assert_eq!(session.leaks(), Vec::<String>::new());
}
