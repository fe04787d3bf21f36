//! Streams of the caller, and captured steps. A stream may limit the number of vector cores: kernels are launched with
//! no more blocks, divide their work by that number, and a captured step keeps the limit of the
//! capture. Work that is queued or replayed in a stream keeps the pool registered and mapped.

use std::sync::{Arc, Mutex};

use avsg::ascend::acl::{Context, DeviceMemory, Stream};
use avsg::ascend::simulated;
use avsg::device::kernels::KernelName;
use avsg::engine::Config;
use avsg_sim::{ClosureKernel, Options, Session, entries, sys};
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::device_arrays::DeviceArrays;
use rustix::mm::{Advice, madvise};

use crate::harness::{self, fail_next, in_session, seeded};
use crate::random_workload::{RandomWorkload, in_a_stream};
use crate::rust_kernels::tiling;
use crate::small::{self, K};

/// What a queued step calls: it updates arguments and launches kernels, and calls nothing that waits or allocates.
const QUEUED: [&str; 5] = [
    "aclrtGetCurrentContext",
    "aclrtGetStreamResLimit",
    "aclrtKernelArgsParaUpdate",
    "aclrtKernelArgsFinalize",
    "aclrtLaunchKernelWithConfig",
];

/// Replays one captured step, or queues each, over a random workload with joins, leaves, permuted states, padded
/// requests, any number of tokens, invalid ids and fresh rows.
#[test]
fn a_captured_step_is_replayed_over_a_workload_and_neither_waits_nor_allocates() {
    for (one_launch, captured, steps) in [(false, true, 60), (true, true, 60), (false, false, 3)] {
        in_a_stream(seeded(4), 12, one_launch, |session, mut workload| {
            let before = session.launches();
            if captured {
                workload.capture().unwrap();
            }
            assert_eq!(session.launches(), before, "captured work does not run");
            let replay = ["aclrtGetCurrentContext", "aclmdlRIExecuteAsync"];
            let allowed = if captured { &replay[..] } else { &QUEUED };
            for _ in 0..steps {
                workload.next_step();
                let before = session.calls().len();
                workload.submit().unwrap();
                let calls = session.calls()[before..].to_vec();
                assert!(calls.iter().all(|call| allowed.contains(call)), "{calls:?}");
                let launches = calls.iter().filter(|call| **call == QUEUED[4]).count();
                assert_eq!(launches, if captured { 0 } else { 5 });
                workload.wait().unwrap();
                workload.check();
            }
            workload.compare_with_cpu();
        });
    }
}

/// Limits the vector cores of a stream, as frameworks do that share the device between streams.
fn limit_cores(context: &Context, stream: &Stream, cores: u32) {
    let _current = context.bind().unwrap();
    let kind = sys::ACL_RT_DEV_RES_VECTOR_CORE;
    // SAFETY: `stream` is borrowed, so its handle is valid.
    let code = unsafe { entries::aclrtSetStreamResLimit(stream.raw().handle(), kind, cores) };
    assert_eq!(code, sys::ACL_SUCCESS);
}

/// The simulator refuses a launch with more blocks than the limit, so each step proves that the
/// limit is kept.
#[test]
fn steps_in_a_limited_stream_match_the_cpu() {
    for one_launch in [false, true] {
        in_a_stream(seeded(6), 14, one_launch, |_, mut workload| {
            let limit = |workload: &RandomWorkload, cores| {
                limit_cores(&workload.context, &workload.stream, cores);
            };
            for cores in [1, 2, 3, 40] {
                limit(&workload, cores);
                (0..10).for_each(|_| workload.step());
            }
            // A replay uses the limit of its capture, and `other` has no limit.
            let other = Stream::new(&workload.context).unwrap();
            limit(&workload, 2);
            workload.capture().unwrap();
            for cores in [1, 40] {
                limit(&workload, cores);
                workload.step();
                workload.next_step();
                workload.enqueue(other.raw()).unwrap();
                other.synchronize(1000).unwrap();
                workload.check();
            }
            workload.compare_with_cpu();
        });
    }
}

/// Launches of kernels: name, blocks, and the number of cores that the copies are divided by.
type Launches = Arc<Mutex<Vec<(&'static str, u32, i32)>>>;

/// Installs kernels that record their launches and do nothing else.
fn record_launches(session: &Session) -> Launches {
    let launches = Launches::default();
    for kernel in KernelName::ALL {
        let (name, launches) = (kernel.entry().to_str().unwrap(), Arc::clone(&launches));
        let body = move |device: &avsg_sim::ClosureDevice<'_>| {
            let tiling = tiling(device.args, &|at, bytes| device.slice(at, bytes))?;
            launches.lock().unwrap().push((name, device.blocks, tiling.copy_cores));
            Ok(())
        };
        session.kernel(name, ClosureKernel::new(kernel == KernelName::Step, body));
    }
    launches
}

/// An engine uses the minimum of the caller's maximum, the stream's limit and the device's cores.
#[test]
fn an_engine_uses_the_least_of_three_core_limits() {
    let cases = [(5, 40, None, 5), (100, 12, None, 12), (100, 12, Some(7), 7), (5, 12, Some(7), 5)];
    for (asked, device, stream_limit, want) in cases {
        in_session(Options { cores: device, ..Options::default() }, |session, context| {
            let config = Config { cores: asked, ..small::config(1) };
            let kernels = session.kernel_file(env!("CARGO_TARGET_TMPDIR").as_ref()).unwrap();
            let launches = record_launches(session);
            let pool = small::pool();
            let mut engine = harness::engine(context, &config, pool, kernels, false).unwrap();
            let stream = Stream::new(context).unwrap();
            if let Some(cores) = stream_limit {
                limit_cores(context, &stream, cores);
            }
            assert_eq!(engine.config().cores, asked.min(device as usize));
            let before = launches.lock().unwrap().len();
            let owned = OwnedBatch::uniform(K, 1, 1, 0);
            let arrays = DeviceArrays::new(context, &owned, &[]).unwrap();
            let (batch, mut plan) = (arrays.batch(), engine.new_plan(1, 1).unwrap());
            // SAFETY: the kernels access no memory, and the arrays are dropped after the stream was waited for.
            unsafe { engine.enqueue_step(&batch, &mut plan, 0, None, stream.raw()).unwrap() };
            stream.synchronize(1000).unwrap();
            drop((plan, arrays));
            engine.close().unwrap();
            let after = launches.lock().unwrap()[before..].to_vec();
            // One core plans a request, so a batch of one request has one block.
            let cores = want as i32;
            assert_eq!(after, [("avsg_plan", 1, cores), ("avsg_transfer", want, cores)]);
        });
    }
}

/// An engine waits for every stream of its context before it unregisters its pool: for queued work, for a replay,
/// and while the error of an earlier failed drop is not reported yet. The simulator refuses to unregister memory
/// that a queued kernel may read.
#[test]
fn a_pool_stays_registered_while_work_is_queued() {
    for (replayed, a_drop_failed) in [(false, false), (true, false), (false, true)] {
        let options = Options { seed: 3, jitter: 0, ..Options::default() };
        in_a_stream(options, 15, false, |session, mut workload| {
            let context = Arc::clone(&workload.context);
            workload.next_step();
            if replayed {
                workload.capture().unwrap();
            }
            let launched = session.launches();
            workload.submit().unwrap();
            if a_drop_failed {
                let memory = DeviceMemory::new(&context, 64).unwrap();
                fail_next(session, "aclrtFree", 1);
                drop(memory);
            }
            assert_eq!(session.launches(), launched, "no kernel has run");
            let before = session.calls().len();
            drop(workload);
            let calls = session.calls()[before..].to_vec();
            let first = |part: &str| calls.iter().position(|call| call.starts_with(part)).unwrap();
            assert!(first("aclrtSynchronizeDevice") < first("aclrtHostUnregister"), "{calls:?}");
            let waited = session.launches() - launched;
            assert_eq!(waited, 5, "the drop has waited for the five kernels");
            assert_eq!(context.take_error().is_err(), a_drop_failed);
            context.take_error().unwrap();
        });
    }
}

/// If queued work never ends, the pool stays registered and mapped, and an error says so.
#[test]
fn a_pool_in_use_by_a_hanging_kernel_is_never_unmapped() {
    // The registration that stays counts as a leak.
    let session = Session::new(Options { seed: 3, jitter: 0, ..Options::default() });
    let context = simulated::context().unwrap();
    let workload = RandomWorkload::on_rust_kernels(&session, &context, (5, false), 15);
    let mut workload = workload.unwrap();
    workload.next_step();
    session.hang(session.launches() + 2);
    workload.submit().unwrap();
    let at = workload.engine.pool().chunks().next().unwrap().ptr();
    // SAFETY: this advice changes nothing. It fails for memory that is not mapped.
    let mapped = || unsafe { madvise(at.cast(), 4096, Advice::Normal) }.is_ok();
    assert!(mapped());
    drop(workload);
    assert!(!session.calls().contains(&"aclrtHostUnregister") && mapped());
    let errors = std::iter::from_fn(|| context.take_error().err());
    let errors: Vec<_> = errors.map(|error| error.to_string()).collect();
    let all = errors.join("\n");
    assert!(all.contains("code 507046") && all.contains("host pool is"), "{all}");
    assert!(all.contains("stays registered and mapped"), "{all}");
}
