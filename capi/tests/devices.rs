//! Devices through C: the same life on each gives the same slots, misses and bytes, with host arrays
//! and in a stream; and what is said where a device is not there.

#[path = "c_side/c.rs"]
mod c;
#[path = "c_side/streams.rs"]
mod streams;
#[path = "c_side/there.rs"]
mod there;
#[path = "c_side/workload.rs"]
mod workload;

use std::ffi::CStr;
use std::ptr::{null, null_mut};

use avsg::ascend::acl::owned::Stream;
use avsg_capi::avsg_status::*;
use avsg_capi::*;
use avsg_sim::{Options, Session};
use avsg_testkit::found::Found;
use avsg_testkit::workload::PLAIN;
use c::*;
use there::{There, life};
use workload::{RandomLife, buffer, by_host, found, found_on_host, room, tables, whole_step};

const STEPS: i32 = 24;

/// What a life comes to: for each step what it found and all slots, and the tables at its end.
type Lived = (Vec<(Found, Vec<u8>)>, [Vec<i32>; 2]);

/// Lives a life with host arrays; every other step is a plan and transfers.
fn live(device: &'static CStr) -> Lived {
    let life = life(device);
    let mut random = RandomLife::new(5, &[&life]);
    let mut log = Vec::new();
    for step in 0..STEPS {
        let turn = random.next(None, &[&life]);
        by_host(&life, &turn, step % 2 == 0);
        let found = found_on_host(&life, &turn.batch.cu_q);
        random.check(&turn, &found, &life);
        log.push((found, buffer(&life)));
    }
    let tables = tables(&life);
    life.end();
    (log, tables)
}

/// "ascend" is the device's own code over a library by path, which is the simulator's.
#[test]
fn a_life_is_the_same_on_every_device() {
    if !compiler() {
        return;
    }
    let session = Session::new(Options { seed: 9, ..Options::default() });
    let (cpu, cpu_tables) = live(c"cpu");
    let mut words = Vec::new();
    cpu.iter().for_each(|(found, _)| found.note(&mut words));
    assert!(words.len() > 1000);
    for device in [c"ascend-sim", c"ascend"] {
        let (log, tables) = live(device);
        for (step, (cpu, there)) in cpu.iter().zip(&log).enumerate() {
            assert_eq!(cpu.0, there.0, "step {step} on {device:?}");
            assert!(cpu.1 == there.1, "step {step} on {device:?}: other bytes");
        }
        assert!(cpu_tables == tables, "other tables on {device:?}");
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
    let mut random = RandomLife::new(8, &[&cpu, &device]);
    let (like, rows) = room();
    let there = There::room(&context, &like, &rows);
    for step in 0..STEPS {
        let turn = random.next(Some(PLAIN), &[&cpu, &device]);
        by_host(&cpu, &turn, true);
        there.write(&turn.batch, &turn.fresh);
        let batch = [&there.batch; 2];
        // SAFETY: everything stays until the stream was waited for.
        unsafe { whole_step(&device, batch, &there.fresh, raw, step % 2 == 0) };
        stream.synchronize(10_000).unwrap();
        let found = [&cpu, &device].map(|life| found(life, &turn.batch.cu_q));
        assert_eq!(found[0], found[1], "step {step}");
        random.check(&turn, &found[0], &cpu);
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
        fails(status, AVSG_INVALID, &["not planned in a stream"]);
        ok(avsg_engine_transfer(device.engine, device.plan, 0, &fresh, null_mut()));
    }
    device.end();
    cpu.end();
    drop((there, stream, context));
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
