//! The memory that the calls with a plan write, in which none of their inputs may be.

use std::ops::Range;

use crate::{Error, Result};

/// Ranges of memory by ascending address, which do not overlap.
#[derive(Debug, Default)]
pub(crate) struct Written(Vec<Part>);

#[derive(Debug)]
struct Part {
    start: usize,
    end: usize,
    what: &'static str,
}

impl Written {
    /// Adds `bytes` bytes, which are called `what`. Parts that touch and have the same name become one.
    pub fn add(&mut self, start: usize, bytes: usize, what: &'static str) -> Result<()> {
        let (all, mut end) = (&mut self.0, start.saturating_add(bytes));
        let joins = |part: &Part, start, end| match part.what == what {
            true => part.start <= end && start <= part.end,
            false => part.start < end && start < part.end,
        };
        let lacking = Error::OutOfMemory { what: "list of memory", bytes: size_of_val(&**all) };
        all.try_reserve(1).map_err(|_| lacking)?;
        let mut at = all.partition_point(|part| part.start < start);
        let mut start = start;
        if let Some(before) = at.checked_sub(1).filter(|&n| joins(&all[n], start, end)) {
            (at, start, end) = (before, all[before].start, end.max(all[before].end));
            all.remove(before);
        }
        while all.get(at).is_some_and(|next| joins(next, start, end)) {
            end = end.max(all.remove(at).end);
        }
        all.insert(at, Part { start, end, what });
        Ok(())
    }

    /// Returns what is at the first of these addresses that is in the memory; `None` if none is.
    pub fn find(&self, addresses: Range<usize>) -> Option<&'static str> {
        let after = self.0.partition_point(|part| part.end <= addresses.start);
        self.0.get(after).filter(|part| part.start < addresses.end).map(|part| part.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_in_any_order_and_join() {
        let mut written = Written::default();
        for (start, bytes, what) in
            [(50, 10, "b"), (10, 10, "a"), (20, 5, "a"), (25, 5, "c"), (60, 10, "b"), (5, 5, "a")]
        {
            written.add(start, bytes, what).unwrap();
        }
        let found = |range| written.find(range);
        assert_eq!(written.0.len(), 3);
        assert_eq!([found(0..5), found(30..50), found(70..90)], [None; 3]);
        assert_eq!([found(0..6), found(24..26), found(24..25)], [Some("a"); 3]);
        assert_eq!([found(25..51), found(40..51), found(69..90)], ["c", "b", "b"].map(Some));
        written.add(0, 100, "all").unwrap();
        assert_eq!((written.0.len(), written.find(99..100)), (1, Some("all")));
    }
}
