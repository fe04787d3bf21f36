//! Selections that need more than a lookup: ids that a row selects more than once, which point to a mistake in the
//! recording because a top-K selection has none, and rows that were rewritten since they were selected.

use super::Trace;

/// The repeated ids of a trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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

    /// Returns the places in `ids`, in ascending order, of ids that some step invalidated after their
    /// last selection: a hit on them would return old bytes. A step with `stable` tokens makes the rows of all ids
    /// from `stable` on invalid, because they belong to speculated tokens that may have been rejected. The next
    /// selection of such an id must copy its row, whatever a policy keeps.
    pub fn stale(&self) -> Vec<usize> {
        let Some(stable) = &self.stable else { return Vec::new() };
        let mut places = Vec::new();
        // The last step that selected each id, counted from 1; 0 for none.
        let mut last: Vec<u32> = vec![0; self.largest_id().map_or(0, |id| id as usize + 1)];
        // Steps, counted from 1, whose `stable` is below that of every later step so far: the first of
        // them after a step has the smallest `stable` since that step.
        let mut least: Vec<(u32, i32)> = Vec::new();
        let per_step = self.tokens * self.k;
        for ((step, ids), &now) in (1..).zip(self.ids.chunks_exact(per_step)).zip(stable) {
            if now >= 0 {
                while least.last().is_some_and(|&(_, before)| before >= now) {
                    least.pop();
                }
                least.push((step, now));
            }
            for (at, &id) in ids.iter().enumerate().filter(|&(_, &id)| id >= 0) {
                let before = std::mem::replace(&mut last[id as usize], step);
                // No step has invalidated an id below the smallest `stable` of all steps so far.
                if before == 0 || before == step || least.first().is_none_or(|&(_, s)| id < s) {
                    continue;
                }
                let since = least.partition_point(|&(other, _)| other <= before);
                if least.get(since).is_some_and(|&(_, stable)| stable <= id) {
                    places.push((step as usize - 1) * per_step + at);
                }
            }
        }
        places
    }
}
