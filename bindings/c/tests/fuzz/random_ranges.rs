//! Random ranges of rows of the shared pools.

use avsg_capi::*;
use avsg_capi_testkit::*;

use super::random_caller::RandomCaller;
use super::shared_handles::Kind;

impl RandomCaller<'_> {
    /// Writes or reads a range of a shared pool, whose rows keep the bytes that they are to have.
    pub(super) fn range(&mut self) {
        let pool = self.handle::<avsg_pool>(Kind::Pool);
        let model = self.pool_model(pool);
        let layers: Vec<usize> = (0..self.below(4)).map(|_| self.index(2)).collect();
        let (first, each) = (self.index(ROWS), layers.len() * ROW);
        let rows = self.below(20).min(ROWS.saturating_sub(first));
        let bytes = self.mostly(rows * each);
        let mut data = vec![0; rows * each];
        let rows = bytes.checked_div(each).unwrap_or(0).min(rows);
        let all = (0..layers.len() * rows).map(|n| (layers[n / rows] % 2, first + n % rows));
        let write = self.rarely(2);
        if let Some(model) = model.as_ref().filter(|_| write) {
            for (to, (layer, row)) in data.as_chunks_mut::<ROW>().0.iter_mut().zip(all.clone()) {
                *to = model.row(layer, row);
            }
        }
        let (list, count, at) = (layers.as_ptr(), layers.len(), data.as_mut_ptr().cast());
        // SAFETY: the arrays have the lengths beside them, or one that the library refuses before it reads.
        let status = unsafe {
            if write {
                avsg_pool_write_rows(pool, list, count, first, at, bytes)
            } else {
                avsg_pool_read_rows(pool, list, count, first, at, bytes)
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
