//! Devices through C: the same workload gives the same slots, misses and bytes on every device,
//! with host arrays and in a stream. A missing device is refused with a message that lists what was
//! tried.

use std::ffi::CStr;
use std::ptr::{null, null_mut};

use avsg::ascend::acl::Stream;
use avsg_capi::avsg_status::*;
use avsg_capi::*;
use avsg_capi_testkit::device::{c_path, simulator_library};
use avsg_capi_testkit::device_arrays::{DeviceStep, handles_on, handles_with};
use avsg_capi_testkit::workload::{
    Workload, device_buffer, device_outputs, empty_step, host_outputs, run_host_step, run_step,
    tables,
};
use avsg_capi_testkit::*;
use avsg_sim::{Options, Session};
use avsg_testkit::step_result::StepResult;
use avsg_testkit::workload::FIXED_SIZE_FORM;

const STEPS: i32 = 24;

/// The outputs and the device buffer after each step of a workload, and the tables at its end.
type Log = (Vec<(StepResult, Vec<u8>)>, [Vec<i32>; 2]);

/// Runs a workload with host arrays. Odd steps call plan and transfer, even ones the fused step.
fn run_workload(device: &'static CStr) -> Log {
    let handles = handles_on(device);
    let mut workload = Workload::new(5, &[&handles]);
    let mut log = Vec::new();
    for step in 0..STEPS {
        let turn = workload.next(None, &[&handles]);
        run_host_step(&handles, &turn, step % 2 == 0);
        let outputs = host_outputs(&handles, &turn.batch.cu_q);
        workload.check(&turn, &outputs, &handles);
        log.push((outputs, device_buffer(&handles)));
    }
    let tables = tables(&handles);
    handles.destroy();
    (log, tables)
}

#[test]
fn a_workload_has_the_same_results_on_every_device() {
    if !have_compiler() {
        return;
    }
    let session = Session::new(Options { seed: 9, ..Options::default() });
    let (cpu, cpu_tables) = run_workload(c"cpu");
    let mut words = Vec::new();
    cpu.iter().for_each(|(outputs, _)| outputs.append_to(&mut words));
    assert!(words.len() > 1000);
    for device in [c"ascend-sim", c"ascend"] {
        let (log, tables) = run_workload(device);
        for (step, (cpu, other)) in cpu.iter().zip(&log).enumerate() {
            assert_eq!(cpu.0, other.0, "step {step} on {device:?}");
            assert!(cpu.1 == other.1, "step {step} on {device:?}: the device buffers differ");
        }
        assert!(cpu_tables == tables, "the tables differ on {device:?}");
    }
    assert_eq!(session.leaks(), Vec::<String>::new());
}

#[test]
fn a_pool_stays_registered_until_its_last_engine_is_destroyed() {
    if !have_compiler() {
        return;
    }
    let session = Session::new(Options::default());
    let mut handles = handles_on(c"ascend-sim");
    let (mut second, mut info) = (null_mut(), sized::<avsg_engine_info>());
    // SAFETY: the structs have their `size` set, and the out-pointers are local variables.
    unsafe {
        ok(avsg_engine_create(&config_on(c"ascend-sim"), handles.pool, &mut second));
        ok(avsg_engine_get_info(second, &mut info));
        assert_eq!(CStr::from_ptr(info.device.as_ptr()), c"ascend-sim");
        assert_eq!(CStr::from_ptr(info.machine.as_ptr()), c"none");
    }
    expect_error(avsg_pool_demote(handles.pool), AVSG_BUSY, &["in use by an engine"]);
    ok(avsg_plan_destroy(handles.plan));
    ok(avsg_engine_destroy(handles.engine));
    handles.engine = second;
    // SAFETY: the out-pointer is a field of `handles`.
    ok(unsafe { avsg_plan_create(second, 4, 2, &mut handles.plan) });
    ok(handles.step(&Arrays::new(1), 0));
    handles.destroy();
    assert_eq!(session.leaks(), Vec::<String>::new());
}

#[test]
fn a_step_launches_the_configured_number_of_kernels() {
    if !have_compiler() {
        return;
    }
    // The configured number, and the launches of a step with a NULL stream and in a stream.
    for (launches, waiting, queued) in [(0, 1, 2), (1, 1, 1), (2, 2, 2)] {
        let session = Session::new(Options::default());
        let tuning = avsg_tuning { launches, ..tuning() };
        let handles = handles_with(c"ascend-sim", |config| config.tuning = &tuning);
        let context = handles.context.clone().unwrap();
        let (stream, owned) = (Stream::new(&context).unwrap(), Arrays::new(1));
        let arrays = DeviceStep::new(&context, &owned);
        let (batch, fresh, raw) = (&arrays.batch, &arrays.fresh[0], stream.raw().handle());
        let before = session.launches();
        ok(handles.step(&owned, 0));
        assert_eq!(session.launches() - before, waiting, "launches {launches}");
        // SAFETY: `arrays` is valid until the stream has been synchronized.
        ok(unsafe { avsg_engine_step(handles.engine, batch, handles.plan, 0, fresh, raw) });
        stream.synchronize(10_000).unwrap();
        assert_eq!(session.launches() - before, waiting + queued, "launches {launches}");
        handles.destroy();
    }
}

#[test]
fn a_step_in_a_stream_equals_the_cpu() {
    if have_compiler() {
        let session = Session::new(Options { seed: 2, ..Options::default() });
        [c"ascend-sim", c"ascend"].into_iter().for_each(compare_a_stream_with_the_cpu);
        assert_eq!(session.leaks(), Vec::<String>::new());
    }
}

fn compare_a_stream_with_the_cpu(device: &'static CStr) {
    let (cpu, device) = (handles_on(c"cpu"), handles_on(device));
    let context = device.context.clone().unwrap();
    let stream = Stream::new(&context).unwrap();
    let raw = stream.raw().handle();
    let mut workload = Workload::new(8, &[&cpu, &device]);
    let (like, rows) = empty_step();
    let arrays = DeviceStep::allocate(&context, &like, &rows);
    for step in 0..STEPS {
        let turn = workload.next(Some(FIXED_SIZE_FORM), &[&cpu, &device]);
        run_host_step(&cpu, &turn, true);
        arrays.write(&turn.batch, &turn.fresh);
        let batch = [&arrays.batch; 2];
        // SAFETY: `arrays` and `device` are valid until the stream has been synchronized.
        unsafe { run_step(&device, batch, &arrays.fresh, raw, step % 2 == 0) };
        stream.synchronize(10_000).unwrap();
        let outputs = [&cpu, &device].map(|handles| device_outputs(handles, &turn.batch.cu_q));
        assert_eq!(outputs[0], outputs[1], "step {step}");
        workload.check(&turn, &outputs[0], &cpu);
        let equal = device_buffer(&cpu) == device_buffer(&device);
        assert!(equal, "step {step}: the device buffers differ");
    }
    // A plan made in a stream is refused by calls that read it on the host or transfer it with a
    // NULL stream.
    let (mut counters, mut one) = (sized::<avsg_plan_counters>(), sized::<avsg_plan_request>());
    let parts = ["device memory", "AVSG_MEMORY_DEVICE"];
    let mut stats: avsg_engine_stats = sized();
    // SAFETY: the structs have their `size` set, and `owned` owns the arrays.
    unsafe {
        ok(avsg_engine_get_stats(device.engine, &mut stats));
        // Two steps of `run_step` are nine calls.
        assert_eq!((stats.queued, stats.plans), (STEPS as u64 / 2 * 9, 0));
        expect_error(avsg_plan_get_counters(device.plan, &mut counters), AVSG_UNSUPPORTED, &parts);
        expect_error(avsg_plan_get_request(device.plan, 0, &mut one), AVSG_UNSUPPORTED, &parts);
        let status = avsg_engine_transfer(device.engine, device.plan, 0, null(), null_mut());
        expect_error(status, AVSG_UNSUPPORTED, &parts);
        let owned = Arrays::new(3);
        let (batch, fresh) = (owned.batch(), owned.fresh());
        ok(avsg_engine_plan(device.engine, &batch, device.plan, null_mut()));
        let status = avsg_engine_transfer(device.engine, device.plan, 0, &fresh, raw);
        expect_error(status, AVSG_INVALID, &["not planned in a stream"]);
        ok(avsg_engine_transfer(device.engine, device.plan, 0, &fresh, null_mut()));
    }
    device.destroy();
    cpu.destroy();
    drop((arrays, stream, context));
}

#[test]
fn a_device_by_path_needs_kernels_of_the_geometry_and_a_device_that_exists() {
    if !have_compiler() {
        return;
    }
    let handles = handles_on(c"ascend");
    let (mut info, mut engine) = (sized::<avsg_engine_info>(), null_mut());
    let (mut config, runtime) = (config_on(c"ascend"), c_path(&simulator_library()));
    let mut ascend = avsg_ascend { runtime: runtime.as_ptr(), ..sized() };
    config.ascend = &ascend;
    // SAFETY: the structs have their `size` set, and the strings are valid until the calls return.
    unsafe {
        ok(avsg_engine_get_info(handles.engine, &mut info));
        assert_eq!(CStr::from_ptr(info.device.as_ptr()), c"ascend");
        let status = avsg_engine_create(&config, handles.pool, &mut engine);
        expect_error(
            status,
            AVSG_INVALID,
            &["geometry is Wide table, K 8", "this library", "avsg emit"],
        );
        (ascend.device_id, ascend.kernels) = (9, c"/nowhere".as_ptr());
        config.ascend = &ascend;
        let status = avsg_engine_create(&config, handles.pool, &mut engine);
        expect_error(status, AVSG_INVALID, &["device is 9", "libavsg_ascendcl_sim.so has 1"]);
    }
    handles.destroy();
}

#[test]
fn a_missing_device_is_refused_with_what_was_tried() {
    let session = Session::new(Options::default());
    let handles = Handles::on_cpu();
    type Change<'a> = &'a dyn Fn(&mut avsg_engine_config, &mut avsg_ascend);
    let refuse = |change: Change<'_>, expected, parts: &[&str]| {
        let (mut config, mut ascend, mut engine) = (engine_config(), sized(), null_mut());
        change(&mut config, &mut ascend);
        config.ascend = &ascend;
        // SAFETY: the struct has its `size` set, and its strings are literals.
        let status = unsafe { avsg_engine_create(&config, handles.pool, &mut engine) };
        expect_error(status, expected, parts);
        assert!(engine.is_null(), "NULL after a failure");
    };
    refuse(
        &|c, _| c.device = c"npu".as_ptr(),
        AVSG_INVALID,
        &["\"npu\"", "no such", "avsg_devices"],
    );
    let nowhere = |c: &mut avsg_engine_config, a: &mut avsg_ascend| {
        (c.device, a.runtime) = (c"ascend".as_ptr(), c"/nowhere/libascendcl.so".as_ptr());
    };
    refuse(&nowhere, AVSG_UNSUPPORTED, &["Ascend runtime", "tried /nowhere/libascendcl.so"]);
    // On an Ascend machine this configuration would find the real runtime.
    if avsg::ascend::acl::Acl::open(&avsg::ascend::acl::Source::System).is_err() {
        let parts = ["libacl_rt.so", "libascendcl.so", "set_env.sh"];
        refuse(&|c, _| c.device = c"ascend".as_ptr(), AVSG_UNSUPPORTED, &parts);
    }
    let sim = |c: &mut avsg_engine_config| (c.device, c.slots) = (c"ascend-sim".as_ptr(), 128);
    let on_sim = |change: fn(&mut avsg_ascend), expected, parts: &[&str]| {
        let change = |c: &mut avsg_engine_config, a: &mut avsg_ascend| {
            sim(c);
            change(a);
        };
        refuse(&change, expected, parts);
    };
    on_sim(|a| a.device_id = 77, AVSG_INVALID, &["device is 77"]);
    let parts = ["a kernel", "/nowhere/avsg_plan.o"];
    on_sim(|a| a.kernels = c"/nowhere".as_ptr(), AVSG_UNSUPPORTED, &parts);
    on_sim(|a| a.size = 0, AVSG_SIZE, &["avsg_ascend.size is 0", "sizeof(avsg_ascend)"]);
    let request = avsg_tuning { strategy: 1, ..tuning() };
    let parts = ["strategy is request", "balanced"];
    let change = |c: &mut avsg_engine_config, _: &mut avsg_ascend| {
        sim(c);
        c.tuning = &request;
    };
    refuse(&change, AVSG_INVALID, &parts);
    handles.destroy();
    assert_eq!(session.leaks(), Vec::<String>::new());
}
