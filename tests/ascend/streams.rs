//! Steps with device arrays on the Ascend device: streams of the caller, captured steps, and
//! threads. Work that is not ordered gives wrong rows.

use avsg::ascend::acl::{DeviceMemory, Event, Stream};
use avsg::ascend::{AscendOptions, RegisteredPool, simulated};
use avsg::device::params::Params;
use avsg::engine::{Config, DeviceArray, DeviceBatch, DeviceFresh, Engine};
use avsg::pool::{HostPool, Role};
use avsg::rows::RowFormat;
use avsg_sim::{Options, Session};
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::{exact, fixture};

use crate::harness;
use crate::prerequisites::has_cpp_compiler;
use crate::random_workload::{self, RandomWorkload, pair_config};

#[test]
fn steps_in_a_callers_stream_match_the_cpu() {
    for one_launch in [false, true] {
        let session = Session::new(Options { seed: 3, ..Options::default() });
        let context = simulated::context().unwrap();
        let stream = Stream::new(&context).unwrap();
        let mut workload = random_workload::with_rust_kernels(&session, &context, 11, one_launch);
        for _ in 0..40 {
            workload.next_step();
            workload.pair.enqueue(stream.raw()).unwrap();
            stream.synchronize(1000).unwrap();
            workload.compare();
        }
        assert!(workload.pair.compared_slots > 10_000);
        drop((workload, stream, context));
        assert_eq!(session.leaks(), Vec::<String>::new());
    }
}

/// Replays one captured step over a random workload with joins, leaves, permuted states, padded
/// requests, any number of tokens, invalid ids and fresh rows.
#[test]
fn a_captured_step_is_replayed_over_a_workload() {
    for one_launch in [false, true] {
        let session = Session::new(Options { seed: 4, ..Options::default() });
        let context = simulated::context().unwrap();
        let stream = Stream::new(&context).unwrap();
        let mut workload = random_workload::with_rust_kernels(&session, &context, 12, one_launch);
        let before = session.launches();
        let graph = stream.capture(|| workload.pair.enqueue(stream.raw())).unwrap();
        assert_eq!(session.launches(), before, "captured work does not run");
        for _ in 0..60 {
            workload.next_step();
            let before = session.calls().len();
            stream.replay(&graph).unwrap();
            let calls = session.calls()[before..].to_vec();
            let allowed = ["aclrtGetCurrentContext", "aclmdlRIExecuteAsync"];
            assert!(
                calls.iter().all(|call| allowed.contains(call)),
                "a replay makes no other calls: {calls:?}"
            );
            stream.synchronize(1000).unwrap();
            workload.compare();
        }
        assert!(workload.pair.compared_slots > 10_000);
        drop((graph, workload, stream, context));
        assert_eq!(session.leaks(), Vec::<String>::new());
    }
}

#[test]
fn emitted_kernels_are_captured_and_replayed() {
    if !has_cpp_compiler() {
        return;
    }
    for one_launch in [false, true] {
        let _session = Session::new(Options { seed: 8, ..Options::default() });
        let context = simulated::context().unwrap();
        let stream = Stream::new(&context).unwrap();
        let config = pair_config(5, one_launch);
        let mut workload = RandomWorkload::new(&config, &context, None, 21);
        let graph = stream.capture(|| workload.pair.enqueue(stream.raw())).unwrap();
        for _ in 0..12 {
            workload.next_step();
            stream.replay(&graph).unwrap();
            stream.synchronize(60_000).unwrap();
            workload.compare();
        }
    }
}

/// A queued step updates arguments and launches kernels. It calls nothing that waits or allocates.
#[test]
fn a_queued_step_neither_waits_nor_allocates() {
    let session = Session::new(Options::default());
    let context = simulated::context().unwrap();
    let stream = Stream::new(&context).unwrap();
    let mut workload = random_workload::with_rust_kernels(&session, &context, 13, false);
    for _ in 0..3 {
        workload.next_step();
        let before = session.calls().len();
        workload.pair.enqueue(stream.raw()).unwrap();
        let calls = session.calls()[before..].to_vec();
        let allowed = [
            "aclrtGetCurrentContext",
            "aclrtGetStreamResLimit",
            "aclrtKernelArgsParaUpdate",
            "aclrtKernelArgsFinalize",
            "aclrtLaunchKernelWithConfig",
        ];
        assert!(calls.iter().all(|call| allowed.contains(call)), "{calls:?}");
        assert_eq!(calls.iter().filter(|c| **c == "aclrtLaunchKernelWithConfig").count(), 5);
        stream.synchronize(1000).unwrap();
        workload.compare();
    }
}

/// Appends the rows of a step in one stream and gathers them in another. Returns whether the
/// gathered rows are exact.
fn gather_after_append(seed: u64, event_between: bool) -> bool {
    let session = Session::new(Options { seed, jitter: 0, ..Options::default() });
    let context = simulated::context().unwrap();
    let (appends, gathers) = (Stream::new(&context).unwrap(), Stream::new(&context).unwrap());
    let appended = Event::sync(&context).unwrap();
    let mut workload = random_workload::with_rust_kernels(&session, &context, 7, false);
    let mut exact = true;
    for _ in 0..6 {
        workload.next_step();
        let batch = workload.pair.device_arrays.batch();
        let rows = [0, 1].map(|layer| workload.pair.device_arrays.fresh(layer));
        // SAFETY: all memory is dropped after the streams were waited for.
        unsafe {
            for (layer, rows) in rows.iter().enumerate() {
                let fresh = DeviceFresh { segments: rows };
                workload
                    .pair
                    .ascend
                    .enqueue_append(&batch, 0, layer, &fresh, appends.raw())
                    .unwrap();
            }
            if event_between {
                appended.record(appends.raw()).unwrap();
                gathers.wait(&appended).unwrap();
            }
            // The gather is given no fresh rows, so it reads them from the pool.
            exact &= gather_from_pool(&mut workload, &batch, &gathers);
        }
        appends.synchronize(1000).unwrap();
    }
    exact
}

/// Runs a step that reads all rows from the pool, and returns whether the rows that this step
/// appends are exact in their slots.
///
/// # Safety
/// The conditions of [`Engine::enqueue_step`] must hold.
unsafe fn gather_from_pool(
    workload: &mut RandomWorkload,
    batch: &DeviceBatch,
    stream: &Stream,
) -> bool {
    // With a stable length of -1 no row is fresh.
    let minus_one = DeviceMemory::new(&simulated::context().unwrap(), 16).unwrap();
    minus_one.write(0, &[0xFF; 16]).unwrap();
    let stable_len = DeviceArray { address: minus_one.address(), len: minus_one.len() / 4 };
    let without_fresh = DeviceBatch { stable_len, ..*batch };
    let (engine, plan) = (&mut workload.pair.ascend, &mut workload.pair.ascend_plan);
    // SAFETY: the caller keeps the contract of this function (`# Safety`).
    unsafe {
        engine.enqueue_step(&without_fresh, plan, 0, None, stream.raw()).unwrap();
        engine.enqueue_transfer(plan, 1, None, stream.raw()).unwrap();
    }
    stream.synchronize(1000).unwrap();
    workload.fresh_rows_are_exact()
}

#[test]
fn a_gather_that_does_not_wait_for_the_append_is_wrong() {
    assert!(
        (0..12).all(|seed| gather_after_append(seed, true)),
        "with the event every row is exact"
    );
    let exact = (0..12).filter(|&seed| gather_after_append(seed, false)).count();
    assert!(exact < 12, "without the event some gather must run before its append");
}

/// Runs steps that read their fresh rows from device memory or from the pool, to which they are
/// only appended at the end of the step. Returns whether the fresh rows are exact.
fn read_fresh_rows(from_pool: bool) -> bool {
    let session = Session::new(Options { seed: 2, ..Options::default() });
    let context = simulated::context().unwrap();
    let stream = Stream::new(&context).unwrap();
    let mut workload = random_workload::with_rust_kernels(&session, &context, 7, false);
    let mut exact = true;
    for _ in 0..6 {
        workload.next_step();
        let batch = workload.pair.device_arrays.batch();
        if from_pool {
            // SAFETY: all memory is dropped after the stream was waited for.
            exact &= unsafe { gather_from_pool(&mut workload, &batch, &stream) };
        }
        workload.pair.enqueue(stream.raw()).unwrap();
        stream.synchronize(1000).unwrap();
        if !from_pool {
            exact &= workload.fresh_rows_are_exact();
        }
    }
    exact
}

#[test]
fn a_fresh_row_read_from_the_pool_is_wrong() {
    assert!(read_fresh_rows(false), "fresh rows in device memory are exact");
    assert!(!read_fresh_rows(true), "the pool does not contain the fresh rows yet");
}

/// The host sees appended rows after it has waited for their stream. Queueing the append or waiting
/// for another stream is not enough.
#[test]
fn appended_rows_are_in_the_pool_after_their_stream_was_waited_for() {
    let session = Session::new(Options { seed: 2, jitter: 0, ..Options::default() });
    let context = simulated::context().unwrap();
    let (stream, other) = (Stream::new(&context).unwrap(), Stream::new(&context).unwrap());
    let mut workload = random_workload::with_rust_kernels(&session, &context, 9, false);
    let pool_rows = |workload: &RandomWorkload| {
        let pool = workload.pair.ascend.pool();
        let mut rows = vec![[0; 48]; pool.rows()];
        for (at, row) in rows.iter_mut().enumerate() {
            pool.read_row(0, at, row).unwrap();
        }
        rows
    };
    let mut appended = 0;
    for _ in 0..20 {
        workload.next_step();
        let before = pool_rows(&workload);
        let (batch, rows) =
            (workload.pair.device_arrays.batch(), workload.pair.device_arrays.fresh(0));
        let fresh = DeviceFresh { segments: &rows };
        // SAFETY: all memory is dropped after the stream was waited for.
        unsafe { workload.pair.ascend.enqueue_append(&batch, 0, 0, &fresh, stream.raw()).unwrap() };
        other.synchronize(1000).unwrap();
        assert!(pool_rows(&workload) == before, "the append has not run yet");
        stream.synchronize(1000).unwrap();
        let changed =
            pool_rows(&workload).iter().zip(&before).filter(|(now, then)| now != then).count();
        assert_eq!(changed, workload.step_input().appended_rows(), "changed rows of the pool");
        appended += changed;
    }
    assert!(appended > 10, "{appended} rows");
}

#[test]
fn engines_on_four_threads_share_a_pool() {
    let session = Session::new(Options { seed: 6, ..Options::default() });
    let params = Params::wide(16, 1, 64);
    let config = Config { cores: 3, ..Config::new(params, 2) };
    let kernels = harness::install_kernels(&session, &config);
    let context = simulated::context().unwrap();
    let format = RowFormat::single(64).unwrap();
    let writer = fixture::pool(1, 512, format);
    std::thread::scope(|scope| {
        for thread in 0..4usize {
            let (writer, context, kernels) = (&writer, &context, kernels.clone());
            let config = config.clone();
            scope.spawn(move || {
                let export = writer.export().unwrap();
                let pool = HostPool::import(&export.desc, export.fd, Role::Reader).unwrap();
                let pool = RegisteredPool::new(context, pool).unwrap();
                let options = AscendOptions::new(context.clone()).with_kernels(kernels);
                let mut engine = Engine::on_ascend(config, pool, &options).unwrap();
                let mut plan = engine.new_plan(2, 2).unwrap();
                for step in 0..30 {
                    let ids: Vec<i32> =
                        (0..32).map(|i| ((i * 37 + step * 11 + thread * 5) % 512) as i32).collect();
                    let rows = ids.as_chunks::<16>().0;
                    let mut owned = OwnedBatch::new(16, 0);
                    owned.push([1, 1, -1, 512], &[rows[0].to_vec()]);
                    owned.push([0, 1, -1, 512], &[rows[1].to_vec()]);
                    engine.step(&owned.batch(), &mut plan, 0, None).unwrap();
                    let content = |_, id| (id, 0);
                    let exact = exact::check_step(&engine, &plan, &owned, 0, content);
                    assert_eq!(exact, 32, "thread {thread}");
                }
                drop(plan);
                engine.close().unwrap();
            });
        }
    });
    drop((writer, context));
    assert_eq!(session.leaks(), Vec::<String>::new());
}
