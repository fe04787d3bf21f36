//! Transfers that are under way: workers copy or a disk reads, and each is exact after its wait. That plans and engines are
//! dropped meanwhile is checked by `bindings/c/tests`.

use std::sync::Arc;

use avsg::cpu::worker_pool::{WorkerConfig, WorkerPool};
use avsg::device::params::Params;
use avsg::disk::PoolFile;
use avsg::engine::{Batch, Config, Engine, Indexers};
use avsg::rows::{RowFormat, Segment};
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::fresh::FreshRows;
use avsg_testkit::scratch::Scratch;
use avsg_testkit::splitmix::SplitMix64;
use avsg_testkit::{exact, fixture};

const K: usize = 128;
const ROWS: usize = 1024;
const GROUPS: usize = 3;

/// Returns a batch of two requests with states of their own, whose last id is a fresh row.
fn batch(random: &mut SplitMix64, group: usize) -> OwnedBatch {
    let mut owned = OwnedBatch::new(K, 0);
    for state in [2 * group, 2 * group + 1] {
        let mut ids: Vec<i32> =
            (0..K).map(|_| (random.word() % (ROWS as u64 - 1)) as i32).collect();
        ids[K - 1] = ROWS as i32 - 1;
        owned.push([state as i32, 1, ROWS as i32 - 1, ROWS as i32], &[ids]);
    }
    owned
}

fn check(engine: &Engine, plan: &avsg::plan::Plan, owned: &OwnedBatch) {
    for layer in 0..2 {
        let version = |id| if id == ROWS as i32 - 1 { 9 } else { layer as u32 };
        let rows = exact::check_step(engine, plan, owned, layer, |_, id| (id, version(id)));
        assert_eq!(rows, 2 * K);
    }
}

#[test]
fn several_plans_that_are_under_way_are_exact_after_their_waits_in_any_order() {
    let (mut random, folder) = (SplitMix64::new(5), Scratch::new());
    // Rows of a file that are read through a bounce buffer, and ones that are read into slots.
    let memory = [Segment { bytes: 1024, stride: 1024 }, Segment { bytes: 128, stride: 128 }];
    let slots = [Segment { bytes: 1000, stride: 1024 }];
    for (threads, segments, io_uring) in [
        (1, &memory[..], None),
        (2, &memory, None),
        (4, &memory, None),
        (2, &memory, Some(true)),
        (1, &slots, Some(true)),
        (3, &slots, Some(false)),
    ] {
        let format = RowFormat::strided(segments).unwrap();
        let workers = WorkerPool::new(&WorkerConfig::new(threads)).unwrap();
        let config = Config { cores: 3, ..Config::new(Params::wide(K as u32, 1, 256), 2 * GROUPS) };
        let config = Config { under_way: GROUPS, ..config };
        let pool = fixture::pool(2, ROWS, format.clone());
        let in_file = io_uring.map(|io_uring| {
            let file = PoolFile { io_uring, ..PoolFile::new(folder.path()) };
            let pool = fixture::in_file(&pool, &Indexers::default(), file);
            // Rows in the queue of writes would not be read from the disk.
            pool.flush().unwrap();
            pool
        });
        let pool = Arc::new(in_file.unwrap_or(pool));
        let mut engine = Engine::with_workers(config, pool, &workers).unwrap();
        let mut plans: Vec<_> = (0..GROUPS).map(|_| engine.new_plan(2, 2).unwrap()).collect();
        for step in 0..30 {
            let owned: Vec<_> = (0..GROUPS).map(|group| batch(&mut random, group)).collect();
            for (plan, owned) in plans.iter_mut().zip(&owned) {
                // The workers may still copy the rows of the plan before.
                engine.plan(&owned.batch(), plan).unwrap();
                let mut fresh = FreshRows::new(&format, 2);
                (0..2).for_each(|token| fresh.put(token, ROWS as i32 - 1, 9));
                let segments = fresh.segments().repeat(2);
                // The fresh rows are gone when the transfer is waited for.
                engine.begin(plan, &[0, 1], Some(&segments)).unwrap();
            }
            let refused = engine.invalidate(0, 0..1);
            assert!(refused.is_ok(), "a change of a table alone may come meanwhile");
            let mut one_more = engine.new_plan(2, 2).unwrap();
            let error = engine.plan(&owned[1].batch(), &mut one_more).unwrap_err().to_string();
            assert!(error.contains("state is 2") && error.contains("under way"), "{error}");
            let wrong = Batch { k: K + 1, ..owned[0].batch() };
            assert!(engine.plan(&wrong, &mut plans[0]).is_err());
            let error = engine.fork(0, 0, &[1], &[0]).unwrap_err().to_string();
            assert!(error.contains("under way"), "a refused plan ends no transfer: {error}");
            for n in [step, step + 1, step + 2].map(|n| n % GROUPS) {
                while step % 4 == 0 && threads > 1 && !engine.is_done(&plans[n]).unwrap() {}
                engine.wait(&mut plans[n]).unwrap();
                check(&engine, &plans[n], &owned[n]);
            }
        }
    }
}
