//! The workers of the CPU device: threads that the library starts, threads of the caller, and
//! workers that several engines share.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use avsg::Error;
use avsg::copy::Copier;
use avsg::cpu::worker_pool::{Executor, Stage, WorkerConfig, WorkerPool};
use avsg::device::params::Params;
use avsg::engine::{Config, Engine};
use avsg::rows::RowFormat;
use avsg::system::cpus::{allowed_cpus, restrict_thread};
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::{exact, fixture};

const K: usize = 64;
const REQUESTS: usize = 8;

fn batch(step: usize) -> OwnedBatch {
    let mut owned = OwnedBatch::new(K, 0);
    for r in 0..REQUESTS {
        let id = |i: usize| ((step * 31 + r * 67 + i * 7) % 600) as i32;
        owned.push([r as i32, 1, -1, 600], &[(0..K).map(id).collect()]);
    }
    owned
}

/// Returns an engine on `workers`, each of whose steps is long enough to be shared among them.
fn engine(workers: &WorkerPool, cores: usize, copier: Option<Copier>) -> Engine {
    let pool = fixture::pool(1, 600, RowFormat::single(12_000).unwrap());
    let params = Params::wide(K as u32, 1, 128);
    let config = Config { cores, copier, ..Config::new(params, REQUESTS) };
    Engine::with_workers(config, pool, workers).unwrap()
}

/// Runs steps of an engine on `workers` and checks every row.
fn check_engine(workers: &WorkerPool, cores: usize, steps: usize) {
    let mut engine = engine(workers, cores, None);
    let mut plan = engine.new_plan(REQUESTS, REQUESTS).unwrap();
    for step in 0..steps {
        let owned = batch(step);
        engine.step(&owned.batch(), &mut plan, 0, None).unwrap();
        assert_eq!(exact::check_step(&engine, &plan, &owned, 0, |_, id| (id, 0)), REQUESTS * K);
    }
}

/// Launches both stages and checks that every piece ran once, and that none of stage two ran before
/// all of stage one.
fn check_launch(workers: &WorkerPool, pieces: [usize; 2]) {
    let runs: [Vec<AtomicUsize>; 2] = pieces.map(|n| (0..n).map(|_| AtomicUsize::new(0)).collect());
    let in_use: Vec<AtomicUsize> = (0..workers.threads()).map(|_| AtomicUsize::new(0)).collect();
    let run = |stage: usize, piece: usize, worker: usize| {
        assert_eq!(in_use[worker].fetch_add(1, Ordering::SeqCst), 0, "a worker runs one piece");
        if stage == 1 {
            assert!(runs[0].iter().all(|n| n.load(Ordering::SeqCst) == 1), "SyncAll");
        }
        runs[stage][piece].fetch_add(1, Ordering::SeqCst);
        in_use[worker].fetch_sub(1, Ordering::SeqCst);
    };
    let (one, two) = (|p: usize, w: usize| run(0, p, w), |p: usize, w: usize| run(1, p, w));
    let one = Stage { pieces: pieces[0], run: &one };
    let two = Stage { pieces: pieces[1], run: &two };
    workers.launch(u64::MAX, [Some(one), Some(two)], None).unwrap();
    assert!(runs.iter().flatten().all(|n| n.load(Ordering::SeqCst) == 1), "each piece once");
}

#[test]
fn every_piece_runs_once_and_stage_two_after_stage_one() {
    for threads in [1, 2, 3, 7] {
        for spin in [Duration::ZERO, Duration::from_micros(20)] {
            let config = WorkerConfig { spin, ..WorkerConfig::new(threads) };
            let workers = WorkerPool::new(&config).unwrap();
            for round in 0..60 {
                check_launch(&workers, [round % 9, (round * 5) % 13]);
            }
        }
    }
}

#[test]
fn engines_of_several_threads_share_workers() {
    let workers = WorkerPool::new(&WorkerConfig::new(3)).unwrap();
    thread::scope(|scope| {
        for cores in [1, 2, 5] {
            let workers = &workers;
            scope.spawn(move || check_engine(workers, cores, 20));
        }
    });
}

/// What an executor does with the calls that it is asked for.
#[derive(Clone, Copy, Debug)]
enum Calls {
    InOrder,
    AtOnce,
    /// Fewer calls than asked for; [`Calls::Repeated`] also repeats some.
    None,
    Repeated,
    /// One call, and a panic.
    Panic,
}

struct TestExecutor {
    calls: Calls,
    launches: AtomicUsize,
}

impl Executor for TestExecutor {
    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        self.launches.fetch_add(1, Ordering::Relaxed);
        match self.calls {
            Calls::InOrder => (0..count).for_each(task),
            Calls::AtOnce => thread::scope(|scope| {
                for index in 0..count {
                    scope.spawn(move || task(index));
                }
            }),
            Calls::None => {}
            Calls::Repeated => (0..3 * count).for_each(|_| task(0)),
            Calls::Panic => {
                task(0);
                panic!("on purpose");
            }
        }
    }
}

#[test]
fn an_engine_runs_on_the_threads_of_its_caller() {
    for calls in [Calls::InOrder, Calls::AtOnce, Calls::None, Calls::Repeated] {
        let executor = Arc::new(TestExecutor { calls, launches: AtomicUsize::new(0) });
        let config = WorkerConfig::new(4);
        let workers = WorkerPool::on_executor(&config, Arc::clone(&executor) as Arc<_>).unwrap();
        check_launch(&workers, [5, 9]);
        check_engine(&workers, 4, 6);
        assert!(executor.launches.load(Ordering::Relaxed) > 6, "{calls:?}: launches are passed on");
    }
}

#[test]
fn an_executor_that_panics_is_an_error() {
    let executor = TestExecutor { calls: Calls::Panic, launches: AtomicUsize::new(0) };
    let workers = WorkerPool::on_executor(&WorkerConfig::new(2), Arc::new(executor)).unwrap();
    let stage = Stage { pieces: 3, run: &|_, _| () };
    fn broken<T>(result: avsg::Result<T>) -> bool {
        matches!(result, Err(Error::Broken))
    }
    assert!(broken(workers.launch(u64::MAX, [Some(stage), None], None)));
    // The tables of an engine may be wrong after that, so that they are not used or copied.
    let mut engine = engine(&workers, 2, Some(Copier::Plain));
    let mut plan = engine.new_plan(REQUESTS, REQUESTS).unwrap();
    assert!(broken(engine.step(&batch(0).batch(), &mut plan, 0, None)));
    assert!(broken(engine.step(&batch(0).batch(), &mut plan, 0, None)));
    assert!(broken(engine.invalidate(0, 0..600)));
    assert!(broken(engine.fork(0, 1, &[1], &[2])));
}

#[test]
fn a_piece_that_panics_is_an_error_and_the_workers_go_on() {
    let workers = WorkerPool::new(&WorkerConfig::new(3)).unwrap();
    for round in 0..20 {
        let ran = AtomicUsize::new(0);
        let one = Stage {
            pieces: 6,
            run: &|piece, _| {
                ran.fetch_add(1, Ordering::SeqCst);
                assert!(piece != round % 6, "on purpose");
            },
        };
        let two = Stage { pieces: 6, run: &|_, _| panic!("stage two must not run") };
        let result = workers.launch(u64::MAX, [Some(one), Some(two)], None);
        assert!(matches!(result, Err(Error::Broken)), "{result:?}");
        assert_eq!(ran.into_inner(), 6, "SyncAll waits for the pieces of stage one");
        check_launch(&workers, [4, 4]);
    }
}

#[test]
fn two_pools_are_never_pinned_to_one_cpu() {
    let cpus = allowed_cpus();
    if cpus.len() < 2 {
        eprintln!("skipped: this process has one CPU");
        return;
    }
    let one = WorkerConfig { cpus: vec![cpus[1]], pin: true, ..WorkerConfig::new(2) };
    let first = WorkerPool::new(&one).unwrap();
    let refused = WorkerPool::new(&one).map(drop).unwrap_err().to_string();
    assert!(refused.contains("0 of the CPUs") && refused.contains("share one"), "{refused}");
    check_launch(&first, [7, 7]);
    check_launch(&first.clone(), [7, 7]);
    // The CPU is free once the last clone is dropped.
    drop(first);
    let again = WorkerPool::new(&one).unwrap();
    // An engine of its own does not pin its threads, so that it never takes a pinned CPU.
    let pool = fixture::pool(1, 64, RowFormat::single(8).unwrap());
    drop(fixture::engine(Params::wide(4, 1, 64), 1, cpus.len(), pool));
    drop(again);
}

#[test]
fn started_threads_stay_on_the_cpus_of_their_configuration() {
    let cpus = allowed_cpus();
    let only = cpus[cpus.len() - 1];
    let config = WorkerConfig { cpus: vec![only], ..WorkerConfig::new(3) };
    let workers = WorkerPool::new(&config).unwrap();
    let seen = Mutex::new(Vec::new());
    // Another CPU set of the caller's thread must not matter once the threads are started.
    thread::scope(|scope| {
        scope.spawn(|| {
            restrict_thread([cpus[0]]).unwrap();
            let look = |_: usize, worker: usize| {
                if worker > 0 {
                    seen.lock().unwrap().push(allowed_cpus());
                }
                thread::sleep(Duration::from_millis(1));
            };
            workers.launch(u64::MAX, [Some(Stage { pieces: 30, run: &look }), None], None).unwrap();
        });
    });
    let seen = seen.into_inner().unwrap();
    assert!(!seen.is_empty() && seen.iter().all(|cpus| *cpus == [only]), "{seen:?}");
}
