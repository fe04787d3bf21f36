//! What a replay's columns hold, and the checks of every access to them.

use super::fault::{Fault, Lane, named};
use crate::tape::{Column, ColumnId, Kind, Tape};

/// The memory of a tape.
pub(super) struct Memory<'t> {
    tape: &'t Tape,
    held: Vec<Held>,
}

/// What one column holds.
pub(super) enum Held {
    Words(Vec<Lane>),
    Life(Vec<i8>),
    List(List),
    Global(Vec<i32>),
}

/// A list: columns of equal length, and that length, since a counter has no columns.
#[derive(Clone, Default)]
pub(super) struct List {
    pub columns: Vec<Vec<i32>>,
    pub len: usize,
}

const MISFIT: &str = "the wrong kind of memory";

impl<'t> Memory<'t> {
    /// Words are undefined, lists empty, global memory and lifetimes not bound.
    pub(super) fn new(tape: &'t Tape) -> Self {
        let held = |c: &Column| match c.kind {
            Kind::Words => Held::Words(vec![None; c.len as usize]),
            Kind::Life => Held::Life(Vec::new()),
            Kind::List { width } => Held::List(List { columns: vec![Vec::new(); width], len: 0 }),
            Kind::Input | Kind::Output => Held::Global(Vec::new()),
        };
        Self { tape, held: tape.columns.iter().map(held).collect() }
    }

    pub(super) fn find(&mut self, name: &str) -> Result<(&'t Column, &mut Held), Fault> {
        let id = self.tape.find(name).ok_or_else(|| named(name, "no such column".into()))?;
        Ok((self.tape.column(id), &mut self.held[id.0 as usize]))
    }

    pub(super) fn clear_lists(&mut self) {
        for held in &mut self.held {
            if let Held::List(list) = held {
                list.clear();
            }
        }
    }

    pub(super) fn words(&mut self, id: ColumnId) -> Result<&mut [Lane], String> {
        match &mut self.held[id.0 as usize] {
            Held::Words(words) => Ok(words),
            _ => Err(MISFIT.into()),
        }
    }

    /// The words of a tile.
    pub(super) fn tile(
        &mut self,
        id: ColumnId,
        at: usize,
        live: usize,
    ) -> Result<&mut [Lane], String> {
        let words = self.words(id)?;
        let len = words.len();
        words.get_mut(at..at + live).ok_or_else(|| format!("lane {len} is past the column"))
    }

    pub(super) fn life(&mut self, id: ColumnId) -> Result<&mut [i8], String> {
        match &mut self.held[id.0 as usize] {
            Held::Life(life) if life.is_empty() => Err("the lifetimes were not bound".into()),
            Held::Life(life) => Ok(life),
            _ => Err(MISFIT.into()),
        }
    }

    pub(super) fn list(&mut self, id: ColumnId) -> Result<&mut List, String> {
        match &mut self.held[id.0 as usize] {
            Held::List(list) => Ok(list),
            _ => Err(MISFIT.into()),
        }
    }

    /// A list whose op ran.
    pub(super) fn entries(&self, id: ColumnId) -> &List {
        let Held::List(list) = &self.held[id.0 as usize] else { unreachable!("{MISFIT}") };
        list
    }

    /// The words `at..at + n` of global memory.
    pub(super) fn window(&mut self, id: ColumnId, at: i32, n: i64) -> Result<&mut [i32], String> {
        let Held::Global(words) = &mut self.held[id.0 as usize] else {
            return Err(MISFIT.into());
        };
        let len = words.len();
        let from = usize::try_from(at).ok().zip(usize::try_from(n).ok());
        let window = from.and_then(|(at, n)| words.get_mut(at..at.checked_add(n)?));
        let name = &self.tape.column(id).name;
        window.ok_or_else(|| format!("{n} words at {at} of `{name}`, which has {len}"))
    }

    /// Copies `n` words of global memory at `at` to the front of a column; they must be in its range.
    pub(super) fn fetch(
        &mut self,
        to: ColumnId,
        from: ColumnId,
        at: i32,
        n: i32,
    ) -> Result<(), String> {
        let words = self.window(from, at, n.into())?.to_vec();
        let range = self.tape.column(to).ranges[0];
        if let Some(bad) = words.iter().find(|&&w| !range.holds(w)) {
            return Err(format!("it takes {bad}, which is not in {range}"));
        }
        let to = self.words(to)?.get_mut(..words.len());
        let to = to.ok_or_else(|| format!("{n} words are too many"))?;
        to.iter_mut().zip(words).for_each(|(to, word)| *to = Some(word));
        Ok(())
    }

    /// Copies the first `n` words of a column to global memory at `at`.
    pub(super) fn publish(
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
        let words = words.ok_or("it publishes poison")?;
        self.window(to, at, n.into())?.copy_from_slice(&words);
        Ok(())
    }

    /// Faults if a list has grown past its memory.
    pub(super) fn fits(&mut self, id: ColumnId) -> Result<(), String> {
        let (name, most) = (&self.tape.column(id).name, self.tape.column(id).len as usize);
        let len = self.list(id)?.len;
        if len <= most { Ok(()) } else { Err(format!("`{name}` holds {most}, not {len}")) }
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
