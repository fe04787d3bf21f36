//! A forked child that uses or drops the engine and the pool of its parent through the Rust API.

use std::time::Duration;

use avsg::Error;
use avsg::cpu::worker_pool::{WorkerConfig, WorkerPool};
use avsg::device::params::Params;
use avsg::disk::{Direction, PoolFile, Reader};
use avsg::engine::{Batch, Config, Engine, Indexers};
use avsg::plan::Plan;
use avsg::pool::{HostPool, PoolConfig};
use avsg::rows::RowFormat;

use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::content::check_row;
use avsg_testkit::faulty_disk::{Fault, Faults};
use avsg_testkit::scratch::{Scratch, adapted};
use avsg_testkit::{alone, exact, fixture, in_child};

fn forked<T>(result: avsg::Result<T>) -> bool {
    matches!(result, Err(Error::Forked { .. }))
}

/// Returns the step of one request that selects four of 64 rows.
fn batch() -> OwnedBatch {
    let mut owned = OwnedBatch::new(4, 0);
    owned.push([0, 1, -1, 64], &[vec![3, 9, 27, 60]]);
    owned
}

/// Checks the rows of that step.
fn check(engine: &Engine, plan: &Plan) {
    assert_eq!(exact::check_step(engine, plan, &batch(), 0, |_, id| (id, 0)), 4);
}

/// Returns the configuration of a pool of 64 rows in a kept file, which is made and filled.
fn kept_pool(folder: &Scratch) -> PoolConfig {
    let file = adapted(PoolFile { keep: true, ..PoolFile::new(folder.file("rows")) });
    let config = PoolConfig::new(1, 64, RowFormat::single(16).unwrap());
    let config = PoolConfig { file: Some(file), ..config };
    let pool = HostPool::new(&config).unwrap();
    fixture::fill(&pool, 64, |_, row| (row as i32, 0));
    pool.flush().unwrap();
    config
}

/// That a child can import the pool and make an engine of its own is checked by `bindings/c/tests/alone/fork.rs`.
#[test]
fn a_child_is_refused_and_may_drop_what_it_inherited() {
    let _turn = alone::turn();
    let folder = Scratch::new();
    let config = kept_pool(&folder);
    let memory = fixture::pool(1, 64, RowFormat::single(16).unwrap());
    let pool = HostPool::open(&config).unwrap();
    let mut reader = Reader::new(pool.store().unwrap(), 4).unwrap();
    let workers = WorkerPool::new(&WorkerConfig::new(3)).unwrap();
    let of_engine = Config { cores: 3, ..Config::new(Params::wide(4, 1, 64), 2) };
    let mut engine = Engine::with_workers(of_engine, pool, &workers).unwrap();
    let mut plan = engine.new_plan(1, 1).unwrap();
    let owned = batch();
    engine.step(&owned.batch(), &mut plan, 0, None).unwrap();
    check(&engine, &plan);
    let child = move || {
        // Without ids, so that only the check of the process can refuse it.
        let load = Batch { state: &[1], generation: &[1], seq_len: &[64], ..Batch::default() };
        let mut all = forked(engine.step(&owned.batch(), &mut plan, 0, None))
            && forked(engine.transfer(&mut plan, &[0], None))
            && forked(engine.begin(&mut plan, &[0], None))
            && forked(engine.wait(&mut plan))
            && forked(engine.is_done(&plan))
            && forked(engine.new_plan(1, 1))
            && forked(engine.read_table(0, 0).map(|_| ()))
            && forked(engine.invalidate(0, 3..4))
            && forked(engine.load(&load, &mut plan))
            && forked(engine.fork(0, 1, &[1], &[1]))
            && forked(engine.pool().flush())
            && forked(reader.run(&mut |_| {}))
            && forked(memory.export())
            && forked(memory.view(0, 0))
            && forked(workers.launch(u64::MAX, [None, None], None));
        for pool in [&memory, engine.pool()] {
            all &= forked(pool.write_row(0, 3, &[7; 16]));
            all &= forked(pool.read_row(0, 3, &mut [7; 16]));
        }
        // The threads of the dropped workers do not exist here.
        drop((engine, plan, reader, memory, workers));
        all
    };
    in_child!(child);
    // The parent's pool is the one that `child` owns. It gives the file back, which the child did not.
    assert!(HostPool::open(&config).is_err());
    drop(child);
    let pool = HostPool::open(&config).unwrap();
    let mut read = [0; 16];
    pool.read_row(0, 63, &mut read).unwrap();
    assert!(check_row(63, 0, &read));
}

/// A kill leaves some of the writes of a process, as a loss of power does (`tests/disk/crash.rs`). It also ends the lock.
#[test]
fn the_file_of_a_process_that_ended_during_its_writes_opens_with_whole_rows() {
    let _turn = alone::turn();
    let folder = Scratch::new();
    let config = kept_pool(&folder);
    in_child!(|| {
        let pool = HostPool::open(&config).unwrap();
        (0..64).for_each(|row| pool.write_row(0, row, &[7; 16]).unwrap());
        // Nothing is waited for.
        std::mem::forget(pool);
        true
    });
    let pool = HostPool::open(&config).unwrap();
    for row in 0..64 {
        let mut read = [0; 16];
        let whole = pool.read_row(0, row, &mut read).is_ok();
        assert!(!whole || read == [7; 16] || check_row(row as i32, 0, &read), "row {row}");
    }
}

#[test]
fn a_forked_child_may_drop_an_engine_with_reads_under_way() {
    let _turn = alone::turn();
    let folder = Scratch::new();
    // The file is made and filled with a longer limit.
    let mut config = kept_pool(&folder);
    config.file.as_mut().unwrap().timeout = Duration::from_millis(300);
    let faults = Faults::default();
    let pool = HostPool::in_file(&config, false, &|disk| faults.wrap(disk)).unwrap();
    let mut engine = fixture::engine(Params::wide(4, 1, 64), 1, 1, pool);
    let mut plan = engine.new_plan(1, 1).unwrap();
    faults.set_all(Fault::Slow, Direction::Read);
    let late = engine.step(&batch().batch(), &mut plan, 0, None).unwrap_err().to_string();
    assert!(late.contains("timed out"), "{late}");
    let inherited = (engine, plan);
    in_child!(move || {
        drop(inherited);
        true
    });
    faults.clear();
    let (mut engine, mut plan) = inherited;
    // A machine with other work may exceed the limit.
    let transferred = (0..1000).find_map(|_| engine.transfer(&mut plan, &[0], None).ok());
    transferred.expect("an end of the waits");
    check(&engine, &plan);
}

/// Returns the bytes of this process that a child does not get.
fn bytes_without_a_fork() -> usize {
    let (mut size, mut sum) = (0, 0);
    for line in std::fs::read_to_string("/proc/self/smaps").unwrap().lines() {
        if let Some(kib) = line.strip_prefix("Size:") {
            size = kib.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10;
        } else if line.strip_prefix("VmFlags:").is_some_and(|all| all.contains(" dc")) {
            sum += size;
        }
    }
    sum
}

#[test]
fn a_child_that_is_forked_during_reads_has_not_their_memory_and_the_parent_gets_all_rows() {
    let _turn = alone::turn();
    let folder = Scratch::new();
    let indexers = [Indexers::default(), Indexers::of_layers(&[0, 1]).unwrap()];
    for (io_uring, indexers) in [true, false].into_iter().zip(indexers) {
        let file = adapted(PoolFile { io_uring, ..PoolFile::new(folder.path()) });
        let config = PoolConfig::new(2, 1024, RowFormat::single(1000).unwrap());
        let pool = PoolConfig { file: Some(file), indexers: indexers.clone(), ..config };
        let before = bytes_without_a_fork();
        let pool = HostPool::new(&pool).unwrap();
        let queue = bytes_without_a_fork() - before;
        assert!(queue >= pool.bytes(), "{queue} bytes of the queue of writes");
        fixture::fill(&pool, 1024, |_, row| (row as i32, 0));
        pool.flush().unwrap();
        let before = bytes_without_a_fork();
        let config = Config { indexers, ..Config::new(Params::wide(256, 1, 512), 1) };
        let mut engine = Engine::new(Config { cores: 3, ..config }, pool).unwrap();
        let mut plan = engine.new_plan(1, 1).unwrap();
        let more = bytes_without_a_fork() - before;
        assert!(more >= 512 << 10, "{more} bytes are read into that a child gets");
        for step in 0..8 {
            let mut owned = OwnedBatch::new(256, 0);
            let ids = (0..256).map(|n| (n * 7 + step * 131) % 1024).collect();
            owned.push([0, step, -1, 1024], &[ids]);
            engine.plan(&owned.batch(), &mut plan).unwrap();
            engine.begin(&mut plan, &[0], None).unwrap();
            in_child!(move || {
                let refused = forked(engine.wait(&mut plan));
                drop((engine, plan));
                refused
            });
            engine.wait(&mut plan).unwrap();
            assert_eq!(exact::check_step(&engine, &plan, &owned, 0, |_, id| (id, 0)), 256);
        }
    }
}
