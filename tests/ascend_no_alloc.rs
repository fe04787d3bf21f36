//! Work that is queued on an Ascend device takes no memory of the host. The simulator is a shared
//! library here, so that its own allocations are not counted. One test, so that nothing else runs in
//! this process while it counts.

use std::path::PathBuf;
use std::ptr::without_provenance;
use std::sync::Arc;

use avsg::ascend::acl::owned::{Context, Stream};
use avsg::ascend::acl::{Acl, Source};
use avsg::ascend::{AscendOptions, RegisteredPool, simulated};
use avsg::engine::{Config, Engine};
use avsg::pool::{Pages, PoolConfig};
use avsg::rows::RowFormat;
use avsg_testkit::allocations;
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::device_arrays::DeviceArrays;
use avsg_testkit::memory::read_words;
use avsg_testkit::workload::{DEVICE_SHAPES, Shape};

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
    let params = Shape::from(DEVICE_SHAPES[1]).params();
    let (k, page) = (params.k as usize, params.page as usize);
    let format = RowFormat::single(64).unwrap();
    let pool = PoolConfig { pages: Pages::Plain, ..PoolConfig::new(1, 512, format) };
    let pool = RegisteredPool::create(&context, &pool).unwrap();
    let kernels = simulated::emit(&params).unwrap();
    let options = AscendOptions::new(context.clone()).with_kernels(kernels);
    let config = Config { cores: 2, ..Config::new(params, 1) };
    let mut engine = Engine::on_ascend(config, pool, &options).unwrap();
    let stream = Stream::new(&context).unwrap();

    let there = DeviceArrays::new(&context, &OwnedBatch::zeroed(k, 1, 1, 512 / page), &[]).unwrap();
    let batch = there.batch();
    let mut plan = engine.new_plan(1, 1).unwrap();
    for round in 0..4 {
        let mut step = OwnedBatch {
            blocks: (0..512 / page as i32).collect(),
            block_stride: 512 / page,
            ..OwnedBatch::new(k, 0)
        };
        step.push([0, 0, -1, 512], &[(0..k as i32).map(|i| i * 3 + round * 50).collect()]);
        there.write(&step, &[]).unwrap();
        let calls = allocations::calls(|| {
            // SAFETY: the arrays hold one request of K ids and live until the stream is waited for.
            unsafe { engine.enqueue_step(&batch, &mut plan, 0, None, stream.raw()).unwrap() };
        });
        assert!(round == 0 || calls == 0, "{calls} allocator calls while a step is queued");
        stream.synchronize(60_000).unwrap();
    }
    allocations::check();
    let valid = without_provenance(plan.device_arrays().unwrap().valid as usize);
    // SAFETY: the plan's array of valid counts on the device, which has a word for its one row.
    let valid = unsafe { read_words(Some(&context), valid, 1) };
    assert_eq!(valid, [params.k as i32], "the kernels have run");
}
