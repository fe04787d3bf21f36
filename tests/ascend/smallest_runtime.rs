//! A runtime is refused for the functions that an engine calls, and for no other.

use std::collections::BTreeSet;
use std::ffi::{CStr, c_void};
use std::sync::Arc;

use avsg::ascend::acl::{Acl, Context, OPTIONAL, REQUIRED, Source, Stream};
use avsg::ascend::{AscendOptions, RegisteredPool};
use avsg::device::params::Params;
use avsg::engine::{Config, Engine, Fresh};
use avsg::rows::RowFormat;
use avsg_sim::{Options, Session, resolve};
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::device_arrays::DeviceArrays;
use avsg_testkit::{exact, fixture};

use crate::harness;

const K: usize = 24;

/// Resolves the required functions only.
fn resolve_required(name: &CStr) -> *mut c_void {
    let required = REQUIRED.iter().any(|required| required.as_bytes() == name.to_bytes());
    if required { resolve(name) } else { std::ptr::null_mut() }
}

#[test]
fn an_engine_calls_each_required_function_and_needs_no_other() {
    let session = Session::new(Options { seed: 8, ..Options::default() });
    // SAFETY: the simulator's functions have the signatures of `acl.h`, which both crates share.
    let source = unsafe { Source::process("the smallest runtime", resolve_required) };
    let acl = Acl::open(&source).unwrap();
    assert_eq!(acl.absent().collect::<Vec<_>>(), OPTIONAL);
    let context = Context::for_device(Arc::new(acl), 0).unwrap();
    let config = Config { cores: 3, ..Config::new(Params::wide(K as u32, 2, 128), 1) };
    let kernels = harness::install_kernels(&session, &config);
    let pool = fixture::pool(1, 600, RowFormat::single(64).unwrap());
    let pool = RegisteredPool::new(&context, pool).unwrap();
    let options = AscendOptions::new(Arc::clone(&context)).with_kernels(kernels);
    let mut engine = Engine::on_ascend(config, pool, &options).unwrap();
    let mut plan = engine.new_plan(1, 1).unwrap();
    let mut owned = OwnedBatch::new(K, 0);
    owned.push([0, 1, -1, 600], &[(0..K as i32).map(|lane| lane * 17).collect()]);
    std::thread::scope(|scope| {
        // This thread has no current context.
        scope.spawn(|| engine.step(&owned.batch(), &mut plan, 0, None).unwrap());
    });
    assert_eq!(exact::check_step(&engine, &plan, &owned, 0, |_, id| (id, 0)), K);
    engine.discard(&mut plan).unwrap();
    let mut token = OwnedBatch::new(K, 0);
    token.push([0, 1, 599, 600], &[vec![-1; K]]);
    engine.append(&token.batch(), 0, &Fresh { segments: &[&[0; 64]] }).unwrap();

    let stream = Stream::new(&context).unwrap();
    let arrays = DeviceArrays::new(&context, &owned, &[]).unwrap();
    arrays.write(&owned, &[]).unwrap();
    // SAFETY: the arrays outlive the work, which is waited for below.
    unsafe { engine.enqueue_step(&arrays.batch(), &mut plan, 0, None, stream.raw()).unwrap() };
    stream.synchronize(10_000).unwrap();
    let error = stream.capture(|| Ok(())).unwrap_err().to_string();
    assert!(
        error.contains("function is aclmdlRICaptureBegin, but the smallest runtime"),
        "{error}"
    );

    drop((arrays, stream, plan, options, context));
    engine.close().unwrap();
    assert_eq!(session.leaks(), Vec::<String>::new());
    let calls: BTreeSet<&str> = session.calls().into_iter().collect();
    assert_eq!(calls, REQUIRED.iter().copied().collect());
}
