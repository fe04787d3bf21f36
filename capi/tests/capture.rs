//! A captured step through C, in a stream that the caller made and captures itself: one graph is
//! replayed over a life, and finds and copies what the CPU does.

#[path = "c_side/c.rs"]
mod c;
#[path = "c_side/there.rs"]
mod there;
#[path = "c_side/workload.rs"]
mod workload;

use std::ffi::CStr;
use std::ptr::null_mut;

use avsg_capi::avsg_status::*;
use avsg_capi::*;
use avsg_sim::{Options, Session, entries, sys};
use avsg_testkit::workload::PLAIN;
use c::*;
use there::{There, life_with};
use workload::{RandomLife, buffer, by_host, found, found_on_host, room, tables, whole_step};

const STEPS: i32 = 30;

fn life(device: &'static CStr, launches: u32) -> Life {
    life_with(device, |config| (config.cores, config.launches) = (6, launches))
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
        let (mut stream, mut graph) = (null_mut(), null_mut());
        let mut random = RandomLife::new(21, &[&cpu, &device]);
        let (like, rows) = room();
        let there = There::room(&context, &like, &rows);
        acl!(aclrtCreateStream(&mut stream));

        let launched = session.launches();
        acl!(aclmdlRICaptureBegin(stream, sys::ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
        // SAFETY: everything lives until the stream was waited for.
        unsafe { whole_step(&device, [&there.batch; 2], &there.fresh, stream, true) };
        acl!(aclmdlRICaptureEnd(stream, &mut graph));
        assert_eq!(session.launches(), launched, "captured work does not run");
        for at in 0..STEPS {
            let turn = random.next(Some(PLAIN), &[&cpu, &device]);
            there.write(&turn.batch, &turn.fresh);
            acl!(aclmdlRIExecuteAsync(graph, stream));
            acl!(aclrtSynchronizeStream(stream));
            by_host(&cpu, &turn, true);
            let cu_q = &turn.batch.cu_q;
            let here = found_on_host(&cpu, cu_q);
            assert_eq!(here, found(&device, cu_q), "{launches} launches, step {at}");
            random.check(&turn, &here, &cpu);
            assert!(buffer(&cpu) == buffer(&device), "{launches} launches, step {at}: bytes");
        }
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
    let there = There::new(&context, &owned);
    acl!(aclrtCreateStream(&mut stream));
    acl!(aclmdlRICaptureBegin(stream, sys::ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
    let parts = ["code 107030", "not permitted while a stream is captured"];
    fails(life.step(&owned, 0), AVSG_DEVICE, &parts);
    // Tables are in doubt now, and a capture cannot mend them.
    // SAFETY: everything lives until the stream is waited for, here and below.
    let status = unsafe { avsg_engine_plan(life.engine, &there.batch, life.plan, stream) };
    fails(status, AVSG_INVALID, &["not reset", "plan once outside of a capture"]);
    acl!(aclmdlRICaptureEnd(stream, &mut graph));
    acl!(aclmdlRIDestroy(graph));
    ok(life.step(&owned, 0));
    assert!(life.expect_exact(&owned, 0) >= 30);

    acl!(aclmdlRICaptureBegin(stream, sys::ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
    // SAFETY: as above.
    unsafe { whole_step(&life, [&there.batch; 2], &there.fresh, stream, true) };
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
