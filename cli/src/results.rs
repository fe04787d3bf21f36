//! What a replay found, row by row, for somebody who checks it with NumPy.

use std::path::Path;

use crate::npz::Writer;
use avsg::{Error, Result};

/// The arrays of OUT.npz. Rows are pushed step by step.
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

/// One step's results; `K` ids a token, `N_q` tokens, `C` copying cores.
#[derive(Debug, Clone, Copy)]
pub struct StepResults<'a> {
    /// The slot of every id, -1 for padding: N_q * K.
    pub slot: &'a [i32],
    /// 1 for a hit: N_q * K.
    pub hit: &'a [u8],
    /// The first 8 bytes found at the slot, 0 for padding: N_q * K.
    pub tag: &'a [u64],
    /// How many ids each token missed: N_q.
    pub misses: &'a [i32],
    /// The miss list in its order: g * K + i, id, slot.
    pub miss: &'a [[i32; 3]],
    /// Where each core's part of the miss list begins, and its end: C + 1.
    pub cut: &'a [i32],
}

impl Results {
    /// Empty results of a geometry.
    pub fn new(tokens: usize, k: usize, cores: usize) -> Self {
        let (slot, hit, misses) = (Vec::new(), Vec::new(), Vec::new());
        let (miss, cut, tag) = (Vec::new(), Vec::new(), Vec::new());
        Self { tokens, k, cores, slot, hit, misses, miss, cut, tag }
    }

    /// Steps pushed so far.
    pub fn steps(&self) -> usize {
        self.misses.len() / self.tokens.max(1)
    }

    /// Adds one step.
    pub fn push(&mut self, step: StepResults<'_>) -> Result<()> {
        let ids = self.tokens * self.k;
        for (what, found, due) in [
            ("slots of a step", step.slot.len(), ids),
            ("hits of a step", step.hit.len(), ids),
            ("tags of a step", step.tag.len(), ids),
            ("miss counts of a step", step.misses.len(), self.tokens),
            ("cuts of a step", step.cut.len(), self.cores + 1),
        ] {
            if found != due {
                let limit = format!("the geometry has {due}");
                return Err(Error::invalid(what, found, limit, "push whole steps"));
            }
        }
        let number = self.steps() as i32;
        self.slot.extend_from_slice(step.slot);
        self.hit.extend_from_slice(step.hit);
        self.tag.extend_from_slice(step.tag);
        self.misses.extend_from_slice(step.misses);
        self.cut.extend_from_slice(step.cut);
        self.miss.extend(step.miss.iter().flat_map(|&[at, id, slot]| [number, at, id, slot]));
        Ok(())
    }

    /// Writes `slot`, `hit`, `misses`, `miss`, `cut` and `tag` into an `.npz`.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let (steps, tokens, k) = (self.steps(), self.tokens, self.k);
        let mut out = Writer::create(path.as_ref())?;
        out.array("slot", &[steps, tokens, k], &self.slot)?;
        out.array("hit", &[steps, tokens, k], &self.hit)?;
        out.array("misses", &[steps, tokens], &self.misses)?;
        out.array("miss", &[self.miss.len() / 4, 4], &self.miss)?;
        out.array("cut", &[steps, self.cores + 1], &self.cut)?;
        out.array("tag", &[steps, tokens, k], &self.tag)?;
        out.finish()
    }
}
