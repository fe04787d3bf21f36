//! The row-by-row results of a replay as an `.npz` file, which NumPy can check.

use std::path::Path;

use crate::npz::Writer;
use avsg::{Error, Result};

/// The arrays of the results file, filled step by step.
#[derive(Debug, Clone)]
pub struct Results {
    tokens: usize,
    k: usize,
    cores: usize,
    slot: Vec<i32>,
    hit: Vec<u8>,
    misses: Vec<i32>,
    miss: Vec<i32>,
    cut: Vec<i32>,
    tag: Vec<u64>,
}

/// Results of one step with `N_q` tokens, `K` ids per token and `C` copying cores.
#[derive(Debug, Clone, Copy)]
pub struct StepResults<'a> {
    /// `[N_q * K]`: the slot of every id, -1 for padding.
    pub slot: &'a [i32],
    /// `[N_q * K]`: 1 for a hit, 0 for a miss and for padding.
    pub hit: &'a [u8],
    /// `[N_q * K]`: the first 8 bytes of the row in the slot, little endian; 0 for padding.
    pub tag: &'a [u64],
    /// `[N_q]`: the number of ids that each token missed.
    pub misses: &'a [i32],
    /// The miss list in its order: position (token * K + index), id and slot of each miss.
    pub miss: &'a [[i32; 3]],
    /// `[C + 1]`: the start of each core's part of the miss list, then the length of the list.
    pub cut: &'a [i32],
}

impl Results {
    /// Creates results without steps.
    pub fn new(tokens: usize, k: usize, cores: usize) -> Self {
        let (slot, hit, misses) = (Vec::new(), Vec::new(), Vec::new());
        let (miss, cut, tag) = (Vec::new(), Vec::new(), Vec::new());
        Self { tokens, k, cores, slot, hit, misses, miss, cut, tag }
    }

    /// Returns the number of steps that were pushed.
    pub fn steps(&self) -> usize {
        self.misses.len() / self.tokens.max(1)
    }

    /// Adds the results of one step; an array of another length than the geometry's is refused.
    pub fn push(&mut self, step: StepResults<'_>) -> Result<()> {
        let ids = self.tokens * self.k;
        for (what, given, expected) in [
            ("slots of a step", step.slot.len(), ids),
            ("hits of a step", step.hit.len(), ids),
            ("tags of a step", step.tag.len(), ids),
            ("miss counts of a step", step.misses.len(), self.tokens),
            ("cuts of a step", step.cut.len(), self.cores + 1),
        ] {
            if given != expected {
                let limit = format!("the geometry has {expected}");
                return Err(Error::invalid(what, given, limit, "push whole steps"));
            }
        }
        let number = self.steps() as i32;
        self.slot.extend_from_slice(step.slot);
        self.hit.extend_from_slice(step.hit);
        self.tag.extend_from_slice(step.tag);
        self.misses.extend_from_slice(step.misses);
        self.cut.extend_from_slice(step.cut);
        let entries = step.miss.iter();
        self.miss.extend(entries.flat_map(|&[position, id, slot]| [number, position, id, slot]));
        Ok(())
    }

    /// Writes the arrays `slot`, `hit`, `misses`, `miss`, `cut` and `tag` to an `.npz` file. A row of
    /// `miss` is (step, position, id, slot).
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let (steps, tokens, k) = (self.steps(), self.tokens, self.k);
        let mut out = Writer::default();
        out.array("slot", &[steps, tokens, k], &self.slot)?;
        out.array("hit", &[steps, tokens, k], &self.hit)?;
        out.array("misses", &[steps, tokens], &self.misses)?;
        out.array("miss", &[self.miss.len() / 4, 4], &self.miss)?;
        out.array("cut", &[steps, self.cores + 1], &self.cut)?;
        out.array("tag", &[steps, tokens, k], &self.tag)?;
        out.finish(path.as_ref())
    }
}
