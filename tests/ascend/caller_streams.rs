//! A caller's streams. They have limits of vector cores of their own: kernels never have more blocks, cut
//! their work by that number, and a captured step keeps what it was captured with. And what is queued in
//! them, or replayed, keeps the pool registered and mapped.

use std::sync::{Arc, Mutex};

use avsg::ascend::acl::owned::{Context, DeviceMemory, Stream};
use avsg::device::params::Params;
use avsg::device::tiling::Tiling;
use avsg::engine::{Config, DeviceArray, DeviceBatch, Engine};
use avsg::pool::{Pages, PoolConfig};
use avsg::rows::RowFormat;
use avsg_sim::{Kernel, Options, Session, entries, sys};

use crate::random::workload;
use crate::stand;

/// Limits a stream, as a framework that shares the device between streams does.
fn limit(context: &Context, stream: &Stream, cores: u32) {
    let _current = context.bind().unwrap();
    let kind = sys::ACL_RT_DEV_RES_VECTOR_CORE;
    // SAFETY: the stream is alive.
    let code = unsafe { entries::aclrtSetStreamResLimit(stream.raw().handle(), kind, cores) };
    assert_eq!(code, sys::ACL_SUCCESS);
}

/// The simulator refuses a launch with more blocks than the limit, so every step here proves that there
/// are none; and the CPU's bytes, that fewer cores have copied all.
#[test]
fn steps_in_a_limited_stream_are_the_cpus() {
    for one_launch in [false, true] {
        let session = Session::new(Options { seed: 6, ..Options::default() });
        let context = stand::context().unwrap();
        let (stream, other) = (Stream::new(&context).unwrap(), Stream::new(&context).unwrap());
        let mut workload = workload(&session, &context, 14, one_launch);
        for cores in [1, 2, 3, 40] {
            limit(&context, &stream, cores);
            for _ in 0..4 {
                workload.next();
                workload.pair.enqueue(stream.raw()).unwrap();
                stream.synchronize(1000).unwrap();
                workload.compare();
            }
        }
        // What a limit was when it was captured counts, and another stream has another one.
        limit(&context, &stream, 2);
        let graph = stream.capture(|| workload.pair.enqueue(stream.raw())).unwrap();
        for cores in [1, 40] {
            limit(&context, &stream, cores);
            workload.next();
            stream.replay(&graph).unwrap();
            stream.synchronize(1000).unwrap();
            workload.compare();
            workload.next();
            workload.pair.enqueue(other.raw()).unwrap();
            other.synchronize(1000).unwrap();
            workload.compare();
        }
        drop((graph, workload, stream, other, context));
        assert_eq!(session.leaks(), Vec::<String>::new());
    }
}

/// How kernels were launched: name, blocks, and the cores by which they would cut.
type Noted = Arc<Mutex<Vec<(&'static str, u32, i32)>>>;

/// Kernels that only note that.
fn noted(session: &Session) -> Noted {
    let seen = Arc::new(Mutex::new(Vec::new()));
    for name in ["avsg_plan", "avsg_transfer", "avsg_step", "avsg_append", "avsg_reset"] {
        let seen = Arc::clone(&seen);
        let body = move |d: &avsg_sim::Device<'_>| {
            let at = d.slice(d.args[d.args.len() - 1], size_of::<Tiling>())?;
            // SAFETY: the range is alive and holds the struct that the host wrote.
            let tiling = unsafe { at.cast::<Tiling>().read_unaligned() };
            seen.lock().unwrap().push((name, d.blocks, tiling.copy_cores));
            Ok(())
        };
        session.kernel(name, Kernel::new(name == "avsg_step", body));
    }
    seen
}

/// The least of the caller's maximum, the stream's limit and the device's cores.
#[test]
fn cores_are_the_least_of_three() {
    for (asked, device, stream_limit, want) in
        [(5, 40, None, 5), (100, 12, None, 12), (100, 12, Some(7), 7), (5, 12, Some(7), 5)]
    {
        let session = Session::new(Options { cores: device, ..Options::default() });
        let config = Config { cores: asked, ..Config::new(Params::wide(16, 1, 128), 1) };
        let kernels = session.kernel_file(env!("CARGO_TARGET_TMPDIR").as_ref()).unwrap();
        let seen = noted(&session);
        let engine = stand::engine(config, &pool(), kernels, false).unwrap();
        let context = stand::context().unwrap();
        let stream = Stream::new(&context).unwrap();
        if let Some(cores) = stream_limit {
            limit(&context, &stream, cores);
        }
        assert_eq!(engine.config().cores, asked.min(device as usize));
        let launched = enqueue(engine, &context, &stream);
        let seen = seen.lock().unwrap();
        let after: Vec<_> = seen[seen.len() - launched..].to_vec();
        // One request is one core's to plan.
        assert_eq!(after, [("avsg_plan", 1, want as i32), ("avsg_transfer", want, want as i32)]);
        drop((stream, context));
        assert_eq!(session.leaks(), Vec::<String>::new());
    }
}

fn pool() -> PoolConfig {
    let format = RowFormat::single(64).unwrap();
    PoolConfig { pages: Pages::Plain, ..PoolConfig::new(1, 256, format) }
}

/// Queues one step, waits, and says how many kernels that was.
fn enqueue(mut engine: Engine, context: &Arc<Context>, stream: &Stream) -> usize {
    let memory = DeviceMemory::zeroed(context, 4096).unwrap();
    let at = DeviceArray { address: memory.address(), len: 16 };
    let batch = DeviceBatch {
        requests: 1,
        k: 16,
        ids: at,
        ids_stride: 16,
        cu_q: at,
        state: at,
        generation: at,
        stable_len: at,
        seq_len: at,
        ..DeviceBatch::default()
    };
    let mut plan = engine.new_plan(1, 1).unwrap();
    // SAFETY: the kernels touch nothing, and the memory lives until the stream is waited for.
    unsafe { engine.enqueue_step(&batch, &mut plan, 0, None, stream.raw()).unwrap() };
    stream.synchronize(1000).unwrap();
    drop((plan, memory));
    engine.close().unwrap();
    2
}

/// What is left to do when an engine goes, in a stream that it does not own.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Left {
    Queued,
    Replayed,
    /// And an earlier drop has failed, which is still to be reported.
    AfterFailedDrop,
}

/// An engine waits for every stream of its context before its pool is unregistered: the simulator
/// refuses to unregister what a queued kernel may read.
#[test]
fn a_pool_stays_registered_while_work_is_queued() {
    for left in [Left::Queued, Left::Replayed, Left::AfterFailedDrop] {
        let session = Session::new(Options { seed: 3, jitter: 0, ..Options::default() });
        let context = stand::context().unwrap();
        let (stream, other) = (Stream::new(&context).unwrap(), Stream::new(&context).unwrap());
        let mut workload = workload(&session, &context, 15, false);
        workload.next();
        let graph = stream.capture(|| workload.pair.enqueue(stream.raw())).unwrap();
        let launched = session.launches();
        match left {
            Left::Replayed => other.replay(&graph).unwrap(),
            _ => workload.pair.enqueue(other.raw()).unwrap(),
        }
        if left == Left::AfterFailedDrop {
            let so_far = session.calls().iter().filter(|call| **call == "aclrtFree").count();
            let memory = DeviceMemory::new(&context, 64).unwrap();
            session.fail("aclrtFree", so_far + 1, 507_899);
            drop(memory);
        }
        assert_eq!(session.launches(), launched, "nothing has run");
        let before = session.calls().len();
        drop(workload);
        let calls = session.calls()[before..].to_vec();
        let first = |part: &str| calls.iter().position(|call| call.starts_with(part)).unwrap();
        assert!(first("aclrtSynchronizeDevice") < first("aclrtHostUnregister"), "{calls:?}");
        assert_eq!(session.launches(), launched + 5, "it has waited");
        assert_eq!(context.take_error().is_err(), left == Left::AfterFailedDrop);
        context.take_error().unwrap();
        drop((graph, stream, other, context));
        assert_eq!(session.leaks(), Vec::<String>::new());
    }
}

/// Work that never ends: then the pool stays what it is, and the engine says so.
#[test]
fn a_pool_that_a_kernel_never_leaves_is_never_unmapped() {
    let session = Session::new(Options { seed: 3, jitter: 0, ..Options::default() });
    let context = stand::context().unwrap();
    let stream = Stream::new(&context).unwrap();
    let mut workload = workload(&session, &context, 15, false);
    workload.next();
    session.hang(session.launches() + 2);
    workload.pair.enqueue(stream.raw()).unwrap();
    let at = workload.pair.ascend.pool().chunks().next().unwrap().ptr().addr();
    let mapped = |at: usize| {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let range = |line: &str| {
            let (from, to) = line.split(' ').next()?.split_once('-')?;
            let number = |text| usize::from_str_radix(text, 16).ok();
            Some(number(from)?..number(to)?)
        };
        maps.lines().filter_map(range).any(|range| range.contains(&at))
    };
    assert!(mapped(at));
    drop(workload);
    assert!(!session.calls().contains(&"aclrtHostUnregister") && mapped(at));
    let mut said = Vec::new();
    while let Err(error) = context.take_error() {
        said.push(error.to_string());
    }
    let all = said.join("\n");
    assert!(all.contains("code 507046") && all.contains("host pool is"), "{all}");
    assert!(all.contains("stays registered and mapped"), "{all}");
}
