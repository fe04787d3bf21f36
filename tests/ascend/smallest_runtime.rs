//! A runtime is refused for the functions that an engine calls, and for no other.

use std::collections::BTreeSet;
use std::ffi::{CStr, c_void};
use std::sync::Arc;

use avsg::ascend::acl::{Acl, Context, OPTIONAL, REQUIRED, Source, Stream};
use avsg::ascend::{AscendOptions, RegisteredPool};
use avsg::engine::{Engine, Fresh};
use avsg_sim::{Session, resolve};

use crate::harness::{expect_refusal, install_kernels, plan_in_a_stream, seeded};
use crate::small::{self, K, ROW, check, ids, one_request};

/// Resolves the required functions only.
fn resolve_required(name: &CStr) -> *mut c_void {
    let required = REQUIRED.iter().any(|required| required.as_bytes() == name.to_bytes());
    if required { resolve(name) } else { std::ptr::null_mut() }
}

#[test]
fn an_engine_calls_each_required_function_and_needs_no_other() {
    let session = Session::new(seeded(8));
    // SAFETY: the simulator's functions have the signatures of `acl.h`, which both crates share.
    let source = unsafe { Source::process("the smallest runtime", resolve_required) };
    let acl = Acl::open(&source).unwrap();
    assert_eq!(acl.absent().collect::<Vec<_>>(), OPTIONAL);
    let context = Context::for_device(Arc::new(acl), 0).unwrap();
    let kernels = install_kernels(&session, &small::config(1));
    let pool = RegisteredPool::new(&context, small::pool()).unwrap();
    let options = AscendOptions::new(Arc::clone(&context)).with_kernels(kernels);
    let mut engine = Engine::on_ascend(small::config(1), pool, &options).unwrap();
    let mut plan = engine.new_plan(1, 1).unwrap();
    let owned = one_request(0, 1, ids(0));
    std::thread::scope(|scope| {
        // This thread has no current context.
        scope.spawn(|| engine.step(&owned.batch(), &mut plan, 0, None).unwrap());
    });
    check(&engine, &plan, &owned, 0);
    engine.discard(&mut plan).unwrap();
    let mut token = one_request(0, 1, vec![-1; K]);
    token.stable[0] = 599;
    engine.append(&token.batch(), 0, &Fresh { segments: &[&[0; ROW]] }).unwrap();

    plan_in_a_stream(&mut engine, &mut plan, &owned, &[0], &context, |_| ());
    let stream = Stream::new(&context).unwrap();
    let parts = ["function is aclmdlRICaptureBegin, but the smallest runtime"];
    expect_refusal(stream.capture(|| Ok(())), &parts);

    drop((stream, plan, options, context));
    engine.close().unwrap();
    assert_eq!(session.leaks(), Vec::<String>::new());
    let calls: BTreeSet<&str> = session.calls().into_iter().collect();
    assert_eq!(calls, REQUIRED.iter().copied().collect());
}
