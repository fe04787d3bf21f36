//! Random steps of one request, which run natively or in the interpreter.

use std::ops::RangeInclusive;
use std::slice::IterMut;

use avsg_device::learned::{LIFETIMES, part};
use avsg_device::machine::cpu::Scalar;
use avsg_device::machine::declare::Arguments;
use avsg_device::machine::emu::Emu;
use avsg_device::memory::{self, links_end};
use avsg_device::one_request::{split_state, split_work, work_words};
use avsg_device::params::{ID_LIMIT, Lifetime, MAX_TOKENS, NO_STABLE_LEN, Params};
use avsg_device::request::{self as stage, summary};
use avsg_device::sequential::Sequential;
use avsg_device::stage_one::stage_one;
use avsg_device::vector_core::VectorCore;
use avsg_linker::tape::Tape;

use crate::replay::Replay;
use late_refresh::refresh_deferred;

#[path = "../../../../device/tests/kernels/late_refresh.rs"]
mod late_refresh;

/// SplitMix64, a random generator whose output depends on the seed only.
pub struct SplitMix64(pub u64);

impl SplitMix64 {
    /// Returns a number below `n`, or 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }

    /// Returns true with probability 1 / n.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// The input of one step of one request.
#[derive(Clone, Debug)]
pub struct Request {
    pub params: Vec<(&'static str, i32)>,
    pub ids: Vec<i32>,
    pub blocks: Vec<i32>,
    /// Words of the output `gm_slot`.
    pub slots: usize,
    /// Words of each miss list.
    pub misses: usize,
    /// What the random values of lifetimes are made from, which the table gets before the step; `None` if
    /// it has those that it has learned.
    pub values: Option<u64>,
}

impl Request {
    pub fn param(&self, name: &str) -> i32 {
        self.params.iter().find(|p| p.0 == name).expect("a known parameter").1
    }

    pub fn set(&mut self, name: &str, value: i32) {
        let param = self.params.iter_mut().find(|param| param.0 == name);
        param.expect("a known parameter").1 = value;
    }

    /// Returns a step that selects these ids, equally many for each token, in a context of `limit` ids whose blocks are in
    /// order. It has the other parameters of this one.
    pub fn selecting(&self, p: &Params, ids: Vec<i32>, tokens: i32, limit: i32) -> Self {
        let (k, blocks) = (ids.len() as i32 / tokens, limit / p.page.max(1) as i32);
        let params = self.params.iter().map(|&(name, value)| match name {
            "tokens" => (name, tokens),
            "k" | "ids_stride" | "slot_stride" => (name, k),
            "stable" | "limit" => (name, limit),
            "rows" | "blocks_len" => (name, blocks),
            "ids_at" | "blocks_at" | "shared" => (name, 0),
            _ => (name, value),
        });
        let (params, blocks, words) = (params.collect(), (0..blocks).collect(), ids.len() + 32);
        Self { params, ids, blocks, slots: words, misses: words, values: None }
    }
}

/// Returns a random sequence of steps with a growing context and a selection that changes slowly,
/// and with rollbacks, changes of generation, invalid ids and invalid blocks. In a sequence of more than 100
/// steps one in 120 changes the generation, so that some generations learn values. Without a block table the
/// context of every second sequence is nearly as long as it can be.
pub fn sequence(p: &Params, random: &mut SplitMix64, steps: usize) -> Vec<Request> {
    let far = p.page == 0 && random.0 % 2 == 1;
    let longest = ID_LIMIT as usize - 16 * steps;
    let (mut generation, mut base) = (7, 0);
    let mut length = if far { longest } else { 2 * p.slots as usize };
    let step = |_| {
        let action = random.below(10);
        generation += i32::from(action == 0 && (steps <= 100 || random.one_in(12)));
        length = if action < 3 { length * 3 / 4 } else { length + random.below(9) };
        let tokens = if random.one_in(8) { 0 } else { 1 + random.below(p.tokens as usize) };
        let k = if random.one_in(3) { 1 + random.below(p.k as usize) } else { p.k as usize };
        let limit = length + tokens;
        let stable = if random.one_in(5) { NO_STABLE_LEN } else { length as i32 };
        let stride = k + random.below(3);
        let (ids_at, slot_at, slack) = (random.below(5), random.below(5), 8);
        // Most steps select nearly the ids of the last step. Some jump to another base, and some select
        // every 16th id.
        base = if random.one_in(4) { random.below(length) } else { base + 3 };
        let (base, stretch) = (base, if random.one_in(6) { 16 } else { 1 });
        let ids = (0..ids_at + stride * tokens + slack)
            .map(|n| match random.below(40) {
                0 => -1,
                1 => i32::MIN + random.below(9) as i32,
                2 => limit as i32 + random.below(3) as i32,
                3 => i32::MAX - random.below(2) as i32,
                4..8 => random.below(limit) as i32,
                8 => (limit - 1 - random.below(tokens + 1)) as i32,
                9..12 => (base % limit) as i32,
                _ => ((base + n * stretch % p.slots as usize) % limit) as i32,
            })
            .collect();
        let pages = limit / p.page.max(1) as usize + 1;
        let rows = if random.one_in(2) { pages } else { pages * 7 / 8 };
        let blocks_at = random.below(4);
        // Without a block table there is none of the longest contexts, which would have millions of entries.
        let entries = if limit < 1 << 20 { pages } else { 0 };
        let blocks_len = if random.one_in(3) { entries * 3 / 4 } else { entries };
        let blocks = (0..blocks_at + blocks_len)
            .map(|_| if random.one_in(20) { i32::MIN } else { random.below(pages + 1) as i32 })
            .collect();
        let params = vec![
            ("tokens", tokens as i32),
            ("k", k as i32),
            ("generation", generation),
            ("stable", stable),
            ("limit", limit as i32),
            ("rows", rows as i32),
            ("ids_at", ids_at as i32),
            ("ids_stride", stride as i32),
            ("blocks_at", blocks_at as i32),
            ("blocks_len", blocks_len as i32),
            ("slot_at", slot_at as i32),
            ("slot_stride", stride as i32),
            ("valid_at", 3),
            ("miss_at", 5),
            ("summary_at", summary::WORDS as i32),
            ("shared", random.below(2) as i32),
            ("share_at", 0),
            ("share_len", k as i32),
            ("deferred", if random.one_in(3) { 0 } else { tokens as i32 }),
        ];
        let slots = slot_at + stride * tokens + slack;
        let misses = 5 + k * tokens.max(1) + slack;
        Request { params, ids, blocks, slots, misses, values: None }
    };
    (0..steps).map(step).collect()
}

/// Gives a third of the steps a table with values of lifetimes that no request would learn.
pub fn scramble(steps: &mut [Request], random: &mut SplitMix64) {
    for step in steps {
        step.values = random.one_in(3).then_some(random.0);
    }
}

/// The names of the outputs, in the order of the arguments.
const OUTPUTS: [&str; 7] = [
    "gm_slot",
    "gm_valid",
    "gm_miss_pos",
    "gm_miss_id",
    "gm_miss_slot",
    "gm_miss_row",
    "gm_summary",
];

/// The arguments of a request on a CPU machine, by their names.
struct ByName<'a> {
    step: &'a Request,
    outputs: IterMut<'a, (&'static str, Vec<i32>)>,
}

impl<'a> Arguments<'a, Emu<16>> for ByName<'a> {
    fn scalar(&mut self, name: &'static str, _: &'static str, _: RangeInclusive<i32>) -> Scalar {
        Scalar::new(self.step.param(name))
    }

    fn input(&mut self, name: &'static str) -> &'a [i32] {
        if name == "gm_ids" { &self.step.ids } else { &self.step.blocks }
    }

    fn output(&mut self, name: &'static str, _: RangeInclusive<i32>) -> &'a mut [i32] {
        let (next, words) = self.outputs.next().expect("an output");
        assert_eq!(*next, name);
        words
    }

    fn line(&mut self, name: &'static str, _: Scalar, _: &[(i32, &str)]) -> &'a mut [i32] {
        self.output(name, 0..=0)
    }
}

/// The table and the outputs of a step.
#[derive(Clone)]
pub struct StepState {
    p: Params,
    pub table: Vec<i32>,
    pub outputs: [(&'static str, Vec<i32>); 7],
}

/// A step, and the states before and after it, before deferred refreshes.
#[derive(Clone)]
pub struct Traced {
    pub step: Request,
    pub before: StepState,
    pub want: StepState,
}

impl StepState {
    /// Returns an empty table without outputs.
    pub fn clear(p: &Params) -> Self {
        let mut table = vec![0; memory::table_words(p)];
        memory::clear_state(p, &mut table[..memory::state_words(p)]);
        Self { p: *p, table, outputs: Default::default() }
    }

    /// Fills the outputs of a step with a value that reveals stray writes.
    pub fn fill_outputs(&mut self, step: &Request) {
        let (misses, summary) = (step.misses, 3 * summary::WORDS);
        let valid = MAX_TOKENS as usize + 8;
        let words = [step.slots, valid, misses, misses, misses, misses, summary];
        self.outputs = std::array::from_fn(|n| (OUTPUTS[n], vec![-77; words[n]]));
    }

    /// Runs a step on a native machine.
    pub fn native(&mut self, step: &Request) {
        self.fill_outputs(step);
        let mut arguments = ByName { step, outputs: self.outputs.iter_mut() };
        let mut request = stage::Request::declare(&self.p, &mut arguments);
        // The pattern reveals a kernel that reads work memory that it did not write.
        let mut work = vec![0x5A5A_5A5A; work_words(&self.p)];
        let mut state = split_state(&self.p, &mut self.table);
        let mut work = split_work(Sequential, &self.p, &mut work);
        stage_one(Emu::<16>, Sequential, &self.p, &mut state, &mut work, &mut request);
    }

    /// Runs a step in the interpreter.
    pub fn replay(&mut self, tape: &Tape, width: usize, step: &Request) {
        self.fill_outputs(step);
        let mut replay = Replay::new(tape, width).unwrap();
        let mut s = split_state::<Emu<1>>(&self.p, &mut self.table);
        replay.bind("life", s.life.slots().to_vec()).unwrap();
        let ids = &mut s.id.words_mut()[..self.p.slots as usize];
        let mut words = vec![("header", s.header), ("id", ids), ("link", s.link.words_mut())];
        words.extend(s.learned.map(|words| ("learned", words)));
        words.extend(self.outputs.iter_mut().map(|(name, words)| (*name, &mut words[..])));
        for (name, words) in &words {
            replay.bind(name, words.to_vec()).unwrap();
        }
        replay.bind("gm_ids", step.ids.clone()).unwrap();
        replay.bind("gm_block_table", step.blocks.clone()).unwrap();
        for &(name, value) in &step.params {
            replay.set(name, value).unwrap();
        }
        replay.run().unwrap_or_else(|e| panic!("{e}"));
        for (name, words) in words {
            words.copy_from_slice(&replay.take(name).unwrap());
        }
        let life = s.life.slots_mut().iter_mut().zip(replay.take("life").unwrap());
        life.for_each(|(byte, word)| *byte = word as i8);
    }

    /// Gives the table the values that a step asks for.
    pub fn prepare(&mut self, step: &Request) {
        let learns = self.p.lifetime == Lifetime::Learned;
        let Some(seed) = step.values.filter(|_| learns) else { return };
        let random = &mut SplitMix64(seed);
        self.table[links_end(&self.p)..][part::VALUES..LIFETIMES]
            .fill_with(|| random.below(1 << 32) as i32);
    }

    /// Learns from a step.
    pub fn learn(&mut self) {
        if self.p.lifetime == Lifetime::Learned {
            memory::learn(&self.p, &mut self.table);
        }
    }

    /// Does the refreshes that a step has deferred, and learns from it.
    pub fn finish(&mut self, step: &Request) {
        self.learn();
        let late = step.param("deferred") as usize;
        if late > 0 && VectorCore::serves(&self.p) {
            let at =
                step.param("slot_at") as usize + (late - 1) * step.param("slot_stride") as usize;
            let slots = self.output("gm_slot")[at..][..step.param("k") as usize].to_vec();
            let mut state = split_state::<Emu<1>>(&self.p, &mut self.table);
            refresh_deferred(&self.p, state.life.slots_mut(), &slots);
        }
    }

    /// Runs steps in the interpreter.
    pub fn trace(&mut self, tape: &Tape, steps: Vec<Request>) -> Vec<Traced> {
        let run_step = |step: Request| {
            self.prepare(&step);
            let before = self.clone();
            self.replay(tape, 16, &step);
            let want = self.clone();
            self.finish(&step);
            Traced { step, before, want }
        };
        steps.into_iter().map(run_step).collect()
    }

    /// Returns an output by its name.
    pub fn output(&self, name: &str) -> &[i32] {
        &self.outputs.iter().find(|o| o.0 == name).expect("a known output").1
    }

    /// Returns the first word that differs from that of another state.
    pub fn difference(&self, want: &Self) -> Option<String> {
        let first = |got: &[i32], want: &[i32], name: &str| {
            assert_eq!(got.len(), want.len(), "{name}");
            let at = got.iter().zip(want).position(|(a, b)| a != b)?;
            Some(format!("{name}[{at}] is {}, not {}", got[at], want[at]))
        };
        let mut outputs = self.outputs.iter().zip(&want.outputs);
        let differs = outputs.find_map(|((name, got), (_, want))| first(got, want, name));
        differs.or_else(|| first(&self.table, &want.table, "table"))
    }
}
