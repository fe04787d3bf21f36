//! The words of the columns of a replay, and the checks of every access to them.

use super::fault::Lane;
use avsg_linker::tape::{Column, ColumnId, Kind, Tape};

/// The memory of a tape.
pub(super) struct Memory<'t> {
    tape: &'t Tape,
    /// The words of each column: one run of them, or one for each column of a list. A list without
    /// columns has one too, because its entries are counted.
    pub contents: Vec<Vec<Vec<Lane>>>,
}

impl<'t> Memory<'t> {
    /// Returns memory in which words and lifetimes are undefined, lists are empty, and global memory is
    /// not bound.
    pub(super) fn new(tape: &'t Tape) -> Self {
        let contents = |c: &Column| match c.kind {
            Kind::List { width } => vec![Vec::new(); width.max(1)],
            _ => vec![vec![None; c.len as usize]],
        };
        Self { tape, contents: tape.columns.iter().map(contents).collect() }
    }

    /// Returns the words of a column, or of the first column of a list.
    pub(super) fn words(&mut self, id: ColumnId) -> &mut Vec<Lane> {
        &mut self.contents[id.0 as usize][0]
    }

    /// Returns the words `at..at + n` of a column.
    pub(super) fn window(&mut self, id: ColumnId, at: i32, n: i32) -> Result<&mut [Lane], String> {
        let name = &self.tape.column(id).name;
        let words = self.words(id);
        let len = words.len();
        let from = usize::try_from(at).ok().zip(usize::try_from(n).ok());
        let window = from.and_then(|(at, n)| words.get_mut(at..at + n));
        window.ok_or_else(|| {
            format!("{n} words at {at} are outside of `{name}`, which has {len} words")
        })
    }

    pub(super) fn clear_lists(&mut self) {
        self.change(|column| matches!(column.kind, Kind::List { .. }), Vec::clear);
    }

    /// Makes the bytes of working lifetime columns undefined.
    pub(super) fn forget_lifetimes(&mut self) {
        let working = |column: &Column| column.kind == Kind::Life && !column.resident;
        self.change(working, |bytes| bytes.fill(None));
    }

    fn change(&mut self, chosen: impl Fn(&Column) -> bool, change: impl Fn(&mut Vec<Lane>)) {
        let columns = self.tape.columns.iter().zip(&mut self.contents);
        let chosen = columns.filter(|(column, _)| chosen(column));
        chosen.flat_map(|(_, words)| words).for_each(change);
    }

    /// Makes the words of a column from `first` on poison.
    pub(super) fn forget(&mut self, id: ColumnId, first: i32) {
        self.words(id).iter_mut().skip(first as usize).for_each(|word| *word = None);
    }

    /// Appends one entry to a list.
    pub(super) fn push(&mut self, list: ColumnId, entry: &[Lane]) {
        let counted = [Some(0)];
        let entry = if entry.is_empty() { &counted } else { entry };
        let columns = self.contents[list.0 as usize].iter_mut();
        columns.zip(entry).for_each(|(column, &word)| column.push(word));
    }

    /// Returns the number of entries of a list.
    pub(super) fn len(&self, id: ColumnId) -> i32 {
        i32::try_from(self.contents[id.0 as usize][0].len()).unwrap_or(i32::MAX)
    }

    /// Returns an error if a list is longer than its memory.
    pub(super) fn check_len(&self, id: ColumnId) -> Result<(), String> {
        let (Column { name, kind, len: most, .. }, len) = (self.tape.column(id), self.len(id));
        let fits = !matches!(kind, Kind::List { .. }) || len.cast_unsigned() <= *most;
        let why = || format!("`{name}` has room for {most} entries, not {len}");
        fits.then_some(()).ok_or_else(why)
    }
}
