//! Work that is queued on an Ascend device takes no memory of the host. The simulator is a shared
//! library here, so that its own allocations are not counted. One test, so that nothing else runs in
//! this process while it counts.

use std::path::PathBuf;
use std::sync::Arc;

use avsg::ascend::acl::api::memory::{Way, copy};
use avsg::ascend::acl::owned::{Context, DeviceMemory, Stream};
use avsg::ascend::acl::{Acl, Source};
use avsg::ascend::{AscendOptions, RegisteredPool, simulated};
use avsg::device::params::{Lifetime, Params};
use avsg::engine::{Config, DeviceArray, DeviceBatch, Engine};
use avsg::pool::{Pages, PoolConfig};
use avsg::rows::RowFormat;
use avsg_testkit::allocations;

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
    let context = Context::open(Arc::new(acl), 0).unwrap();
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

    let arrays = DeviceMemory::zeroed(&context, 4096).unwrap();
    let at = |i: u64| DeviceArray { address: arrays.address() + 64 * i, len: 16 };
    let words: Vec<u8> =
        [(0, 0), (1, 1)].iter().flat_map(|w: &(i32, i32)| w.1.to_ne_bytes()).collect();
    arrays.write(0, &words).unwrap();
    arrays.write(64 * 4, &512i32.to_ne_bytes()).unwrap();
    let batch = DeviceBatch {
        requests: 1,
        k: 16,
        ids: at(5),
        ids_stride: 16,
        cu_q: at(0),
        state: at(1),
        generation: at(2),
        stable_len: at(3),
        seq_len: at(4),
        ..DeviceBatch::default()
    };
    let mut plan = engine.new_plan(1, 1).unwrap();
    arrays.write(64 * 3, &(-1i32).to_ne_bytes()).unwrap();
    for round in 0..4 {
        let ids: Vec<u8> = (0..16i32).flat_map(|i| (i * 3 + round * 50).to_ne_bytes()).collect();
        arrays.write(64 * 5, &ids).unwrap();
        let calls = allocations::calls(|| {
            // SAFETY: the arrays hold one request of 16 ids and live until the stream is waited for.
            unsafe { engine.enqueue_step(&batch, &mut plan, 0, None, stream.raw()).unwrap() };
        });
        assert!(round == 0 || calls == 0, "{calls} allocator calls while a step is queued");
        stream.synchronize(60_000).unwrap();
    }
    allocations::check();
    let from = std::ptr::without_provenance(plan.device_arrays().unwrap().valid as usize);
    let mut valid = [0; 4];
    let _current = context.bind().unwrap();
    // SAFETY: the plan's array of valid counts on the device, which has a word for its one row.
    unsafe { copy(context.acl(), valid.as_mut_ptr().cast(), from, 4, Way::ToHost) }.unwrap();
    assert_eq!(i32::from_ne_bytes(valid), 16, "the kernels have run");
}
