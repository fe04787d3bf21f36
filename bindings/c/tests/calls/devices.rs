//! Devices through C: steps with host arrays and in a stream give the same slots, misses and bytes on
//! every device.

use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut};

use avsg::ascend::acl::{Context, Stream};
use avsg::ascend::simulated;
use avsg::device::params::Params;
use avsg::engine::DevicePlan;
use avsg_capi::avsg_status::*;
use avsg_capi::*;
use avsg_capi_testkit::device::{c_path, simulator_library};
use avsg_capi_testkit::device_arrays::DeviceStep;
use avsg_capi_testkit::*;
use avsg_sim::{Options, Session};
use avsg_testkit::step_result::StepResult;

/// Creates handles on "cpu", "ascend-sim", or "ascend", whose engines have one geometry. "ascend" runs the
/// code of a real device over a runtime library found by path, which is the simulator's.
fn handles_on(device: &'static CStr, launches: u32) -> Handles {
    let tuning = avsg_tuning { launches, spread: 2, ..sized() };
    let params = Params { page: 16, ..Params::compact(K as u32, 2, 128) };
    let kernels = c_path(&simulated::emit(&params).unwrap());
    let runtime = c_path(&simulator_library());
    let ascend = avsg_ascend { runtime: runtime.as_ptr(), kernels: kernels.as_ptr(), ..sized() };
    let mut config = avsg_engine_config { tuning: &tuning, cores: 3, ..config_on(device) };
    config.slots = 128;
    if device == c"ascend" {
        config.ascend = &ascend;
    }
    Handles::create(&pool_config(), &config)
}

/// Returns the arrays of a step. It selects fresh rows, a row that the step before has appended, and
/// padding; its first request is padded or new at times.
fn arrays(step: i32) -> Arrays {
    let mut owned = Arrays::new(step);
    let stable = 100 + 2 * step;
    owned.decode_at(stable);
    owned.ids[16..20].copy_from_slice(&[stable, stable + 1, stable - 1, -1]);
    owned.generation[0] = 1 + step / 5;
    if step % 4 == 3 {
        owned.state[0] = -1;
    }
    owned
}

/// Plans a batch, transfers both layers, and appends the rows of both layers. `fused` makes one call of
/// the plan and the first layer's transfer.
///
/// # Safety
/// The arrays of the batch and of `fresh`, and the stream, are valid until the work of the calls is done.
unsafe fn run_step(
    handles: &Handles,
    batch: &avsg_batch,
    fresh: &avsg_fresh,
    stream: *mut c_void,
    fused: bool,
) {
    let (engine, plan) = (handles.engine, handles.plan);
    // SAFETY: the arrays and the stream are valid until the work is done (`# Safety`).
    unsafe {
        if fused {
            ok(avsg_engine_step(engine, batch, plan, 0, fresh, stream));
        } else {
            ok(avsg_engine_plan(engine, batch, plan, stream));
            ok(avsg_engine_transfer(engine, plan, &0, 1, fresh, stream));
        }
        ok(avsg_engine_transfer(engine, plan, &1, 1, fresh, stream));
        (0..2).for_each(|layer| ok(avsg_engine_append(engine, batch, &layer, 1, fresh, stream)));
    }
}

/// Returns the outputs of a plan from its arrays in this memory, which is the host's for "cpu".
fn outputs(handles: &Handles, memory: i32, cu_q: &[i32]) -> StepResult {
    // SAFETY: the struct has its `size` set.
    let arrays = filled(|to| unsafe { avsg_plan_get_arrays(handles.plan, memory, to) });
    let address = |array: *const i32| array.addr() as u64;
    let miss = [arrays.miss_position, arrays.miss_id, arrays.miss_slot, arrays.miss_row];
    let miss = miss.map(address);
    let (slot, valid) = (address(arrays.slot), address(arrays.valid));
    let device = DevicePlan { slot, valid, miss, summary: address(arrays.summary) };
    let context: Option<&Context> = handles.context.as_deref().filter(|_| memory == DEVICE);
    let avsg_plan_arrays { row_misses, cu_q: rows, failed_new, failed_layer, failed_row, .. } =
        arrays;
    let only_host = [row_misses, rows, failed_new, failed_layer.cast(), failed_row.cast()];
    assert_eq!(only_host.map(|array| array.is_null()), [context.is_some(); 5]);
    // SAFETY: the arrays are those of a plan that holds the batch, and no call is in progress.
    unsafe { StepResult::from_arrays(context, &device, arrays.k, cu_q) }
}

/// Returns the bytes of the device buffer.
fn device_buffer(handles: &Handles) -> Vec<u8> {
    let part = |[layer, segment]: [usize; 2]| {
        // SAFETY: the struct has its `size` set, the buffer has two states, and no call is in progress.
        unsafe {
            let buffer = filled(|to| avsg_engine_get_buffer(handles.engine, layer, segment, to));
            handles.bytes(buffer.base, 2 * buffer.state_stride)
        }
    };
    [[0, 0], [0, 1], [1, 0], [1, 1]].map(part).concat()
}

/// Makes a step with host arrays, or in a stream if `queued`. Returns the outputs and the device buffer.
fn run(handles: &Handles, step: i32, queued: bool) -> (StepResult, Vec<u8>) {
    let (owned, fused) = (arrays(step), step % 2 == 0);
    if let Some(context) = handles.context.as_ref().filter(|_| queued) {
        let (stream, arrays) = (Stream::new(context).unwrap(), DeviceStep::new(context, &owned));
        // SAFETY: `arrays` and `handles` are valid until the stream has been synchronized.
        unsafe { run_step(handles, &arrays.batch, &arrays.fresh, stream.raw().handle(), fused) };
        stream.synchronize(10_000).unwrap();
    } else {
        // SAFETY: `owned` owns the arrays.
        unsafe { run_step(handles, &owned.batch(), &owned.fresh(), null_mut(), fused) };
        handles.expect_exact(&owned, 0);
        let [host, device] = [HOST, DEVICE].map(|memory| outputs(handles, memory, &owned.cu_q));
        assert_eq!(host, device, "step {step}");
    }
    (outputs(handles, DEVICE, &owned.cu_q), device_buffer(handles))
}

#[test]
fn steps_have_the_same_results_on_every_device_and_in_a_stream() {
    if !have_compiler() {
        return;
    }
    let session = Session::new(Options { seed: 9, ..Options::default() });
    let all = [c"cpu", c"ascend-sim", c"ascend"].map(|device| {
        let handles = handles_on(device, 0);
        // SAFETY: the struct has its `size` set, and the library ends its texts with NUL.
        unsafe {
            let info = filled(|to| avsg_engine_get_info(handles.engine, to));
            assert_eq!(CStr::from_ptr(info.device.as_ptr()), device);
        }
        (handles, device)
    });
    for step in 0..13 {
        let run = |(handles, device): &(Handles, _)| run(handles, step, *device == c"ascend");
        let [cpu, simulated, queued] = all.each_ref().map(run);
        for (name, other) in [("simulated", simulated), ("queued", queued)] {
            assert_eq!(cpu.0, other.0, "step {step}, {name}");
            assert!(cpu.1 == other.1, "step {step}, {name}: the device buffers differ");
        }
    }
    all.into_iter().for_each(|(handles, _)| handles.destroy());
    assert_eq!(session.leaks(), Vec::<String>::new());
}

/// A plan that was made in a stream is refused by calls that read it on the host or transfer it with a
/// NULL stream.
#[test]
fn a_plan_in_a_stream_is_not_one_of_the_host() {
    if !have_compiler() {
        return;
    }
    let session = Session::new(Options { seed: 2, ..Options::default() });
    let handles = Handles::on(c"ascend-sim");
    let Handles { engine, plan, .. } = handles;
    // SAFETY: the struct has its `size` set.
    let info = filled(|to| unsafe { avsg_engine_get_info(engine, to) });
    let (context, owned) = (handles.context.clone().unwrap(), Arrays::new(3));
    let (stream, on_device) = (Stream::new(&context).unwrap(), DeviceStep::new(&context, &owned));
    let (batch, fresh, raw) = (owned.batch(), owned.fresh(), stream.raw().handle());
    let (mut counters, parts) = (sized(), ["device memory", "AVSG_MEMORY_DEVICE"]);
    // SAFETY: the structs have their `size` set, and the arrays are valid until the stream has been
    // synchronized.
    unsafe {
        assert_eq!(CStr::from_ptr(info.machine.as_ptr()), c"none");
        // The default of a device whose fast memory has no room for four links per slot.
        assert_eq!((info.table, info.spread, info.retries), (0, 2, 7));
        run_step(&handles, &on_device.batch, &on_device.fresh, raw, true);
        stream.synchronize(10_000).unwrap();
        let stats = filled(|to| avsg_engine_get_stats(engine, to));
        assert_eq!((stats.queued, stats.plans), (4, 0));
        expect_error(avsg_plan_get_counters(plan, &mut counters), AVSG_UNSUPPORTED, &parts);
        let status = avsg_engine_transfer(engine, plan, &0, 1, null(), null_mut());
        expect_error(status, AVSG_UNSUPPORTED, &parts);
        ok(avsg_engine_plan(engine, &batch, plan, null_mut()));
        let status = avsg_engine_transfer(engine, plan, &0, 1, &on_device.fresh, raw);
        expect_error(status, AVSG_INVALID, &["not planned in a stream"]);
        ok(avsg_engine_transfer(engine, plan, &0, 1, &fresh, null_mut()));
    }
    drop((stream, on_device, context));
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
        let handles = handles_on(c"ascend-sim", launches);
        let context = handles.context.clone().unwrap();
        let (stream, owned) = (Stream::new(&context).unwrap(), Arrays::new(1));
        let arrays = DeviceStep::new(&context, &owned);
        let (batch, fresh, raw) = (&arrays.batch, &arrays.fresh, stream.raw().handle());
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
