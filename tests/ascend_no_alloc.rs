//! Work that is queued on an Ascend device takes no memory of the host. The simulator is a shared
//! library here, so that its own allocations are not counted. One test, so that nothing else runs in
//! this process while it counts.

use std::path::PathBuf;
use std::ptr::without_provenance;
use std::sync::Arc;

use avsg::ascend::acl::owned::{Context, Stream};
use avsg::ascend::acl::{Acl, Source};
use avsg::ascend::{AscendOptions, RegisteredPool, simulated};
use avsg::device::params::{Lifetime, Params};
use avsg::engine::{Config, Engine};
use avsg::pool::{Pages, PoolConfig};
use avsg::rows::RowFormat;
use avsg_testkit::allocations;
use avsg_testkit::batch::Owned;
use avsg_testkit::memory::words;
use avsg_testkit::on_device::OnDevice;

/// The simulator's shared library, which cargo builds as a dependency of this test.
fn library() -> PathBuf {
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let name = "libavsg_ascendcl_sim.so";
    let places = [deps.join(name), deps.parent().unwrap().join(name)];
    places.into_iter().find(|path| path.exists()).expect("cargo builds the simulator's library")
}

#[test]
fn a_queued_step_takes_no_memory() {
    if avsg_sim::compiler::cpp().is_none() {
        println!("skipped: no C++ compiler, which the emitted kernels need here");
        return;
    }
    let acl = Acl::open(&Source::Path(library())).unwrap();
    let context = Context::for_device(Arc::new(acl), 0).unwrap();
    let lifetime = Lifetime::Constant(127);
    let params = Params { spread: 2, retries: 7, lifetime, ..Params::wide(16, 1, 128) };
    let format = RowFormat::single(64).unwrap();
    let pool = PoolConfig { pages: Pages::Plain, ..PoolConfig::new(1, 512, format) };
    let pool = RegisteredPool::create(&context, &pool).unwrap();
    let kernels = simulated::emit(&params).unwrap();
    let options = AscendOptions::new(context.clone()).with_kernels(kernels);
    let config = Config { cores: 2, ..Config::new(params, 1) };
    let mut engine = Engine::on_ascend(config, pool, &options).unwrap();
    let stream = Stream::new(&context).unwrap();

    let there = OnDevice::new(&context, &Owned::room(16, 1, 1, 0), &[]).unwrap();
    let batch = there.batch();
    let mut plan = engine.new_plan(1, 1).unwrap();
    for round in 0..4 {
        let mut step = Owned::new(16, 0);
        step.push([0, 0, -1, 512], &[(0..16).map(|i| i * 3 + round * 50).collect()]);
        there.write(&step, &[]).unwrap();
        let calls = allocations::calls(|| {
            // SAFETY: the arrays hold one request of 16 ids and live until the stream is waited for.
            unsafe { engine.enqueue_step(&batch, &mut plan, 0, None, stream.raw()).unwrap() };
        });
        assert!(round == 0 || calls == 0, "{calls} allocator calls while a step is queued");
        stream.synchronize(60_000).unwrap();
    }
    allocations::check();
    let valid = without_provenance(plan.device_arrays().unwrap().valid as usize);
    // SAFETY: the plan's array of valid counts on the device, which has a word for its one row.
    let valid = unsafe { words(Some(&context), valid, 1) };
    assert_eq!(valid, [16], "the kernels have run");
}
