//! Faults of a disk below an engine. A call that fails names the row, no slot is wrong afterwards, and the
//! engine goes on as its error says.

use std::time::Duration;

use avsg::device::state::header;
use avsg::disk::Direction;
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::content::{check_row, fill_row};
use avsg_testkit::faulty_disk::Fault;
use avsg_testkit::fresh::FreshRows;

use super::{K, OF_LAYER, REQUESTS, ROWS, Server, batch, everywhere};
use crate::expect_error as expect;
use crate::faults::{EIO, ENOSPC, patiently};

/// What the error of a read names.
const PARTS: [&str; 3] = ["row ", "at byte ", "Input/output error"];

#[test]
fn a_transfer_that_failed_is_repeated_or_its_plan_is_discarded() {
    everywhere(|setting, layer| {
        let mut server = Server::new(setting, layer, &[]);
        server.step(&batch(0, layer)).unwrap();
        server.finish(&batch(0, layer));
        let fault = Fault::Errno(EIO);
        for (step, skip) in [(1, 0), (3, 5)] {
            let owned = batch(step, layer);
            // Every id misses.
            for state in 0..REQUESTS {
                server.engine.invalidate(state, 0..ROWS as i32).unwrap();
            }
            server.faults.set_nth(fault, Direction::Read, skip);
            expect(server.step(&owned), &PARTS);
            assert_eq!(server.plan.failures().count(), 0, "no request is left out");
            // The plan is known, and no later plan is transferred before it.
            let mut next = server.engine.new_plan(REQUESTS, REQUESTS).unwrap();
            let later = batch(step + 1, layer);
            let refused = server.engine.step(&later.batch(), &mut next, layer, None);
            expect(refused, &["lack the rows of plan"]);
            server.faults.set_nth(fault, Direction::Read, 2);
            expect(server.transfer(layer), &PARTS);
            assert_eq!(server.faults.hits(), 2);
            server.faults.clear();
            server.transfer(layer).unwrap();
            server.finish(&owned);
        }
        // The tables learned once from each plan.
        for state in 0..REQUESTS {
            let table = server.engine.read_table(OF_LAYER[layer], state).unwrap();
            assert_eq!(table[header::STEP as usize], 3);
        }
        // The ids that a plan missed which is discarded instead are missed again, and no others.
        let owned = batch(20, layer);
        for state in 0..REQUESTS / 2 {
            server.engine.invalidate(state, 0..ROWS as i32).unwrap();
        }
        server.faults.set_nth(fault, Direction::Read, 1);
        expect(server.step(&owned), &PARTS);
        server.faults.clear();
        let misses = server.plan.total_misses();
        server.engine.discard(&mut server.plan).unwrap();
        server.step(&owned).unwrap();
        assert!(server.plan.total_misses() == misses && misses > K);
        server.finish(&owned);
    });
}

/// A row of an append or a write that failed is not what it was before.
#[test]
fn each_row_whose_write_failed_is_new_or_reported() {
    everywhere(|setting, layer| {
        let errno = if setting.file.io_uring { EIO } else { ENOSPC };
        // More rows than the queue of writes holds.
        let mut setting = setting.clone();
        setting.file.queue_bytes = 1 << 16;
        let mut server = Server::new(&setting, layer, &[]);
        server.faults.set_all(Fault::Errno(errno), Direction::Write);
        let (mut row, mut refused) = (vec![0; setting.format().bytes()], 0);
        let mut check = |server: &Server, id: usize, version, failed: bool| {
            let Err(error) = server.engine.pool().read_row(layer, id, &mut row) else {
                return assert!(check_row(id as i32, version, &row));
            };
            assert!(failed, "row {id}: {error}");
            assert!(error.to_string().contains("its write refused"), "{error}");
            refused += 1;
        };
        for first in (0..ROWS - K).step_by(K) {
            let mut owned = OwnedBatch::new(K, 0);
            owned.push([0, 1, first as i32, (first + K) as i32], &vec![vec![-1; K]; K]);
            let mut fresh = FreshRows::new(&setting.format(), K);
            (0..K).for_each(|at| fresh.put(at, (first + at) as i32, 77));
            let failed = server.engine.append(&owned.batch(), &[layer], &fresh.segments()).is_err();
            (first..first + K).for_each(|id| check(&server, id, 77, failed));
            let mut bytes = vec![0; setting.format().bytes()];
            fill_row(first as i32, 78, &mut bytes);
            let failed = server.engine.pool().write_row(layer, first, &bytes).is_err();
            check(&server, first, 78, failed);
        }
        assert!(refused > 0);
    });
}

#[test]
fn a_wait_ends_at_the_time_limit_and_the_memory_is_not_used_before_the_disk_has_answered() {
    for (segments, layer) in super::FORMATS.into_iter().zip([1, 0]) {
        let mut setting = super::Setting::new(segments);
        setting.file.timeout = Duration::from_millis(60);
        let mut server = Server::new(&setting, layer, &[]);
        server.layers.sort_unstable();
        let (owned, layers) = (batch(1, layer), server.layers.clone());
        server.faults.set_all(Fault::Slow, Direction::Read);
        server.engine.plan(&owned.batch(), &mut server.plan).unwrap();
        server.engine.begin(&mut server.plan, &layers, None).unwrap();
        assert!(!server.engine.is_done(&server.plan).unwrap());
        expect(server.engine.wait(&mut server.plan), &["timed out"]);
        expect(server.engine.begin(&mut server.plan, &layers, None), &["earlier transfer"]);
        server.faults.clear();
        patiently(|| server.engine.transfer(&mut server.plan, &layers, None));
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
