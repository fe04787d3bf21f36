//! Sessions of the simulator, engines in them, and what tests expect of calls.

use std::path::PathBuf;
use std::sync::{Arc, Once};

use avsg::Result;
use avsg::ascend::acl::{Context, Stream};
use avsg::ascend::{AscendOptions, RegisteredPool, simulated};
use avsg::disk::PoolFile;
use avsg::engine::{Config, Engine};
use avsg::plan::Plan;
use avsg::pool::HostPool;
use avsg_sim::{Options, Session};
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::device_arrays::DeviceArrays;
use avsg_testkit::fixture;
use avsg_testkit::scratch::Scratch;
use avsg_testkit::workload::{DEVICE_SHAPES, Shape};

use super::prerequisites::has_cpp_compiler;
use super::rust_kernels;

/// Installs the Rust kernels in a session and returns the folder that an engine loads them from.
pub fn install_kernels(session: &Session, config: &Config) -> PathBuf {
    rust_kernels::install(session, config.params);
    session.kernel_file(env!("CARGO_TARGET_TMPDIR").as_ref()).unwrap()
}

/// Runs a test in a session of the simulator, in which it must not leak a resource.
pub fn in_session<T>(options: Options, test: impl FnOnce(&Session, &Arc<Context>) -> T) -> T {
    let session = Session::new(options);
    let context = simulated::context().unwrap();
    let result = test(&session, &context);
    drop(context);
    assert_eq!(session.leaks(), Vec::<String>::new());
    result
}

/// Runs a test of emitted kernels in such a session, if there is the C++ compiler that they need. The first call compiles those
/// of `DEVICE_SHAPES`, because a session that compiles keeps the tests of all other threads waiting.
pub fn with_emitted_kernels(options: Options, test: impl FnOnce(&Session, &Arc<Context>)) {
    static COMPILED: Once = Once::new();
    if has_cpp_compiler() {
        COMPILED.call_once(|| {
            let emitted = DEVICE_SHAPES.map(|bytes| simulated::emit(&Shape::from(bytes).params()));
            let files = emitted.map(Result::unwrap);
            simulated::compile(&files.each_ref().map(|file| &**file)).unwrap();
        });
        in_session(options, test);
    }
}

/// Returns the options of a session with a seed.
pub fn seeded(seed: u64) -> Options {
    Options { seed, ..Options::default() }
}

/// Runs a test on an engine on the CPU, whose pool is in memory and then in a file, and on one on the
/// simulated device, which runs the Rust kernels.
pub fn on_both_devices(config: &Config, pool: impl Fn() -> HostPool, test: impl Fn(&mut Engine)) {
    test(&mut Engine::new(config.clone(), pool()).unwrap());
    let folder = Scratch::new();
    let in_file = fixture::in_file(&pool(), &config.indexers, PoolFile::new(folder.path()));
    test(&mut Engine::new(config.clone(), in_file).unwrap());
    on_ascend(config, pool, |engine, _, _| test(engine));
}

/// Runs a test on an engine on the simulated device, which runs the Rust kernels.
pub fn on_ascend(
    config: &Config,
    pool: impl FnOnce() -> HostPool,
    test: impl FnOnce(&mut Engine, &Session, &Arc<Context>),
) {
    in_session(seeded(5), |session, context| {
        let mut engine = engine_over(session, context, config, pool()).unwrap();
        test(&mut engine, session, context);
        engine.close().unwrap();
    });
}

/// Creates an engine over a pool, which runs the Rust kernels.
pub fn engine_over(
    session: &Session,
    context: &Arc<Context>,
    config: &Config,
    pool: HostPool,
) -> Result<Engine> {
    let kernels = install_kernels(session, config);
    engine(context, config, pool, kernels, None)
}

/// Creates an engine over a pool. Without `kernels` it loads the kernels that the library emits.
pub fn engine(
    context: &Arc<Context>,
    config: &Config,
    pool: HostPool,
    kernels: impl Into<Option<PathBuf>>,
    one_launch: impl Into<Option<bool>>,
) -> Result<Engine> {
    let pool = RegisteredPool::new(context, pool)?;
    let (kernels, one_launch) = (kernels.into(), one_launch.into());
    let options = AscendOptions { kernels, one_launch, ..AscendOptions::new(Arc::clone(context)) };
    Engine::on_ascend(config.clone(), pool, &options)
}

/// Queues a plan of a batch and its transfers to `layers` in a stream, calls `before_the_wait`, and
/// waits for the stream.
pub fn plan_in_a_stream(
    engine: &mut Engine,
    plan: &mut Plan,
    owned: &OwnedBatch,
    layers: &[usize],
    context: &Arc<Context>,
    before_the_wait: impl FnOnce(&mut Engine),
) {
    let stream = Stream::new(context).unwrap();
    let arrays = DeviceArrays::new(context, owned, &[]).unwrap();
    arrays.write(owned, &[]).unwrap();
    // SAFETY: the arrays outlive the work, which is waited for below.
    unsafe {
        engine.enqueue_plan(&arrays.batch(), plan, stream.raw()).unwrap();
        engine.enqueue_transfer(plan, layers, None, stream.raw()).unwrap();
    }
    before_the_wait(engine);
    stream.synchronize(60_000).unwrap();
}

/// Asserts that a call was refused with an error that contains each of `parts`.
#[track_caller]
pub fn expect_refusal<T>(result: Result<T>, parts: &[&str]) {
    let text = result.err().expect("a refusal").to_string();
    for part in parts {
        assert!(text.contains(part), "{part:?} in {text:?}");
    }
}

/// Returns the number of calls of a function so far.
pub fn count(session: &Session, call: &str) -> usize {
    session.calls().iter().filter(|name| **name == call).count()
}

/// Fails the n-th call of a function from now on, where 1 is the next one.
pub fn fail_next(session: &Session, call: &str, nth: usize) {
    session.fail(call, count(session, call) + nth, 507_899);
}
