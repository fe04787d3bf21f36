//! Transfers over a file that are under way. What may be called meanwhile, and what ends them, is checked by the random
//! calls of `bindings/c/tests/fuzz`.

use std::time::Duration;

use avsg::Error;
use avsg::disk::Direction;
use avsg::engine::{Config, Engine};
use avsg::pool::HostPool;
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::exact;
use avsg_testkit::faulty_disk::{Fault, Faults};

use super::{FORMATS, K, OF_LAYER, REQUESTS, ROWS, Server, Setting, batch, everywhere, fill};
use crate::expect_error as expect;

/// Returns a batch of two requests, the `group`-th pair of states.
fn of_group(group: usize, step: usize, layer: usize) -> OwnedBatch {
    let mut owned = OwnedBatch { indexer: OF_LAYER[layer], ..OwnedBatch::new(K, 0) };
    for request in [2 * group, 2 * group + 1] {
        let ids = (0..K).map(|lane| super::id(step, request, lane)).collect();
        owned.push([request as i32, 1, -1, ROWS as i32], &[ids]);
    }
    owned
}

#[test]
fn the_disk_reads_while_several_plans_are_under_way_and_each_is_exact_after_its_wait() {
    everywhere(|setting, layer| {
        let faults = Faults::default();
        let pool = HostPool::in_file(&setting.in_file(), true, &|disk| faults.wrap(disk)).unwrap();
        fill(&pool);
        pool.flush().unwrap();
        let config = Config { states: REQUESTS, under_way: 2, ..setting.config() };
        let mut engine = Engine::new(config, pool).unwrap();
        let mut plans: Vec<_> = (0..3).map(|_| engine.new_plan(2, 2).unwrap()).collect();
        let layers: Vec<_> =
            (0..OF_LAYER.len()).filter(|&other| OF_LAYER[other] == OF_LAYER[layer]).collect();
        for step in 0..6 {
            let owned: Vec<_> = (0..3).map(|group| of_group(group, step, layer)).collect();
            (0..REQUESTS).for_each(|state| drop(engine.invalidate(state, 0..ROWS as i32)));
            for (plan, owned) in plans.iter_mut().zip(&owned) {
                engine.plan(&owned.batch(), plan).unwrap();
            }
            let slow = setting.file.io_uring;
            if slow {
                faults.set_all(Fault::Slow, Direction::Read);
            }
            let counted = engine.stats().transfers;
            for plan in &mut plans[..2] {
                engine.begin(plan, &layers, None).unwrap();
                assert!(!slow || !engine.is_done(plan).unwrap());
            }
            let busy = engine.begin(&mut plans[2], &layers, None).unwrap_err();
            assert!(matches!(busy, Error::Busy { under_way: 2 }), "{busy}");
            assert_eq!(engine.stats().transfers, counted);
            faults.clear();
            let first = step % 2;
            for n in [first, 1 - first, 2] {
                if n == 2 {
                    engine.begin(&mut plans[2], &layers, None).unwrap();
                }
                while n != first && !engine.is_done(&plans[n]).unwrap() {}
                engine.wait(&mut plans[n]).unwrap();
                for &layer in &layers {
                    let content = |_, id| (id, layer as u32);
                    let rows = exact::check_step(&engine, &plans[n], &owned[n], layer, content);
                    assert_eq!(rows, 2 * K);
                }
            }
            expect(engine.wait(&mut plans[0]), &["no transfer of it is under way"]);
        }
    });
}

#[test]
fn a_wait_ends_at_the_time_limit_and_the_memory_is_not_used_before_the_disk_has_answered() {
    for (segments, layer) in FORMATS.into_iter().zip([1, 0]) {
        let soon = Duration::from_millis(60);
        let mut server = Server::with_limit(Setting::new(segments), layer, soon);
        server.layers.sort_unstable();
        let (owned, layers) = (batch(1, layer), server.layers.clone());
        server.faults.set_all(Fault::Slow, Direction::Read);
        server.engine.plan(&owned.batch(), &mut server.plan).unwrap();
        server.engine.begin(&mut server.plan, &layers, None).unwrap();
        expect(server.engine.wait(&mut server.plan), &["timed out"]);
        expect(server.engine.begin(&mut server.plan, &layers, None), &["earlier transfer"]);
        server.faults.clear();
        super::patiently(|| server.engine.transfer(&mut server.plan, &layers, None));
        server.finish(&owned);
        // Engine and plan are dropped while the disk still reads into their memory.
        server.faults.set_all(Fault::Slow, Direction::Read);
        server.engine.plan(&batch(2, layer).batch(), &mut server.plan).unwrap();
        server.engine.begin(&mut server.plan, &layers, None).unwrap();
        let Server { engine, plan, .. } = server;
        drop(plan);
        drop(engine);
    }
}
