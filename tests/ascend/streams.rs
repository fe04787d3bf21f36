//! The device arrays' side of the Ascend device: the caller's streams, captured work, threads; and
//! that what is not ordered goes wrong.

use avsg::ascend::acl::owned::{DeviceMemory, Event, Stream};
use avsg::ascend::{AscendOptions, RegisteredPool};
use avsg::device::params::Params;
use avsg::engine::{Config, DeviceArray, DeviceBatch, DeviceFresh, Engine};
use avsg::pool::{HostPool, Role};
use avsg::rows::RowFormat;
use avsg_sim::{Options, Session};
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::{exact, fixture};

use crate::random::{Random, form, workload};
use crate::stand;

#[test]
fn steps_in_a_callers_stream_are_the_cpus() {
    for one_launch in [false, true] {
        let session = Session::new(Options { seed: 3, ..Options::default() });
        let context = stand::context().unwrap();
        let stream = Stream::new(&context).unwrap();
        let mut workload = workload(&session, &context, 11, one_launch);
        for _ in 0..40 {
            workload.next();
            workload.pair.enqueue(stream.raw()).unwrap();
            stream.synchronize(1000).unwrap();
            workload.compare();
        }
        assert!(workload.pair.compared > 10_000);
        drop((workload, stream, context));
        assert_eq!(session.leaks(), Vec::<String>::new());
    }
}

/// One captured graph, replayed over a random workload: joins, leaves, permuted states, padded requests,
/// any number of tokens, bad ids, rows of the step itself.
#[test]
fn one_captured_step_is_replayed_over_a_life() {
    for one_launch in [false, true] {
        let session = Session::new(Options { seed: 4, ..Options::default() });
        let context = stand::context().unwrap();
        let stream = Stream::new(&context).unwrap();
        let mut workload = workload(&session, &context, 12, one_launch);
        let before = session.launches();
        let graph = stream.capture(|| workload.pair.enqueue(stream.raw())).unwrap();
        assert_eq!(session.launches(), before, "captured work does not run");
        for _ in 0..60 {
            workload.next();
            let before = session.calls().len();
            stream.replay(&graph).unwrap();
            let calls = session.calls()[before..].to_vec();
            let own = ["aclrtGetCurrentContext", "aclmdlRIExecuteAsync"];
            assert!(calls.iter().all(|call| own.contains(call)), "no host work: {calls:?}");
            stream.synchronize(1000).unwrap();
            workload.compare();
        }
        assert!(workload.pair.compared > 10_000);
        drop((graph, workload, stream, context));
        assert_eq!(session.leaks(), Vec::<String>::new());
    }
}

/// The same with the kernels that are shipped.
#[test]
fn emitted_kernels_are_captured_and_replayed() {
    if !stand::compiler() {
        return;
    }
    for one_launch in [false, true] {
        let _session = Session::new(Options { seed: 8, ..Options::default() });
        let context = stand::context().unwrap();
        let stream = Stream::new(&context).unwrap();
        let form = form(5, one_launch);
        let mut workload = Random::new(&form, &context, None, 21);
        let graph = stream.capture(|| workload.pair.enqueue(stream.raw())).unwrap();
        for _ in 0..12 {
            workload.next();
            stream.replay(&graph).unwrap();
            stream.synchronize(60_000).unwrap();
            workload.compare();
        }
    }
}

/// What a step in a stream calls: arguments and launches, nothing that waits or allocates.
#[test]
fn a_queued_step_neither_waits_nor_allocates() {
    let session = Session::new(Options::default());
    let context = stand::context().unwrap();
    let stream = Stream::new(&context).unwrap();
    let mut workload = workload(&session, &context, 13, false);
    for _ in 0..3 {
        workload.next();
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

/// Appends step n in one stream and gathers step n + 1 in another; returns whether the gathered rows are right.
fn handed_over(seed: u64, event_between: bool) -> bool {
    let session = Session::new(Options { seed, jitter: 0, ..Options::default() });
    let context = stand::context().unwrap();
    let (appends, gathers) = (Stream::new(&context).unwrap(), Stream::new(&context).unwrap());
    let done = Event::sync(&context).unwrap();
    let mut workload = workload(&session, &context, 7, false);
    let mut right = true;
    for _ in 0..6 {
        workload.next();
        let batch = workload.pair.device.batch();
        let rows = [0, 1].map(|layer| workload.pair.device.fresh(layer));
        // SAFETY: everything lives until the streams are waited for.
        unsafe {
            for (layer, rows) in rows.iter().enumerate() {
                let fresh = DeviceFresh { segments: rows };
                workload.pair.ascend.enqueue_append(&batch, layer, &fresh, appends.raw()).unwrap();
            }
            if event_between {
                done.record(appends.raw()).unwrap();
                gathers.wait(&done).unwrap();
            }
            // No fresh rows are given: the gather has to find them in the pool.
            right &= gather_right(&mut workload, &batch, &gathers);
        }
        appends.synchronize(1000).unwrap();
    }
    right
}

/// Steps without fresh rows and compares the rows of this step with what was appended.
///
/// # Safety
/// As for [`Engine::enqueue_step`].
unsafe fn gather_right(workload: &mut Random, batch: &DeviceBatch, stream: &Stream) -> bool {
    // stable_len -1: every row is the pool's.
    let none = DeviceMemory::new(&stand::context().unwrap(), 16).unwrap();
    none.write(0, &[0xFF; 16]).unwrap();
    let stable_len = DeviceArray { address: none.address(), len: none.len() / 4 };
    let all = DeviceBatch { stable_len, ..*batch };
    let (engine, plan) = (&mut workload.pair.ascend, &mut workload.pair.ascend_plan);
    // SAFETY: the contract.
    unsafe {
        engine.enqueue_step(&all, plan, 0, None, stream.raw()).unwrap();
        engine.enqueue_transfer(plan, 1, None, stream.raw()).unwrap();
    }
    stream.synchronize(1000).unwrap();
    workload.fresh_rows_arrived()
}

#[test]
fn a_gather_before_its_append_arrives_is_wrong() {
    assert!((0..12).all(|seed| handed_over(seed, true)), "ordered, every row is right");
    let right = (0..12).filter(|&seed| handed_over(seed, false)).count();
    assert!(right < 12, "without the event some gather must come too early");
}

/// Steps whose own rows are read from where this step's rows are, or from the host pool, where they
/// only come when the step is over. Says whether they came right.
fn read_from(pool: bool) -> bool {
    let session = Session::new(Options { seed: 2, ..Options::default() });
    let context = stand::context().unwrap();
    let stream = Stream::new(&context).unwrap();
    let mut workload = workload(&session, &context, 7, false);
    let mut right = true;
    for _ in 0..6 {
        workload.next();
        let batch = workload.pair.device.batch();
        if pool {
            // SAFETY: everything lives until the stream is waited for, here and below.
            right &= unsafe { gather_right(&mut workload, &batch, &stream) };
        }
        workload.pair.enqueue(stream.raw()).unwrap();
        stream.synchronize(1000).unwrap();
        if !pool {
            right &= workload.fresh_rows_arrived();
        }
    }
    right
}

#[test]
fn a_fresh_row_read_from_the_pool_is_wrong() {
    assert!(read_from(false), "from the device, every row is right");
    assert!(!read_from(true), "the pool does not have them yet");
}

/// What a kernel writes to the pool, the host sees when its stream has come so far: not when it is
/// queued, and not when another stream is waited for.
#[test]
fn appended_rows_are_there_when_their_stream_is() {
    let session = Session::new(Options { seed: 2, jitter: 0, ..Options::default() });
    let context = stand::context().unwrap();
    let (stream, other) = (Stream::new(&context).unwrap(), Stream::new(&context).unwrap());
    let mut workload = workload(&session, &context, 9, false);
    let pool = |workload: &Random| {
        let pool = workload.pair.ascend.pool();
        let mut rows = vec![[0; 48]; pool.rows()];
        for (at, row) in rows.iter_mut().enumerate() {
            pool.read_row(0, at, row).unwrap();
        }
        rows
    };
    let mut appended = 0;
    for _ in 0..20 {
        workload.next();
        let before = pool(&workload);
        let (batch, rows) = (workload.pair.device.batch(), workload.pair.device.fresh(0));
        let fresh = DeviceFresh { segments: &rows };
        // SAFETY: everything lives until the stream is waited for.
        unsafe { workload.pair.ascend.enqueue_append(&batch, 0, &fresh, stream.raw()).unwrap() };
        other.synchronize(1000).unwrap();
        assert!(pool(&workload) == before, "it is only queued");
        stream.synchronize(1000).unwrap();
        let changed = pool(&workload).iter().zip(&before).filter(|(now, then)| now != then).count();
        assert_eq!(changed, workload.turn().appended_rows(), "each row of the step, and no other");
        appended += changed;
    }
    assert!(appended > 10, "{appended} rows");
}

/// Four threads with an engine each, over one shared pool.
#[test]
fn four_threads_share_a_pool() {
    let session = Session::new(Options { seed: 6, ..Options::default() });
    let params = Params::wide(16, 1, 64);
    let config = Config { cores: 3, ..Config::new(params, 2) };
    let kernels = stand::kernels(&session, &config);
    let context = stand::context().unwrap();
    let format = RowFormat::single(64).unwrap();
    let writer = fixture::pool(1, 512, format);
    std::thread::scope(|scope| {
        for thread in 0..4usize {
            let (writer, context, kernels) = (&writer, &context, kernels.clone());
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
