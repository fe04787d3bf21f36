//! Steps through C in a stream that the caller creates and captures: a graph of one step, replayed
//! over a workload, gives the slots, misses and bytes of "cpu".

use std::ffi::CStr;
use std::ptr::null_mut;

use avsg_capi::avsg_status::*;
use avsg_capi::*;
use avsg_capi_testkit::device_arrays::{DeviceStep, handles_with};
use avsg_capi_testkit::workload::{
    Workload, device_buffer, device_outputs, empty_step, host_outputs, run_host_step, run_step,
    tables,
};
use avsg_capi_testkit::*;
use avsg_sim::{Options, Session, entries, sys};
use avsg_testkit::workload::FIXED_SIZE_FORM;

const STEPS: i32 = 30;

fn create(device: &'static CStr, launches: u32) -> Handles {
    let tuning = avsg_tuning { launches, ..tuning() };
    handles_with(device, |config| (config.cores, config.tuning) = (6, &tuning))
}

/// Calls a function of the runtime, as the C program does itself, and asserts that it succeeds.
macro_rules! acl {
    ($name:ident($($arg:expr),*)) => {
        // SAFETY: the runtime's handles are valid, and the out-pointers are local variables.
        assert_eq!(unsafe { entries::$name($($arg),*) }, sys::ACL_SUCCESS, stringify!($name))
    };
}

#[test]
fn a_captured_step_replayed_over_a_workload_equals_the_cpu() {
    if !have_compiler() {
        return;
    }
    for launches in [1, 2] {
        let session = Session::new(Options { seed: 3, ..Options::default() });
        let (cpu, device) = (create(c"cpu", 0), create(c"ascend-sim", launches));
        let context = device.context.clone().unwrap();
        let current = context.bind().unwrap();
        let (mut stream, mut graph) = (null_mut(), null_mut());
        let mut workload = Workload::new(21, &[&cpu, &device]);
        let (like, rows) = empty_step();
        let arrays = DeviceStep::allocate(&context, &like, &rows);
        acl!(aclrtCreateStream(&mut stream));

        let launched = session.launches();
        acl!(aclmdlRICaptureBegin(stream, sys::ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
        // SAFETY: `arrays` and `device` are valid until the stream has been synchronized.
        unsafe { run_step(&device, [&arrays.batch; 2], &arrays.fresh, stream, true) };
        acl!(aclmdlRICaptureEnd(stream, &mut graph));
        assert_eq!(session.launches(), launched, "captured work does not run");
        for step in 0..STEPS {
            let turn = workload.next(Some(FIXED_SIZE_FORM), &[&cpu, &device]);
            arrays.write(&turn.batch, &turn.fresh);
            acl!(aclmdlRIExecuteAsync(graph, stream));
            acl!(aclrtSynchronizeStream(stream));
            run_host_step(&cpu, &turn, true);
            let cu_q = &turn.batch.cu_q;
            let outputs = host_outputs(&cpu, cu_q);
            assert_eq!(outputs, device_outputs(&device, cu_q), "{launches} launches, step {step}");
            workload.check(&turn, &outputs, &cpu);
            let equal = device_buffer(&cpu) == device_buffer(&device);
            assert!(equal, "{launches} launches, step {step}: the device buffers differ");
        }
        // Besides the step's kernels, the other layer's transfer and two appends are one launch
        // each.
        let launches_of_a_step = launches as usize + 3;
        assert_eq!(session.launches() - launched, STEPS as usize * launches_of_a_step);
        assert!(tables(&cpu) == tables(&device), "{launches} launches: the tables differ");
        acl!(aclmdlRIDestroy(graph));
        acl!(aclrtDestroyStream(stream));
        drop((arrays, current));
        drop(context);
        device.destroy();
        cpu.destroy();
        assert_eq!(session.leaks(), Vec::<String>::new());
    }
}

#[test]
fn a_waiting_call_during_a_capture_is_refused_and_the_engine_recovers() {
    if !have_compiler() {
        return;
    }
    let session = Session::new(Options { seed: 4, ..Options::default() });
    let handles = create(c"ascend-sim", 0);
    let context = handles.context.clone().unwrap();
    let current = context.bind().unwrap();
    let (mut stream, mut graph) = (null_mut(), null_mut());
    let owned = Arrays::new(1);
    let arrays = DeviceStep::new(&context, &owned);
    acl!(aclrtCreateStream(&mut stream));
    acl!(aclmdlRICaptureBegin(stream, sys::ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
    let parts = ["code 107030", "not permitted while a stream is captured"];
    expect_error(handles.step(&owned, 0), AVSG_DEVICE, &parts);
    // The failure left the tables uncertain, and only a plan outside of a capture can reset them.
    // SAFETY: `arrays` and `handles` are valid until the stream has been synchronized.
    let status = unsafe { avsg_engine_plan(handles.engine, &arrays.batch, handles.plan, stream) };
    expect_error(status, AVSG_INVALID, &["not reset", "plan once outside of a capture"]);
    acl!(aclmdlRICaptureEnd(stream, &mut graph));
    acl!(aclmdlRIDestroy(graph));
    ok(handles.step(&owned, 0));
    assert!(handles.expect_exact(&owned, 0) >= 30);

    acl!(aclmdlRICaptureBegin(stream, sys::ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
    // SAFETY: `arrays` and `handles` are valid until the stream has been synchronized.
    unsafe { run_step(&handles, [&arrays.batch; 2], &arrays.fresh, stream, true) };
    acl!(aclmdlRICaptureEnd(stream, &mut graph));
    acl!(aclmdlRIExecuteAsync(graph, stream));
    acl!(aclrtSynchronizeStream(stream));
    acl!(aclmdlRIDestroy(graph));
    acl!(aclrtDestroyStream(stream));
    drop((arrays, current));
    drop(context);
    handles.destroy();
    assert_eq!(session.leaks(), Vec::<String>::new());
}
