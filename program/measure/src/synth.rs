//! The paper's synthetic workload: a trace whose reuse between steps is a parameter.
//!
//! The context has a fixed length. Each step takes round(gamma * K) ids of the previous step, chosen
//! uniformly. A share of the other ids was selected earlier, but not in the previous step; each step
//! draws this share from N(mu, 0.01) and clamps it to [0, 1]. These ids are sampled without
//! replacement with weight e^-(age - 2), where age is the number of steps since the last use. The
//! remaining ids were never selected before. **When the context has no such id left, the least
//! recently used ids take their place** (with 16384 ids and K = 2048 this happens within tens of
//! steps, sooner for small gamma). If too few ids were selected earlier, new ids take their place.
//!
//! Only splitmix64 and libm are used, so a seed gives the same trace on every machine.

use crate::checks::require;
use crate::splitmix::SplitMix64;
use crate::trace::{MAX_ID, Trace};
use avsg::Result;

/// The context length of the paper's experiments.
pub const CONTEXT: usize = 16384;
/// The standard deviation of the share of ids that return.
const SIGMA: f64 = 0.01;

/// The parameters of a synthetic trace.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Synth {
    /// Share of a step's ids that the previous step selected too, 0 to 1.
    pub gamma: f64,
    /// Mean share of the other ids that an earlier step selected, 0 to 1.
    pub mu: f64,
    /// K, the number of ids per step; 1 to `context`.
    pub k: usize,
    /// Number of steps, at least 1.
    pub steps: usize,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Context length, the number of ids to choose from; [`CONTEXT`] in the paper.
    pub context: usize,
}

impl Synth {
    /// Generates the trace: one token per step, ids in random order, no `stable`.
    pub fn trace(&self) -> Result<Trace> {
        self.trace_with(|| ())
    }

    /// Generates the same trace, and calls `each` after each step.
    pub fn trace_with(&self, mut each: impl FnMut()) -> Result<Trace> {
        self.check()?;
        let mut generator = Generator::new(self);
        let mut ids = Vec::with_capacity(self.steps * self.k);
        for step in 0..self.steps {
            let row = generator.step(self, step);
            ids.extend_from_slice(&row);
            each();
        }
        Trace::new(ids, None, [self.steps, 1, self.k])
    }

    /// Refuses parameters of which one is out of its range.
    ///
    /// # Errors
    /// The first such parameter, with its range.
    pub fn check(&self) -> Result<()> {
        for (what, share) in [("gamma", self.gamma), ("mu", self.mu)] {
            let limit = "it must be a share from 0 to 1";
            require((0.0..=1.0).contains(&share), what, share, limit, "pass 0.8 for 80 %")?;
        }
        let max = MAX_ID as usize + 1;
        let &Self { context, k, steps, .. } = self;
        let limit = format!("it must be 1 to {max} ids");
        let remedy = "choose 16384, as the paper";
        require((1..=max).contains(&context), "context", context, limit, remedy)?;
        let limit = format!("it must be 1..={context}, and the context has {context} ids");
        require((1..=context).contains(&k), "k", k, limit, "choose 2048, for example")?;
        let most = (1 << 29) / k;
        let limit = format!("it must be 1 to {most} for this K");
        require((1..=most).contains(&steps), "steps", steps, limit, "choose a number in this range")
    }
}

/// The state of the generation.
struct Generator {
    random: SplitMix64,
    /// Ids of the previous step.
    previous: Vec<i32>,
    /// The last step that used each id; -1 for none.
    last_use: Vec<i64>,
    /// Ids that were never selected, in random order; they are taken from the end.
    fresh: Vec<i32>,
}

impl Generator {
    fn new(synth: &Synth) -> Self {
        let mut random = SplitMix64::new(synth.seed);
        let mut fresh: Vec<i32> = (0..synth.context as i32).collect();
        random.shuffle(&mut fresh);
        let last_use = vec![-1; synth.context];
        Self { random, previous: Vec::new(), last_use, fresh }
    }

    /// Generates the ids of one step.
    fn step(&mut self, synth: &Synth, step: usize) -> Vec<i32> {
        let now = step as i64;
        let mut row = std::mem::take(&mut self.previous);
        self.random.shuffle(&mut row);
        row.truncate(libm::round(synth.gamma * synth.k as f64) as usize);
        let rest = synth.k - row.len();
        let share = (synth.mu + SIGMA * normal(&mut self.random)).clamp(0.0, 1.0);
        row.iter().for_each(|&id| self.last_use[id as usize] = now);
        self.draw_returning(&mut row, now, libm::round(share * rest as f64) as usize);
        let new = (synth.k - row.len()).min(self.fresh.len());
        row.extend(self.fresh.drain(self.fresh.len() - new..));
        row.iter().for_each(|&id| self.last_use[id as usize] = now);
        self.take_oldest(&mut row, now, synth.k);
        self.random.shuffle(&mut row);
        self.previous.clone_from(&row);
        row
    }

    /// Draws `need` ids of age 2 or more. An id with weight w gets the key E / w, where E is
    /// exponentially distributed, and the ids with the smallest keys are taken: this samples without
    /// replacement. The logarithms of the keys are compared, because e^-(age - 2) of an old id is 0 in
    /// a double.
    fn draw_returning(&mut self, row: &mut Vec<i32>, now: i64, need: usize) {
        // (sampling key, id) of each id that may return.
        let mut keyed: Vec<(f64, i32)> = Vec::new();
        for (id, &last) in self.last_use.iter().enumerate() {
            let age = now - last;
            if last >= 0 && age >= 2 {
                let exponential = -libm::log(self.random.unit());
                keyed.push((libm::log(exponential) + (age - 2) as f64, id as i32));
            }
        }
        keyed.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        row.extend(keyed.iter().take(need).map(|&(_, id)| id));
    }

    /// Fills the row up to `k` ids with the least recently used ids that it does not contain.
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
}

/// Draws from N(0, 1) with the Box-Muller transform, of which one value of the pair is used.
pub fn normal(random: &mut SplitMix64) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(random.unit()));
    radius * libm::cos(std::f64::consts::TAU * random.unit())
}
