//! Transfers over a file that are under way: what may be called meanwhile, and what ends them.

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
        let pool = HostPool::new_through(&setting.in_file(), &|disk| faults.wrap(disk)).unwrap();
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
fn what_is_under_way_blocks_its_states_and_ends_before_its_plan_is_given_up() {
    everywhere(|setting, layer| {
        let mut server = Server::new(setting, layer, &[]);
        server.layers.sort_unstable();
        let Server { engine, plan, layers, .. } = &mut server;
        let mut other = engine.new_plan(REQUESTS, REQUESTS).unwrap();
        for (step, way) in (0..8).zip([0, 1, 2, 3].into_iter().cycle()) {
            let owned = batch(2 * step, layer);
            engine.plan(&owned.batch(), plan).unwrap();
            engine.begin(plan, layers, None).unwrap();
            let next = batch(2 * step + 1, layer);
            let under_way = &["is under way", "wait for"];
            expect(engine.plan(&next.batch(), &mut other), under_way);
            expect(engine.step(&next.batch(), &mut other, layers[0], None), under_way);
            expect(engine.begin(plan, layers, None), under_way);
            expect(engine.fork(0, 1, 1, 2), under_way);
            match way {
                0 => engine.wait(plan).unwrap(),
                // The next batch takes its place in the plan.
                1 => {}
                2 => engine.discard(plan).unwrap(),
                _ => *plan = engine.new_plan(REQUESTS, REQUESTS).unwrap(),
            }
            engine.plan(&next.batch(), plan).unwrap();
            engine.transfer_layers(plan, layers, None).unwrap();
            for &layer in &*layers {
                let rows =
                    exact::check_step(engine, plan, &next, layer, |_, id| (id, layer as u32));
                assert_eq!(rows, REQUESTS * K);
            }
        }
        // An engine is dropped before the plan.
        engine.plan(&batch(20, layer).batch(), plan).unwrap();
        engine.begin(plan, layers, None).unwrap();
    });
}

#[test]
fn a_damaged_row_costs_its_request_when_the_transfer_is_waited_for() {
    everywhere(|setting, layer| {
        let mut server = Server::new(setting, layer, &[]);
        let owned = batch(1, layer);
        let row = super::id(1, 3, 5) as usize;
        server.damage(layer, row);
        server.engine.plan(&owned.batch(), &mut server.plan).unwrap();
        server.engine.begin(&mut server.plan, &server.layers[..1], None).unwrap();
        let lost = server.engine.wait(&mut server.plan).unwrap_err();
        assert!(matches!(lost, Error::LostRows { requests: 1, .. }), "{lost}");
        let failed: Vec<_> = server.plan.failures().collect();
        assert_eq!([failed[0].request, failed[0].layer, failed[0].row], [3, layer, row]);
        assert!(failed.len() == 1 && failed[0].is_new);
        server.check(&server.plan, &owned, layer);
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
        super::patiently(|| server.engine.transfer_layers(&mut server.plan, &layers, None));
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
