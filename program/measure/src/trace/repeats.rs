//! Ids that a row selects more than once. A top-K selection has none, so they point to a mistake in
//! the recording.

use super::Trace;
use serde::Serialize;

/// The repeated ids of a trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Repeats {
    /// Ids that the same row selected before, counted over all rows.
    pub ids: u64,
    /// Rows with at least one such id.
    pub rows: u64,
    /// (step, token, id) of the first one.
    pub first: Option<(usize, usize, i32)>,
}

impl Trace {
    /// Counts the ids that repeat an earlier id of the same row; padding does not count.
    pub fn repeats(&self) -> Repeats {
        let mut found = Repeats::default();
        // The number of the last row that selected each id, counted from 1.
        let mut last_row: Vec<u32> = vec![0; self.largest_id().map_or(0, |id| id as usize + 1)];
        for (row, ids) in (1..).zip(self.ids.chunks_exact(self.k)) {
            let before = found.ids;
            for &id in ids.iter().filter(|&&id| id >= 0) {
                if std::mem::replace(&mut last_row[id as usize], row) == row {
                    found.ids += 1;
                    let at = row as usize - 1;
                    let place = (at / self.tokens, at % self.tokens, id);
                    found.first.get_or_insert(place);
                }
            }
            found.rows += u64::from(found.ids > before);
        }
        found
    }
}
