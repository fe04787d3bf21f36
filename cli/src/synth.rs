//! The paper's synthetic workload: ids whose reuse between steps is set, not recorded.
//!
//! The context is fixed. Each step takes round(gamma * K) ids of the previous step, chosen uniformly.
//! Of the rest, a share drawn anew from N(mu, 0.01) and clamped to [0, 1] was seen earlier but not in
//! the previous step: sampled without replacement with weight e^-(age - 2), age being the steps since
//! the last use. The others were never selected before. **When the context has no such id left, the
//! least recently used ids take their place** (with 16384 ids and K = 2048 that comes within tens of
//! steps, sooner for small gamma), and where too few were seen earlier, new ones do.
//!
//! Only splitmix64 and libm are used, so a seed gives the same trace on every machine.

use crate::trace::{MAX_ID, Trace};
use avsg::{Error, Result};
use avsg_testkit::splitmix::SplitMix64;

/// The context of the paper's experiments.
pub const CONTEXT: usize = 16384;
/// The deviation of the share of ids that return.
const SIGMA: f64 = 0.01;

/// What to generate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Synth {
    /// Share of a step's ids that the previous step selected, too.
    pub gamma: f64,
    /// Of the other ids, the mean share that an earlier step selected.
    pub mu: f64,
    /// Ids of a step, K.
    pub k: usize,
    /// Steps.
    pub steps: usize,
    /// Of the random numbers.
    pub seed: u64,
    /// Ids to choose from; [`CONTEXT`] in the paper.
    pub context: usize,
}

impl Synth {
    /// Generates the trace: one token a step, rows in random order, no `stable`.
    pub fn trace(&self) -> Result<Trace> {
        self.check()?;
        let mut run = Run::new(self);
        let mut ids = Vec::with_capacity(self.steps * self.k);
        for step in 0..self.steps {
            let row = run.step(self, step);
            ids.extend_from_slice(&row);
        }
        Trace::new(ids, None, [self.steps, 1, self.k])
    }

    fn check(&self) -> Result<()> {
        for (what, share) in [("gamma", self.gamma), ("mu", self.mu)] {
            if !(0.0..=1.0).contains(&share) {
                let limit = "it is a share from 0 to 1";
                return Err(Error::invalid(what, share, limit, "pass 0.8 for 80 %"));
            }
        }
        let most = MAX_ID as usize + 1;
        if self.context == 0 || self.context > most {
            let limit = format!("it is 1 to {most} ids");
            return Err(Error::invalid("context", self.context, limit, "the paper has 16384"));
        }
        if self.k == 0 || self.k > self.context {
            let limit = format!("the context has {} ids", self.context);
            return Err(Error::invalid("k", self.k, limit, "choose 1 to that many"));
        }
        if self.steps == 0 || self.steps.saturating_mul(self.k) > 1 << 29 {
            let limit = format!("it is 1 to {} for this K", (1 << 29) / self.k);
            return Err(Error::invalid("steps", self.steps, limit, "generate fewer steps"));
        }
        Ok(())
    }
}

/// The generator under way.
struct Run {
    random: SplitMix64,
    previous: Vec<i32>,
    /// The step that used an id last; -1 for never.
    last_use: Vec<i64>,
    /// Ids never selected, in random order; taken from the end.
    fresh: Vec<i32>,
    /// Ids that may return, with the key by which they are drawn.
    race: Vec<(f64, i32)>,
}

impl Run {
    fn new(synth: &Synth) -> Self {
        let mut random = SplitMix64::new(synth.seed);
        let mut fresh: Vec<i32> = (0..synth.context as i32).collect();
        random.shuffle(&mut fresh);
        let last_use = vec![-1; synth.context];
        Self { random, previous: Vec::new(), last_use, fresh, race: Vec::new() }
    }

    fn step(&mut self, synth: &Synth, step: usize) -> Vec<i32> {
        let now = step as i64;
        let mut row = std::mem::take(&mut self.previous);
        self.random.shuffle(&mut row);
        row.truncate(libm::round(synth.gamma * synth.k as f64) as usize);
        let rest = synth.k - row.len();
        let share = (synth.mu + SIGMA * self.normal()).clamp(0.0, 1.0);
        row.iter().for_each(|&id| self.last_use[id as usize] = now);
        self.draw_seen(&mut row, now, libm::round(share * rest as f64) as usize);
        let new = (synth.k - row.len()).min(self.fresh.len());
        row.extend(self.fresh.drain(self.fresh.len() - new..));
        row.iter().for_each(|&id| self.last_use[id as usize] = now);
        self.take_oldest(&mut row, now, synth.k);
        self.random.shuffle(&mut row);
        self.previous.clone_from(&row);
        row
    }

    /// Draws `need` ids of age 2 or more. The id with weight w gets the key E / w, E exponentially
    /// distributed, and the smallest keys win: that is sampling without replacement. Logarithms,
    /// because e^-(age - 2) of an old id is 0 in a double.
    fn draw_seen(&mut self, row: &mut Vec<i32>, now: i64, need: usize) {
        self.race.clear();
        for (id, &last) in self.last_use.iter().enumerate() {
            let age = now - last;
            if last >= 0 && age >= 2 {
                let wait = -libm::log(self.random.unit());
                self.race.push((libm::log(wait) + (age - 2) as f64, id as i32));
            }
        }
        self.race.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        row.extend(self.race.iter().take(need).map(|&(_, id)| id));
    }

    /// Fills the row with the least recently used ids that it does not hold.
    fn take_oldest(&mut self, row: &mut Vec<i32>, now: i64, k: usize) {
        if row.len() == k {
            return;
        }
        let unused = self.last_use.iter().enumerate().filter(|&(_, &last)| last < now);
        let mut oldest: Vec<(i64, i32)> = unused.map(|(id, &last)| (last, id as i32)).collect();
        oldest.sort_unstable();
        for &(_, id) in oldest.iter().take(k - row.len()) {
            self.last_use[id as usize] = now;
            row.push(id);
        }
    }

    /// A draw from N(0, 1) (Box-Muller, one of the pair).
    fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(self.random.unit()));
        radius * libm::cos(std::f64::consts::TAU * self.random.unit())
    }
}
