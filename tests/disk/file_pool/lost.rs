//! Rows of a file that are not whole cost the requests that miss them, and no other. That rows which were never written do
//! so, and that the first layer of a call is named, is checked by the random calls of `bindings/c/tests/fuzz`.

use std::fs::OpenOptions;
use std::sync::Arc;

use avsg::disk::Direction;
use avsg::engine::Batch;
use avsg::plan::{Failure, Plan};
use avsg::{Error, Result};
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::faulty_disk::Fault;

use super::{K, OF_LAYER, REQUESTS, ROWS, Server, batch, everywhere, id, slots_of, write};
use crate::faults::EIO;

/// A layer, and the requests that are left out because of a row of it, each with the row.
type Lost<'a> = (usize, &'a [(usize, usize)]);

const NONE: Lost<'_> = (0, &[]);

impl Server {
    /// Asserts that a call on the plan left out these requests because of rows of a layer, and that the layer has
    /// every row of all others.
    #[track_caller]
    fn expect(&self, called: Result<()>, owned: &OwnedBatch, layer: usize, lost: Lost<'_>) {
        expect_lost(called, &self.plan, lost);
        self.check(&self.plan, owned, layer);
    }

    /// Steps with a batch, which loses these requests.
    #[track_caller]
    fn step_and_lose(&mut self, owned: &OwnedBatch, lost: Lost<'_>) {
        let called = self.step(owned);
        self.expect(called, owned, self.layers[0], lost);
    }

    /// Transfers the plan to the other layers.
    fn transfer_others(&mut self) {
        for at in 1..self.layers.len() {
            self.transfer(self.layers[at]).unwrap();
        }
    }
}

/// Asserts that a call on a plan left out these requests.
#[track_caller]
fn expect_lost(called: Result<()>, plan: &Plan, (layer, lost): Lost<'_>) {
    let found = plan.failures().map(|f| (f.request, f.layer, f.row)).collect::<Vec<_>>();
    let all = lost.iter().map(|&(request, row)| (request, layer, row));
    assert_eq!(found, all.collect::<Vec<_>>(), "{called:?}");
    let Some(&(_, row)) = lost.first() else { return called.unwrap() };
    let error = called.unwrap_err();
    let parts = [format!("row {row} of layer {layer}"), format!("left out {} of", lost.len())];
    let text = error.to_string();
    assert!(parts.iter().all(|part| text.contains(part)) && text.contains("; "), "{text}");
    let named = matches!(&error, Error::LostRows { requests: n, layer: l, row: r, .. }
        if (*n, *l, *r) == (lost.len(), layer, row));
    assert!(named, "{error:?}");
}

#[test]
fn a_damaged_row_costs_the_requests_that_miss_it() {
    everywhere(|setting, layer| {
        // A row that one request misses, and one that two do.
        for (requests, lane) in [(&[6][..], 20), (&[2, 5], 3)] {
            let mut server = Server::new(setting, layer, &[]);
            let layers = server.layers.clone();
            let first = batch(0, layer);
            server.step_and_lose(&first, NONE);
            server.transfer_others();
            let (owned, row) = (batch(1, layer), id(1, requests[0], lane) as usize);
            server.damage(layer, row);
            let lost: Vec<_> = requests.iter().map(|&request| (request, row)).collect();
            let lost = (layer, &lost[..]);
            let before = server.engine.stats().transferred_bytes;
            server.step_and_lose(&owned, lost);
            let served = (0..REQUESTS).filter(|request| !requests.contains(request));
            let misses: usize = served.map(|r| server.plan.misses(r).id.len()).sum();
            let bytes = (server.engine.stats().transferred_bytes - before) as usize;
            assert_eq!(bytes, misses * setting.format().bytes());
            // Later transfers serve all others, and touch no slot of the failed ones.
            for &other in layers.iter().chain(&layers) {
                let slots = |server: &Server| {
                    requests.iter().map(|&r| slots_of(&server.engine, r, other)).collect::<Vec<_>>()
                };
                let before = slots(&server);
                let called = server.transfer(other);
                server.expect(called, &owned, other, lost);
                assert!(slots(&server) == before, "layer {other}");
            }
            // The failed requests start cold, in the same generation, and all others go on.
            server.faults.clear();
            let before = server.engine.stats();
            server.step_and_lose(&owned, NONE);
            for request in 0..REQUESTS {
                let misses = if requests.contains(&request) { K } else { 0 };
                assert_eq!(server.plan.misses(request).id.len(), misses, "request {request}");
            }
            let next = batch(2, layer);
            server.transfer_others();
            layers[1..].iter().for_each(|&other| server.check(&server.plan, &owned, other));
            server.step_and_lose(&next, NONE);
            assert_eq!(server.engine.stats().evictions, before.evictions, "no slot was in use");
        }
    });
}

#[test]
fn the_other_plans_of_a_lost_request_leave_it_out() {
    everywhere(|setting, layer| {
        let row = id(1, 6, 23) as usize;
        let mut server = Server::new(setting, layer, &[(layer, row)]);
        let layers = server.layers.clone();
        let mut plans = [(); 3].map(|()| server.engine.new_plan(REQUESTS, REQUESTS).unwrap());
        let batches: Vec<_> = (0..3).map(|step| batch(step, layer)).collect();
        for (plan, owned) in plans.iter_mut().zip(&batches) {
            server.engine.plan(&owned.batch(), plan).unwrap();
        }
        let lost: Lost<'_> = (layer, &[(6, row)]);
        let mut transfer = |server: &mut Server, at: usize, layer: usize, lost: Lost<'_>| {
            let called = server.engine.transfer(&mut plans[at], &[layer], None);
            expect_lost(called, &plans[at], lost);
            // The transfer of plan 1 finds the row.
            let found = |f: Failure| f.is_new || plans[at].lost_ids(f.request).count() > 0;
            assert!(at == 1 || !plans[at].failures().any(found));
        };
        transfer(&mut server, 0, layer, NONE);
        // Its first step was served in this layer before the row was missed.
        transfer(&mut server, 1, layer, lost);
        for at in 0..3 {
            let from = if at == 0 { 1 } else { 0 };
            layers[from..].iter().for_each(|&other| transfer(&mut server, at, other, lost));
        }
        server.check(&plans[2], &batches[2], layer);
        // A lost plan may be discarded. The state of the request stays cold, and the others lose what the
        // plan missed.
        server.engine.discard(&mut plans[2]).unwrap();
        write(server.engine.pool(), (layer, row));
        server.step_and_lose(&batches[1], NONE);
        assert_eq!(server.plan.misses(6).id.len(), K);
        assert_eq!(server.plan.total_misses(), K, "all others hit");
    });
}

#[test]
fn a_new_generation_is_not_lost_with_the_old_one() {
    everywhere(|setting, layer| {
        let row = id(0, 6, 23) as usize;
        let mut server = Server::new(setting, layer, &[(layer, row)]);
        let mut old = server.engine.new_plan(REQUESTS, REQUESTS).unwrap();
        server.engine.plan(&batch(0, layer).batch(), &mut old).unwrap();
        // Another request has the state now.
        let mut owned = batch(3, layer);
        owned.generation[6] = 2;
        server.engine.plan(&owned.batch(), &mut server.plan).unwrap();
        let called = server.engine.transfer(&mut old, &[layer], None);
        expect_lost(called, &old, (layer, &[(6, row)]));
        let called = server.transfer(layer);
        server.expect(called, &owned, layer, NONE);
        server.step_and_lose(&owned, NONE);
        assert_eq!(server.plan.total_misses(), 0);
    });
}

#[test]
fn a_file_that_became_shorter_costs_the_requests_that_miss_rows_behind_its_end() {
    everywhere(|setting, layer| {
        let mut server = Server::new(setting, layer, &[]);
        let (owned, store) = (batch(0, layer), Arc::clone(server.engine.pool().store().unwrap()));
        let file = OpenOptions::new().write(true).open(store.info().file.path).unwrap();
        let row_at = |row| store.layout().record_offset(OF_LAYER[layer], row);
        // The end is in the record of a row that request 7 misses, and 2 and 5 miss one behind it.
        file.set_len(row_at(441) + 20).unwrap();
        server.step_and_lose(&owned, (layer, &[(2, 490), (5, 490), (7, 441)]));
        assert!(matches!(server.engine.pool().flush(), Err(Error::Os { .. })));
        (441..ROWS).for_each(|row| write(server.engine.pool(), (layer, row)));
        server.step_and_lose(&owned, NONE);
    });
}

#[test]
fn a_load_that_failed_is_repeated_and_one_of_a_row_that_is_not_whole_empties_the_state() {
    everywhere(|setting, layer| {
        let mut server = Server::new(setting, layer, &[]);
        let owned = batch(0, layer);
        server.step_and_lose(&owned, NONE);
        let ids: Vec<i32> = (200..270).collect();
        let (indexer, generation, seq_len) = (OF_LAYER[layer], &[1], &[ROWS as i32]);
        let request = Batch { indexer, state: &[3], generation, seq_len, ..Batch::default() };
        let load = Batch { ids: &ids, ..request };
        server.transfer_others();
        let mut plan = server.engine.new_plan(1, 1).unwrap();
        server.faults.set_nth(Fault::Errno(EIO), Direction::Read, 1);
        let failed = server.engine.load(&load, &mut plan).unwrap_err().to_string();
        assert!(failed.contains("row ") && failed.contains("Input/output error"), "{failed}");
        server.faults.clear();
        let [_, again] = [(); 2].map(|()| server.engine.load(&load, &mut plan).unwrap());
        assert_eq!(again, 0, "all ids hit");
        assert_eq!(server.engine.invalidate(3, 200..270).unwrap(), ids.len());
        server.damage(layer, 260);
        let loaded = server.engine.load(&load, &mut plan).map(drop);
        expect_lost(loaded, &plan, (layer, &[(0, 260)]));
        let mut bits = [0; 8];
        assert_eq!(server.engine.held(indexer, 3, 1, 0..ROWS as i32, &mut bits).unwrap(), 0);
        server.faults.clear();
        assert_eq!(server.engine.load(&load, &mut plan).unwrap(), ids.len());
        assert_eq!(plan.failures().count(), 0);
        server.step_and_lose(&owned, NONE);
    });
}
