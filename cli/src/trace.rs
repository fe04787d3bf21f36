//! A recorded top-K trace: which ids every token of every decode step selected.

mod read;

use std::path::Path;

use crate::npz::Writer;
use avsg::{Error, Result};
use avsg_testkit::splitmix::{GAMMA, SplitMix64, mix};

/// The largest id: 2^22 - 1, what the overflow-free hash of the tables takes.
pub const MAX_ID: i32 = (1 << 22) - 1;

/// Ids of `steps` decode steps, `tokens` rows in each (N_q) and `k` ids in each row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Row after row, [steps, tokens, k]; a negative id is padding.
    pub ids: Vec<i32>,
    /// For each step how many tokens had final KV before it; -1: not known, nothing is fresh.
    pub stable: Option<Vec<i32>>,
    /// Decode steps.
    pub steps: usize,
    /// Tokens of a step, N_q.
    pub tokens: usize,
    /// Ids of a token, K.
    pub k: usize,
}

impl Trace {
    /// A checked trace: sizes agree, no id above [`MAX_ID`], `stable` -1 or a token count.
    pub fn new(
        ids: Vec<i32>,
        stable: Option<Vec<i32>>,
        [steps, tokens, k]: [usize; 3],
    ) -> Result<Self> {
        let shape = format!("shape [{steps}, {tokens}, {k}]");
        if steps == 0 || tokens == 0 || k == 0 {
            let limit = "steps, tokens and K must each be at least 1";
            return Err(Error::invalid("trace", shape, limit, "record at least one row of ids"));
        }
        let values = steps.checked_mul(tokens).and_then(|rows| rows.checked_mul(k));
        if values != Some(ids.len()) {
            let limit = format!("{} ids were given", ids.len());
            return Err(Error::invalid("trace", shape, limit, "pass steps * tokens * K ids"));
        }
        let trace = Self { ids, stable, steps, tokens, k };
        trace.check_ids()?;
        trace.check_stable()?;
        Ok(trace)
    }

    /// Reads `.npy` (ids, int32 [steps, N_q, K] or [steps, K]) or `.npz` (`ids` and optionally
    /// `stable`, or the compressed form of gaps in two byte planes).
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        read::read(path.as_ref())
    }

    /// Writes `.npz` with `ids` and, where known, `stable`.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let mut out = Writer::create(path.as_ref())?;
        out.array("ids", &[self.steps, self.tokens, self.k], &self.ids)?;
        if let Some(stable) = &self.stable {
            out.array("stable", &[self.steps], stable)?;
        }
        out.finish()
    }

    /// The ids of one token.
    ///
    /// # Panics
    /// If the step or the token is outside the trace, as indexing does.
    pub fn row(&self, step: usize, token: usize) -> &[i32] {
        assert!(token < self.tokens, "token {token} of {}", self.tokens);
        let row = step * self.tokens + token;
        &self.ids[row * self.k..(row + 1) * self.k]
    }

    /// The same rows with each token a step of its own; token g of a step sees g more stable tokens.
    pub fn as_mtp0(&self) -> Self {
        let each = |&n: &i32| (0..self.tokens as i32).map(move |g| if n < 0 { -1 } else { n + g });
        let stable = self.stable.as_ref().map(|s| s.iter().flat_map(each).collect());
        let steps = self.steps * self.tokens;
        Self { ids: self.ids.clone(), stable, steps, tokens: 1, k: self.k }
    }

    /// Permutes the ids inside each row: recorded rows may be sorted, which flatters a sort.
    pub fn shuffled(&self, seed: u64) -> Self {
        let mut random = SplitMix64::new(seed);
        let mut out = self.clone();
        out.ids.chunks_exact_mut(self.k).for_each(|row| random.shuffle(row));
        out
    }

    /// Keeps the `k` ids of least hash of every row, in their order; padding goes first. The hash
    /// depends on the id alone, so ids that return in later rows are kept or dropped together and
    /// the reuse between rows survives.
    pub fn take_k(&self, k: usize) -> Result<Self> {
        if k == 0 || k > self.k {
            let limit = format!("the trace has {} ids in a row", self.k);
            return Err(Error::invalid("k", k, limit, "choose 1 to that many"));
        }
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
        Ok(Self { ids, k, ..self.without_ids() })
    }

    /// The first `steps` steps, or all where there are fewer.
    pub fn truncated(&self, steps: usize) -> Result<Self> {
        if steps == 0 {
            return Err(Error::invalid(
                "steps",
                0,
                "a trace has at least 1",
                "ask for one or more",
            ));
        }
        let steps = steps.min(self.steps);
        let ids = self.ids[..steps * self.tokens * self.k].to_vec();
        let stable = self.stable.as_ref().map(|s| s[..steps].to_vec());
        Ok(Self { ids, stable, steps, ..self.without_ids() })
    }

    fn without_ids(&self) -> Self {
        Self { ids: Vec::new(), stable: self.stable.clone(), ..*self }
    }

    fn check_ids(&self) -> Result<()> {
        let Some(at) = self.ids.iter().position(|&id| id > MAX_ID) else { return Ok(()) };
        let (row, position) = (at / self.k, at % self.k);
        let (step, token) = (row / self.tokens, row % self.tokens);
        let value = format!("{} at step {step}, row {token}, position {position}", self.ids[at]);
        let limit = format!("the largest supported id is {MAX_ID} (2^22 - 1)");
        Err(Error::invalid("id", value, limit, "cut the context or renumber the tokens"))
    }

    fn check_stable(&self) -> Result<()> {
        let Some(stable) = &self.stable else { return Ok(()) };
        if stable.len() != self.steps {
            let limit = format!("the trace has {} steps", self.steps);
            let value = format!("{} values", stable.len());
            return Err(Error::invalid("stable", value, limit, "give one value a step"));
        }
        // The rows of the step itself must have ids, too.
        let top = MAX_ID + 1 - (self.tokens.min(MAX_ID as usize) as i32);
        let Some(step) = stable.iter().position(|&n| n < -1 || n > top) else { return Ok(()) };
        let value = format!("{} at step {step}", stable[step]);
        let limit = format!("it is a token count from 0 to {top}, or -1");
        Err(Error::invalid("stable", value, limit, "use -1 where it is not known"))
    }
}
