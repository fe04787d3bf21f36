//! Random rows and ranges of rows of the shared pools.

use avsg_capi::*;
use avsg_capi_testkit::*;

use super::random_caller::RandomCaller;
use super::shared_handles::Kind;

impl RandomCaller<'_> {
    /// Writes or reads a row or a range of a shared pool, whose rows keep the bytes that they are to have.
    pub(super) fn range(&mut self) {
        let pool = self.handle::<avsg_pool>(Kind::Pool);
        let model = self.pool_model(pool);
        let single = self.rarely(2);
        let count = if single { 1 } else { self.below(4) };
        let layers: Vec<usize> = (0..count).map(|_| self.index(2)).collect();
        let (first, each) = (self.index(ROWS), layers.len() * ROW);
        let room = ROWS.saturating_sub(first);
        let rows = if single { 1 } else { self.below(20).min(room) };
        let bytes = self.mostly(rows * each);
        let mut data = vec![0; rows * each];
        let rows = bytes.checked_div(each).unwrap_or(0).min(rows).min(room);
        let all = (0..layers.len() * rows).map(|n| (layers[n / rows] % 2, first + n % rows));
        let write = self.rarely(2);
        if let Some(model) = model.as_ref().filter(|_| write) {
            for (to, (layer, row)) in data.as_chunks_mut::<ROW>().0.iter_mut().zip(all.clone()) {
                *to = model.row(layer, row);
            }
        }
        let (list, at) = (layers.as_ptr(), data.as_mut_ptr().cast());
        // SAFETY: the arrays have the lengths beside them, or one that the library refuses before it reads.
        let status = unsafe {
            match (single, write) {
                (true, true) => avsg_pool_write_row(pool, layers[0], first, at, bytes),
                (true, false) => avsg_pool_read_row(pool, layers[0], first, at, bytes),
                (_, true) => avsg_pool_write_rows(pool, list, count, first, at, bytes),
                (_, false) => avsg_pool_read_rows(pool, list, count, first, at, bytes),
            }
        };
        let done = self.record(status);
        let Some(model) = model else { return };
        let whole = write || all.clone().all(|(layer, row)| model.is_written(layer, row));
        assert!(!self.exact() || done == whole, "{}", last_error());
        for (bytes, (layer, row)) in data.as_chunks::<ROW>().0.iter().zip(all).filter(|_| done) {
            if write {
                model.note_written(layer, row);
            } else if self.verify {
                assert_eq!(*bytes, model.row(layer, row), "layer {layer}, row {row}");
                self.checked += 1;
            }
        }
    }
}
