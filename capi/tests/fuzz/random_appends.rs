//! Random appends. A single thread demands that each one without a mistake succeeds and is exact, and that
//! one that is refused writes nothing.

use std::ptr::{null, null_mut, without_provenance_mut};

use avsg_capi::*;
use avsg_capi_testkit::*;
use avsg_testkit::fresh::FreshRows;

use super::random_caller::RandomCaller;
use super::random_steps::stored_ids;
use super::shared_handles::Kind;

/// The bytes that a row of the pool has before an append writes it.
const POISON: [u8; ROW] = [0xEE; ROW];

impl RandomCaller<'_> {
    /// Appends up to 60 rows of each request to one layer, or to both in one call.
    pub(super) fn append(&mut self) {
        let engine = self.handle(Kind::Engine);
        let model = self.engine_model(engine);
        let model = model.as_deref();
        let (layer, most) = (self.index(2), [2, 60][self.below(2)]);
        let mut owned = self.batch(model, most);
        let layers = if self.rarely(3) { vec![0, 1] } else { vec![layer] };
        let rows = layers.iter().map(|layer| Self::fresh_rows(model, &owned, layer % 2));
        let rows: Vec<FreshRows> = rows.collect();
        let fresh: Vec<avsg_fresh> = rows.iter().map(|rows| self.fresh(rows)).collect();
        let targets: Vec<usize> = match model {
            Some(model) if self.verify => {
                stored_ids(&owned).map(|(_, id)| model.host_row(id)).collect()
            }
            _ => Vec::new(),
        };
        let pool = model.filter(|model| self.shared.known().pools.contains_key(&model.pool.1));
        let handles = pool.map(|model| {
            let pool = without_provenance_mut(model.pool.1);
            Handles::from_raw(pool, null_mut(), null_mut())
        });
        let handles = handles.filter(|_| layers.iter().all(|&layer| layer < 2) && self.verify);
        let rows_of_layers: Vec<(usize, usize)> =
            layers.iter().flat_map(|&l| targets.iter().map(move |&host| (l, host))).collect();
        if let Some(handles) = &handles {
            let write = |&(l, host): &(usize, usize)| {
                model.unwrap().pool.0.write(handles.pool, l, host, &POISON);
            };
            rows_of_layers.iter().for_each(write);
        }
        let mut batch = self.c_batch(&mut owned);
        if self.rarely(2) {
            batch.ids = avsg_i32s { data: null(), len: 0 };
        }
        let stream = self.stream();
        let at = if self.mistake(60) { null() } else { fresh.as_ptr() };
        // SAFETY: as in `step`.
        let status = unsafe {
            if fresh.len() == 2 {
                let (layers, count) = self.list();
                avsg_engine_append(engine, &batch, layers.as_ptr(), count, at, stream)
            } else {
                avsg_engine_append(engine, &batch, &layer, 1, at, stream)
            }
        };
        let done = self.record(status);
        let Some(model) = model else { return };
        assert!(done || self.mistakes > 0 || !self.verify, "an append: {}", last_error());
        if done && self.mistakes == 0 {
            rows_of_layers.iter().for_each(|&(l, host)| model.pool.0.note_written(l, host));
        }
        let Some(handles) = handles else {
            if done && self.mistakes > 0 && self.verify {
                // The pool may have wrong rows, and without its handle they cannot be restored.
                self.destroy_engines_on(&model.pool.0);
            }
            return;
        };
        let read = |layer: usize, host: usize| {
            let mut bytes = [0; ROW];
            let data = bytes.as_mut_ptr().cast();
            // SAFETY: `data` points to as many bytes as a row has.
            ok(unsafe { avsg_pool_read_row(handles.pool, layer, host, data, ROW) });
            bytes
        };
        if self.mistakes == 0 {
            for &(layer, host) in &rows_of_layers {
                assert_eq!(read(layer, host), model.pool.0.row(layer, host), "row {host}");
            }
            self.checked += rows_of_layers.len();
            return;
        }
        let mut restored = rows_of_layers;
        if done {
            let all = |&layer: &usize| (0..ROWS).map(move |host| (layer, host));
            restored = layers.iter().flat_map(all).collect();
        } else {
            let poisoned = |&(layer, host): &(usize, usize)| read(layer, host) == POISON;
            assert!(restored.iter().all(poisoned), "a refused append wrote");
        }
        for (layer, host) in restored {
            let pool = &model.pool.0;
            pool.write(handles.pool, layer, host, &pool.row(layer, host));
        }
    }
}
