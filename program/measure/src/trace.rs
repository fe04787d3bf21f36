//! A recorded top-K trace: the ids that every token of every decode step selected.

mod part;
mod read;
mod reselected;
mod source;

use std::path::Path;

pub use part::{Pick, TracePart};
pub use reselected::Repeats;

use crate::checks::require;
use crate::npz;
use crate::splitmix::{GAMMA, SplitMix64, mix};
use avsg::device::params::ID_LIMIT;
use avsg::{Error, Result};

/// The largest id that a table takes.
pub const MAX_ID: i32 = ID_LIMIT - 1;

/// The selected ids of a sequence of decode steps. One token's ids are a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// `[steps, tokens, k]` ids, row after row; a negative id is padding.
    pub ids: Vec<i32>,
    /// `[steps]`: the number of tokens whose KV was final before the step; -1 if it is not known, and
    /// then no row is fresh.
    pub stable: Option<Vec<i32>>,
    /// Number of decode steps.
    pub steps: usize,
    /// N_q, the number of tokens per step.
    pub tokens: usize,
    /// K, the number of ids per token.
    pub k: usize,
}

impl Trace {
    /// Creates a trace and checks it: the sizes must agree, ids must be at most [`MAX_ID`] and, where
    /// `stable` is known, those of tokens up to the end of the step; values of `stable` must be -1 or a token count.
    pub fn new(
        ids: Vec<i32>,
        stable: Option<Vec<i32>>,
        [steps, tokens, k]: [usize; 3],
    ) -> Result<Self> {
        let shape = format!("shape [{steps}, {tokens}, {k}]");
        let some = steps > 0 && tokens > 0 && k > 0;
        let limit = "steps, tokens and K must each be at least 1";
        require(some, "trace", &shape, limit, "record at least one row of ids")?;
        let values = steps.checked_mul(tokens).and_then(|rows| rows.checked_mul(k));
        let limit = format!("{} ids were given", ids.len());
        let all = values == Some(ids.len());
        require(all, "trace", shape, limit, "pass steps * tokens * K ids")?;
        let trace = Self { ids, stable, steps, tokens, k };
        trace.check_stable()?;
        trace.check_ids()?;
        Ok(trace)
    }

    /// Writes an `.npz` with `ids` and, if there is one, `stable`.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let ids = npz::array(&[self.steps, self.tokens, self.k], &self.ids);
        let mut arrays = vec![("ids", ids)];
        let stable = self.stable.iter().map(|stable| npz::array(&[self.steps], stable));
        arrays.extend(stable.map(|array| ("stable", array)));
        npz::write(path.as_ref(), &arrays)
    }

    /// Returns the largest id; `None` if every id is padding.
    pub fn largest_id(&self) -> Option<i32> {
        self.ids.iter().copied().max().filter(|&id| id >= 0)
    }

    /// Returns the rows that the trace has at its end: one per id, and one per token of the steps that have `stable`.
    pub fn rows(&self) -> usize {
        let own = self.stable.iter().flatten().filter(|&&stable| stable >= 0).max();
        let own = own.map_or(1, |&stable| stable as usize + self.tokens);
        own.max(self.largest_id().map_or(1, |id| id as usize + 1))
    }

    /// Returns the ids of one token.
    ///
    /// # Panics
    /// Panics if the step or the token is outside the trace.
    pub fn row(&self, step: usize, token: usize) -> &[i32] {
        let step = &self.ids[step * self.tokens * self.k..][..self.tokens * self.k];
        &step[token * self.k..][..self.k]
    }

    /// Returns the same rows with every token as a step of its own. Token g of a step has g more stable
    /// tokens than the step, so it must not select a later token of the step.
    pub fn as_mtp0(&self) -> Result<Self> {
        let per_token =
            |&n: &i32| (0..self.tokens as i32).map(move |g| if n < 0 { -1 } else { n + g });
        let stable = self.stable.as_ref().map(|s| s.iter().flat_map(per_token).collect());
        Self::new(self.ids.clone(), stable, [self.steps * self.tokens, 1, self.k])
    }

    /// Returns the trace with the ids of each row in random order. Recorded rows may be sorted, which
    /// makes a matcher that sorts look faster than it is.
    pub fn shuffled(&self, seed: u64) -> Self {
        let mut random = SplitMix64::new(seed);
        let mut out = self.clone();
        out.ids.chunks_exact_mut(self.k).for_each(|row| random.shuffle(row));
        out
    }

    /// Keeps the `k` ids with the smallest hashes of every row, in their order; padding is dropped
    /// first. The hash depends on the id alone, so all occurrences of an id are kept or dropped
    /// together, which preserves the reuse between rows.
    pub fn take_k(&self, k: usize) -> Result<Self> {
        let limit = format!("it must be 1..={}, because the trace has {0} ids per token", self.k);
        let fits = (1..=self.k).contains(&k);
        require(fits, "K", k, limit, "choose a number in this range")?;
        let hash = |id: i32| if id < 0 { u64::MAX } else { mix(id as u64 + GAMMA) };
        let mut ids = Vec::with_capacity(self.ids.len() / self.k * k);
        let mut keys = Vec::with_capacity(self.k);
        for row in self.ids.chunks_exact(self.k) {
            keys.clear();
            keys.extend(row.iter().enumerate().map(|(i, &id)| (hash(id), i)));
            keys.select_nth_unstable(k - 1);
            keys[..k].sort_unstable_by_key(|&(_, i)| i);
            ids.extend(keys[..k].iter().map(|&(_, i)| row[i]));
        }
        Ok(Self { ids, k, stable: self.stable.clone(), ..*self })
    }

    /// Returns the first `steps` steps, or all of them if there are fewer.
    pub fn truncated(&self, steps: usize) -> Result<Self> {
        require(steps > 0, "steps", 0, "a trace has at least 1", "choose 1 or more")?;
        let steps = steps.min(self.steps);
        let ids = self.ids[..steps * self.tokens * self.k].to_vec();
        let stable = self.stable.as_ref().map(|s| s[..steps].to_vec());
        Ok(Self { ids, stable, steps, ..*self })
    }

    fn check_stable(&self) -> Result<()> {
        let Some(stable) = &self.stable else { return Ok(()) };
        let value = format!("{} values", stable.len());
        let limit = format!("the trace has {} steps", self.steps);
        let whole = stable.len() == self.steps;
        require(whole, "stable", value, limit, "give one value per step")?;
        // The tokens of the step itself also need ids below the limit.
        let max = MAX_ID + 1 - (self.tokens.min(MAX_ID as usize) as i32);
        let Some(step) = stable.iter().position(|&n| n < -1 || n > max) else { return Ok(()) };
        let value = format!("{} at step {step}", stable[step]);
        let limit = format!("it must be a token count from 0 to {max}, or -1");
        Err(Error::invalid("stable", value, limit, "use -1 where it is not known"))
    }

    /// Checks that each id has a row at the end of its step.
    fn check_ids(&self) -> Result<()> {
        let words = self.tokens * self.k;
        for (step, ids) in self.ids.chunks_exact(words).enumerate() {
            let stable = self.stable.as_ref().map_or(-1, |stable| stable[step]);
            let end = if stable < 0 { ID_LIMIT } else { stable + self.tokens as i32 };
            let Some(at) = ids.iter().position(|&id| id >= end) else { continue };
            let (id, row, position) = (ids[at], at / self.k, at % self.k);
            let value = format!("{id} at step {step}, row {row}, position {position}");
            let own = self.tokens;
            let (limit, remedy) = if id > MAX_ID {
                let limit = format!("the largest supported id is {MAX_ID} (2^24 - 1)");
                (limit, "cut the context or renumber the tokens")
            } else {
                (
                    format!(
                        "it must be below {end}: {stable} stable tokens and the step's own {own}"
                    ),
                    "count `stable` from the start of the prompt, and record only ids of tokens up to the end of the step",
                )
            };
            return Err(Error::invalid("id", value, limit, remedy));
        }
        Ok(())
    }
}

/// Returns the name of a trace's file for messages.
pub fn name_of(path: &Path) -> String {
    if path.as_os_str() == "-" { "standard input".to_owned() } else { path.display().to_string() }
}
