//! The memory that a caller passes to a replay and takes back.

use super::Replay;
use super::fault::{Fault, named};
use super::memory::Contents;
use crate::tape::Kind;

const WORDLESS: &str = "a list or a lifetime column cannot be bound or taken as words";

impl Replay<'_> {
    /// Sets the words of a column, an input or an output.
    ///
    /// # Errors
    /// If no such memory exists, a word is out of its range, or the length of a column differs.
    pub fn bind(&mut self, name: &str, words: Vec<i32>) -> Result<(), Fault> {
        let (column, contents) = self.memory.find(name)?;
        let [range] = column.ranges[..] else { return Err(named(name, WORDLESS.into())) };
        // A word of an output may be any until it is read.
        let bound = column.kind != Kind::Output;
        if let Some(bad) = words.iter().find(|&&w| bound && !range.holds(w)) {
            return Err(named(name, format!("the word {bad} is not in its range {range}")));
        }
        match contents {
            Contents::Words(contents) if contents.len() == words.len() => {
                *contents = words.into_iter().map(Some).collect();
            }
            Contents::Global(contents) => *contents = words,
            _ => {
                return Err(named(
                    name,
                    format!("{} words were bound to a column of {}", words.len(), column.len),
                ));
            }
        }
        Ok(())
    }

    /// Sets the bytes of a lifetime column.
    ///
    /// # Errors
    /// If no such column of that length exists.
    pub fn bind_life(&mut self, name: &str, life: Vec<i8>) -> Result<(), Fault> {
        match self.memory.find(name)? {
            (c, Contents::Life(contents)) if life.len() == c.len as usize => *contents = life,
            (c, _) => {
                return Err(named(
                    name,
                    format!("{} bytes were bound to a column of {}", life.len(), c.len),
                ));
            }
        }
        Ok(())
    }

    /// Returns the words of a column, and takes those of an input or an output. Undefined words of
    /// a column are 0.
    ///
    /// # Errors
    /// If no such memory exists.
    pub fn take(&mut self, name: &str) -> Result<Vec<i32>, Fault> {
        match self.memory.find(name)?.1 {
            Contents::Words(words) => Ok(words.iter().map(|w| w.unwrap_or_default()).collect()),
            Contents::Global(words) => Ok(std::mem::take(words)),
            _ => Err(named(name, WORDLESS.into())),
        }
    }

    /// Takes the bytes of a lifetime column.
    ///
    /// # Errors
    /// If no such column exists.
    pub fn take_life(&mut self, name: &str) -> Result<Vec<i8>, Fault> {
        match self.memory.find(name)?.1 {
            Contents::Life(life) => Ok(std::mem::take(life)),
            _ => Err(named(name, "the column is not a lifetime column".into())),
        }
    }
}
