//! Memory that a caller gives to a replay and takes back.

use super::Replay;
use super::fault::{Fault, named};
use super::memory::Held;

const WORDLESS: &str = "it has no words of its own";

impl Replay<'_> {
    /// Gives a column of words, an input or an output its words.
    ///
    /// # Errors
    /// If there is no such memory, or a word or the length is not what it declares.
    pub fn bind(&mut self, name: &str, words: Vec<i32>) -> Result<(), Fault> {
        let (column, held) = self.memory.find(name)?;
        let [range] = column.ranges[..] else { return Err(named(name, WORDLESS.into())) };
        if let Some(bad) = words.iter().find(|&&w| !range.holds(w)) {
            return Err(named(name, format!("the word {bad} is not in its range {range}")));
        }
        match held {
            Held::Words(held) if held.len() == words.len() => {
                *held = words.into_iter().map(Some).collect();
            }
            Held::Global(held) => *held = words,
            _ => {
                return Err(named(name, format!("{} words bound to {}", words.len(), column.len)));
            }
        }
        Ok(())
    }

    /// Gives a lifetime column its bytes.
    ///
    /// # Errors
    /// If there is no such column of that length.
    pub fn bind_life(&mut self, name: &str, life: Vec<i8>) -> Result<(), Fault> {
        match self.memory.find(name)? {
            (c, Held::Life(held)) if life.len() == c.len as usize => *held = life,
            (c, _) => return Err(named(name, format!("{} bytes bound to {}", life.len(), c.len))),
        }
        Ok(())
    }

    /// Takes words back. Undefined words of a column read as 0.
    ///
    /// # Errors
    /// If there is no such memory.
    pub fn take(&mut self, name: &str) -> Result<Vec<i32>, Fault> {
        match self.memory.find(name)?.1 {
            Held::Words(words) => Ok(words.iter().map(|w| w.unwrap_or_default()).collect()),
            Held::Global(words) => Ok(std::mem::take(words)),
            _ => Err(named(name, WORDLESS.into())),
        }
    }

    /// Takes lifetimes back.
    ///
    /// # Errors
    /// If there is no such column.
    pub fn take_life(&mut self, name: &str) -> Result<Vec<i8>, Fault> {
        match self.memory.find(name)?.1 {
            Held::Life(life) => Ok(std::mem::take(life)),
            _ => Err(named(name, "it is no lifetime column".into())),
        }
    }
}
