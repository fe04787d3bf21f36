//! Queueing a step on an Ascend device allocates no host memory. The simulator is loaded as a
//! shared library, so that its own allocations are not counted.

use std::ptr::without_provenance;
use std::sync::Arc;

use avsg::ascend::acl::{Acl, Context, Source, Stream};
use avsg::ascend::{AscendOptions, RegisteredPool, simulated};
use avsg::engine::{Config, Engine};
use avsg::pool::{Pages, PoolConfig};
use avsg::rows::RowFormat;
use avsg_testkit::allocations;
use avsg_testkit::alone;
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::device_arrays::DeviceArrays;
use avsg_testkit::memory::read_words;
use avsg_testkit::workload::{DEVICE_SHAPES, Shape};

use crate::prerequisites;

#[test]
fn queueing_a_step_allocates_no_host_memory() {
    let _turn = alone::turn();
    if !prerequisites::has_cpp_compiler() {
        return;
    }
    let acl = Acl::open(&Source::Path(prerequisites::simulator_library())).unwrap();
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

    allocations::check();
    let step = |round: i32| {
        let (blocks, block_stride) = ((0..512 / page as i32).collect(), 512 / page);
        let mut step = OwnedBatch { blocks, block_stride, ..OwnedBatch::new(k, 0) };
        step.push([0, 0, -1, 512], &[(0..k as i32).map(|i| i * 3 + round * 50).collect()]);
        step
    };
    let arrays = DeviceArrays::new(&context, &step(0), &[]).unwrap();
    let batch = arrays.batch();
    let mut plan = engine.new_plan(1, 1).unwrap();
    for round in 0..4 {
        arrays.write(&step(round), &[]).unwrap();
        let calls = allocations::calls(|| {
            // SAFETY: the arrays hold one request of K ids and are dropped after the stream was
            // waited for.
            unsafe { engine.enqueue_step(&batch, &mut plan, 0, None, stream.raw()).unwrap() };
        });
        assert!(round == 0 || calls == 0, "{calls} allocator calls while a step is queued");
        stream.synchronize(60_000).unwrap();
    }
    let valid = without_provenance(plan.device_arrays().unwrap().valid as usize);
    // SAFETY: `valid` points to the plan's array of valid counts, which has a word for its one row.
    let valid = unsafe { read_words(Some(&context), valid, 1) };
    assert_eq!(valid, [params.k as i32], "the kernels have run");
}
