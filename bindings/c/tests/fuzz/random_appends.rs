//! Random appends. A single thread demands that each one without a mistake succeeds and is exact, and that
//! one that is refused writes nothing.

use std::ptr::{null, without_provenance_mut};

use avsg_capi::*;
use avsg_capi_testkit::*;
use avsg_testkit::fresh::FreshRows;

use super::random_batches::stored_ids;
use super::random_caller::RandomCaller;
use super::shared_handles::Kind;

/// The bytes that a row of the pool has before an append writes it.
const POISON: [u8; ROW] = [0xEE; ROW];

impl RandomCaller<'_> {
    /// Appends up to 60 rows of each request to one layer, or to both in one call.
    pub(super) fn append(&mut self) {
        let engine = self.handle(Kind::Engine);
        let model = self.engine_model(engine);
        let model = model.as_deref();
        let has_handle = |pool| self.shared.known().pools.contains_key(&pool);
        if self.verify && !model.is_none_or(|model| has_handle(model.pool.handle)) {
            // Without its handle no row of the pool can be read or restored.
            return;
        }
        let (layer, most) = (self.index(2), [2, 60][self.below(2)]);
        let mut owned = self.batch(model, most);
        let layers = if self.rarely(3) { vec![0, 1] } else { vec![layer] };
        let rows = layers.iter().map(|layer| Self::fresh_rows(model, &owned, layer % 2));
        let rows: Vec<FreshRows> = rows.collect();
        let fresh: Vec<avsg_fresh> = rows.iter().map(|rows| self.fresh(rows)).collect();
        let written: Vec<(usize, usize)> = match model {
            Some(model) if self.verify => {
                let hosts = || stored_ids(&owned).map(|(_, id)| model.host_row(id));
                layers.iter().flat_map(|&layer| hosts().map(move |host| (layer, host))).collect()
            }
            _ => Vec::new(),
        };
        let pool = model.map(|model| &model.pool);
        let pool = pool.filter(|_| self.verify && layers.iter().all(|&layer| layer < 2));
        if let Some(pool) = pool {
            written.iter().for_each(|&(layer, host)| pool.write(layer, host, &POISON));
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
        assert!(done || model.is_none() || !self.exact(), "an append: {}", last_error());
        let Some(pool) = pool else { return };
        let read = |layer: usize, host: usize| {
            let (handle, mut bytes) = (without_provenance_mut(pool.handle), [0; ROW]);
            // SAFETY: the array has as many bytes as a row.
            ok(unsafe { avsg_pool_read_row(handle, layer, host, bytes.as_mut_ptr().cast(), ROW) });
            bytes
        };
        if self.mistakes == 0 {
            for &(layer, host) in &written {
                assert_eq!(read(layer, host), pool.row(layer, host), "row {host}");
            }
            self.checked += written.len();
        } else if done {
            for &layer in &layers {
                (0..ROWS).for_each(|host| pool.restore(layer, host));
            }
        } else {
            let poisoned = |&(layer, host): &(usize, usize)| read(layer, host) == POISON;
            assert!(written.iter().all(poisoned), "a refused append wrote");
            written.iter().for_each(|&(layer, host)| pool.restore(layer, host));
        }
    }
}
