//! The contents of the columns of a replay, and the checks of every access to them.

use super::fault::{Fault, Lane, named};
use crate::tape::{Column, ColumnId, Kind, Tape};

/// The memory of a tape.
pub(super) struct Memory<'t> {
    tape: &'t Tape,
    pub contents: Vec<Contents>,
}

/// The contents of one column.
#[derive(Clone)]
pub(super) enum Contents {
    Words(Vec<Lane>),
    Life(Vec<i8>),
    List(List),
    Global(Vec<i32>),
}

/// A list: columns of equal length, and that length, because a counter has no columns.
#[derive(Clone, Default)]
pub(super) struct List {
    pub columns: Vec<Vec<i32>>,
    pub len: usize,
}

const MISFIT: &str = "the column is the wrong kind of memory";

impl<'t> Memory<'t> {
    /// Returns memory in which words and lifetimes are undefined, lists are empty, and global memory is
    /// not bound.
    pub(super) fn new(tape: &'t Tape) -> Self {
        let contents = |c: &Column| match c.kind {
            Kind::Words => Contents::Words(vec![None; c.len as usize]),
            Kind::Life => Contents::Life(Vec::new()),
            Kind::List { width } => {
                Contents::List(List { columns: vec![Vec::new(); width], len: 0 })
            }
            Kind::Input | Kind::Output => Contents::Global(Vec::new()),
        };
        Self { tape, contents: tape.columns.iter().map(contents).collect() }
    }

    pub(super) fn find(&mut self, name: &str) -> Result<(&'t Column, &mut Contents), Fault> {
        let id = self.tape.find(name).ok_or_else(|| named(name, "no such column".into()))?;
        Ok((self.tape.column(id), &mut self.contents[id.0 as usize]))
    }

    pub(super) fn clear_lists(&mut self) {
        for contents in &mut self.contents {
            if let Contents::List(list) = contents {
                list.clear();
            }
        }
    }

    pub(super) fn words(&mut self, id: ColumnId) -> Result<&mut [Lane], String> {
        match &mut self.contents[id.0 as usize] {
            Contents::Words(words) => Ok(words),
            _ => Err(MISFIT.into()),
        }
    }

    /// Returns the words of a tile.
    pub(super) fn tile(
        &mut self,
        id: ColumnId,
        at: usize,
        live: usize,
    ) -> Result<&mut [Lane], String> {
        let words = self.words(id)?;
        let len = words.len();
        words
            .get_mut(at..at + live)
            .ok_or_else(|| format!("lane {len} is past the end of the column"))
    }

    pub(super) fn life(&mut self, id: ColumnId) -> Result<&mut [i8], String> {
        match &mut self.contents[id.0 as usize] {
            Contents::Life(life) if life.is_empty() => {
                Err("the lifetimes are undefined: nothing bound or mapped them".into())
            }
            Contents::Life(life) => Ok(life),
            _ => Err(MISFIT.into()),
        }
    }

    pub(super) fn list(&mut self, id: ColumnId) -> Result<&mut List, String> {
        match &mut self.contents[id.0 as usize] {
            Contents::List(list) => Ok(list),
            _ => Err(MISFIT.into()),
        }
    }
    /// Returns the words `at..at + n` of global memory.
    pub(super) fn window(&mut self, id: ColumnId, at: i32, n: i64) -> Result<&mut [i32], String> {
        let Contents::Global(words) = &mut self.contents[id.0 as usize] else {
            return Err(MISFIT.into());
        };
        let len = words.len();
        let from = usize::try_from(at).ok().zip(usize::try_from(n).ok());
        let window = from.and_then(|(at, n)| words.get_mut(at..at.checked_add(n)?));
        let name = &self.tape.column(id).name;
        window.ok_or_else(|| {
            format!("{n} words at {at} are outside of `{name}`, which has {len} words")
        })
    }

    /// Makes the bytes of working lifetime columns undefined.
    pub(super) fn forget_lifetimes(&mut self) {
        for (column, contents) in self.tape.columns.iter().zip(&mut self.contents) {
            if column.kind == Kind::Life && !column.resident {
                *contents = Contents::Life(Vec::new());
            }
        }
    }

    /// Fills the lifetimes `to` with the entries of `life` in a table of words.
    pub(super) fn map_life(
        &mut self,
        to: ColumnId,
        life: ColumnId,
        table: ColumnId,
    ) -> Result<(), String> {
        let life = self.life(life)?.to_vec();
        let table = self.words(table)?;
        let next = |&l: &i8| {
            let word = table.get(usize::from(l.cast_unsigned() ^ 128)).copied().flatten();
            let word = word.ok_or("the table has no entry for a lifetime, or it is poison")?;
            i8::try_from(word - 128).map_err(|_| format!("{word} is not in 0..=255"))
        };
        let mapped = life.iter().map(next).collect::<Result<_, String>>()?;
        self.contents[to.0 as usize] = Contents::Life(mapped);
        Ok(())
    }

    /// Makes the words of a column from `first` on poison.
    pub(super) fn forget(&mut self, id: ColumnId, first: usize) {
        if let Ok(rest) = self.words(id) {
            rest.iter_mut().skip(first).for_each(|word| *word = None);
        }
    }

    /// Copies `n` words of global memory at `at` to the front of a column. They must be in its
    /// range.
    pub(super) fn copy_in(
        &mut self,
        column: ColumnId,
        from: ColumnId,
        at: i32,
        n: i32,
    ) -> Result<(), String> {
        let words = self.window(from, at, n.into())?.to_vec();
        let range = self.tape.column(column).ranges[0];
        if let Some(bad) = words.iter().find(|&&w| !range.holds(w)) {
            return Err(format!("the word {bad} is not in the range {range} of the column"));
        }
        let to = self.words(column)?.get_mut(..words.len());
        let to = to.ok_or_else(|| format!("{n} words are too many"))?;
        to.iter_mut().zip(&words).for_each(|(to, word)| *to = Some(*word));
        self.forget(column, words.len());
        Ok(())
    }

    /// Copies the first `n` words of a column to global memory at `at`.
    pub(super) fn copy_out(
        &mut self,
        to: ColumnId,
        at: i32,
        from: ColumnId,
        n: i32,
    ) -> Result<(), String> {
        let len = usize::try_from(n).map_err(|_| format!("{n} words"))?;
        let words = self.words(from)?.get(..len);
        let words = words.ok_or_else(|| format!("{n} words are too many"))?;
        let words: Option<Vec<i32>> = words.iter().copied().collect();
        let words = words.ok_or("the words to copy out contain poison")?;
        self.window(to, at, n.into())?.copy_from_slice(&words);
        Ok(())
    }

    /// Returns an error if a list is longer than its memory.
    pub(super) fn check_len(&mut self, id: ColumnId) -> Result<(), String> {
        let (name, most) = (&self.tape.column(id).name, self.tape.column(id).len as usize);
        let len = self.list(id)?.len;
        if len <= most {
            Ok(())
        } else {
            Err(format!("`{name}` has room for {most} entries, not {len}"))
        }
    }
}

impl List {
    pub(super) fn clear(&mut self) {
        self.columns.iter_mut().for_each(Vec::clear);
        self.len = 0;
    }

    /// Appends one entry.
    pub(super) fn push(&mut self, entry: impl IntoIterator<Item = i32>) {
        self.columns.iter_mut().zip(entry).for_each(|(column, word)| column.push(word));
        self.len += 1;
    }
}
