//! Random steps of one request, which run natively or in the interpreter.

use avsg_device::learned::{LIFETIMES, part};
use avsg_device::machine::cpu::{Cpu, Scalar};
use avsg_device::memory;
use avsg_device::params::{ID_LIMIT, Lifetime, MAX_TOKENS, NO_STABLE_LEN, Params};
use avsg_device::request::{self as stage, Blocks, MissList, Rows, Share, Span, record};
use avsg_device::sequential::Sequential;
use avsg_device::stage_one::stage_one;
use avsg_device::state::{EMPTY, State};
use avsg_device::vector_core::{VectorCore, refresh_deferred};
use avsg_device::work::{split_work, work_words};
use avsg_linker::replay::Replay;
use avsg_linker::tape::Tape;

/// SplitMix64, a random generator whose output depends on the seed only.
pub struct SplitMix64(pub u64);

impl SplitMix64 {
    /// Returns a number below `n`, or 0 if `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n.max(1)
    }

    /// Returns true with probability 1 / n.
    pub fn one_in(&mut self, n: u64) -> bool {
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
}

/// Returns a random sequence of steps with a growing context and a selection that changes slowly,
/// and with rollbacks, changes of generation, invalid ids and invalid blocks. In a sequence of more than 100
/// steps one in 120 changes the generation, so that some generations learn values. Without a block table the
/// context of every second sequence is nearly as long as it can be.
pub fn sequence(p: &Params, random: &mut SplitMix64, steps: usize) -> Vec<Request> {
    let far = p.page == 0 && random.0 % 2 == 1;
    let longest = ID_LIMIT as u64 - 16 * steps as u64;
    let (mut generation, mut base) = (7, 0);
    let mut length = if far { longest } else { 2 * u64::from(p.slots) };
    let mut next = || step(p, random, steps > 100, &mut generation, &mut length, &mut base);
    (0..steps).map(|_| next()).collect()
}

/// Gives a third of the steps a table with values of lifetimes that no request would learn.
pub fn scramble(steps: &mut [Request], random: &mut SplitMix64) {
    for step in steps {
        step.values = random.one_in(3).then_some(random.0);
    }
}

fn step(
    p: &Params,
    random: &mut SplitMix64,
    lasting: bool,
    generation: &mut i32,
    length: &mut u64,
    base: &mut u64,
) -> Request {
    let action = random.below(10);
    *generation += i32::from(action == 0 && (!lasting || random.one_in(12)));
    *length = if action < 3 { *length * 3 / 4 } else { *length + random.below(9) };
    let tokens = if random.one_in(8) { 0 } else { 1 + random.below(p.tokens.into()) };
    let k = if random.one_in(3) { 1 + random.below(p.k.into()) } else { p.k.into() };
    let limit = *length + tokens;
    let stable = if random.one_in(5) { NO_STABLE_LEN } else { *length as i32 };
    let stride = k + random.below(3);
    let (ids_at, slot_at, slack) = (random.below(5), random.below(5), 8);
    // Most steps select nearly the ids of the last step. Some jump to another base, and some select
    // every 16th id.
    *base = if random.one_in(4) { random.below(*length) } else { *base + 3 };
    let (base, stretch) = (*base, if random.one_in(6) { 16 } else { 1 });
    let ids = (0..ids_at + stride * tokens + slack)
        .map(|n| match random.below(40) {
            0 => -1,
            1 => i32::MIN + random.below(9) as i32,
            2 => limit as i32 + random.below(3) as i32,
            3 => i32::MAX - random.below(2) as i32,
            4..8 => random.below(limit) as i32,
            8 => (limit - 1 - random.below(tokens + 1)) as i32,
            9..12 => (base % limit) as i32,
            _ => ((base + n * stretch % u64::from(p.slots)) % limit) as i32,
        })
        .collect();
    let pages = limit / u64::from(p.page.max(1)) + 1;
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
        ("generation", *generation),
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
        ("record_at", record::WORDS as i32),
        ("shared", random.below(2) as i32),
        ("share_at", 0),
        ("share_len", k as i32),
        ("deferred", if random.one_in(3) { 0 } else { tokens as i32 }),
    ];
    let slots = (slot_at + stride * tokens + slack) as usize;
    let misses = (5 + k * tokens.max(1) + slack) as usize;
    Request { params, ids, blocks, slots, misses, values: None }
}

/// Contents after a step: the named planes of the table, and the outputs.
#[derive(Clone)]
pub struct StepState {
    pub words: Vec<(&'static str, Vec<i32>)>,
    pub life: Vec<i8>,
}

const PLANES: [&str; 4] = ["header", "id", "link", "learned"];

impl StepState {
    /// Returns the words of a table.
    pub fn table(&self, p: &Params) -> Vec<i32> {
        let mut words = vec![0; memory::table_words(p)];
        {
            let mut s: State<'_, avsg_device::machine::emu::Emu<1>> =
                memory::split_state(p, &mut words);
            s.header.copy_from_slice(self.output("header"));
            s.id.words_mut().fill(EMPTY);
            s.id.words_mut()[..p.slots as usize].copy_from_slice(self.output("id"));
            s.link.words_mut().copy_from_slice(self.output("link"));
            s.life.slots_mut().copy_from_slice(&self.life);
            s.learned.unwrap_or_default().copy_from_slice(self.output("learned"));
        }
        words
    }

    /// Returns the outputs of the last step.
    pub fn results(&self) -> &[(&'static str, Vec<i32>)] {
        &self.words[PLANES.len()..]
    }

    /// Returns an empty table without outputs.
    pub fn clear(p: &Params) -> Self {
        let mut words = vec![0; memory::state_words(p)];
        memory::clear_state(p, &mut words);
        Self::from_words(p, &mut words, Vec::new())
    }

    fn from_words(p: &Params, words: &mut [i32], outputs: Vec<(&'static str, Vec<i32>)>) -> Self {
        let s: State<'_, avsg_device::machine::emu::Emu<1>> = memory::split_state(p, words);
        let learned = s.learned.map(|words| words.to_vec()).unwrap_or_default();
        let ids = s.id.words()[..p.slots as usize].to_vec();
        let planes = [s.header.to_vec(), ids, s.link.words().to_vec(), learned];
        let words = PLANES.into_iter().zip(planes).chain(outputs).collect();
        Self { words, life: s.life.slots().to_vec() }
    }

    /// Returns the outputs before a step, filled with a value that reveals stray writes.
    fn outputs(step: &Request) -> [(&'static str, Vec<i32>); 7] {
        let fill = |n: usize| vec![-77; n];
        [
            ("gm_slot", fill(step.slots)),
            ("gm_valid", fill(MAX_TOKENS as usize + 8)),
            ("gm_miss_pos", fill(step.misses)),
            ("gm_miss_id", fill(step.misses)),
            ("gm_miss_slot", fill(step.misses)),
            ("gm_miss_row", fill(step.misses)),
            ("gm_record", fill(3 * record::WORDS)),
        ]
    }

    /// Runs a step on a native machine and returns the new state.
    pub fn native<C: Cpu>(&mut self, m: C, p: &Params, step: &Request) -> Self {
        let mut words = self.table(p);
        // The pattern reveals a kernel that reads work memory that it did not write.
        let mut work = vec![0x5A5A_5A5A; work_words::<Sequential>(p)];
        let mut outputs = Self::outputs(step);
        let [slot, valid, position, id, miss_slot, row, record] = &mut outputs;
        let word = |name| Scalar::new(step.param(name));
        let mut request = stage::Request::<'_, C> {
            tokens: word("tokens"),
            k: word("k"),
            generation: word("generation"),
            stable: word("stable"),
            limit: word("limit"),
            rows: word("rows"),
            ids: Rows { words: &step.ids, at: word("ids_at"), stride: word("ids_stride") },
            blocks: Blocks { words: &step.blocks, at: word("blocks_at"), len: word("blocks_len") },
            slot: Rows { words: &mut slot.1, at: word("slot_at"), stride: word("slot_stride") },
            valid: Span { words: &mut valid.1, at: word("valid_at") },
            misses: MissList {
                position: &mut position.1,
                id: &mut id.1,
                slot: &mut miss_slot.1,
                row: &mut row.1,
                at: word("miss_at"),
            },
            record: Span { words: &mut record.1, at: word("record_at") },
            share: Share { shared: word("shared"), at: word("share_at"), len: word("share_len") },
            deferred: word("deferred"),
        };
        let mut state = memory::split_state(p, &mut words);
        let mut work = split_work::<C, Sequential>(p, &mut work);
        stage_one(m, p, &mut state, &mut work, &mut request);
        *self = Self::from_words(p, &mut words, outputs.into());
        self.clone()
    }

    /// Runs a step in the interpreter and returns the new state.
    pub fn replay(&mut self, tape: &Tape, width: usize, step: &Request) -> Self {
        let mut replay = Replay::new(tape, width).unwrap();
        let outputs = Self::outputs(step);
        let planes =
            self.words[..PLANES.len()].iter().filter(|(name, _)| tape.find(name).is_some());
        for (name, words) in planes.chain(&outputs) {
            replay.bind(name, words.clone()).unwrap();
        }
        replay.bind("life", self.life.clone()).unwrap();
        replay.bind("gm_ids", step.ids.clone()).unwrap();
        replay.bind("gm_block_table", step.blocks.clone()).unwrap();
        for &(name, value) in &step.params {
            replay.set(name, value).unwrap();
        }
        replay.run().unwrap_or_else(|e| panic!("{e}"));
        let names = PLANES.into_iter().chain(outputs.iter().map(|o| o.0));
        let words = names.map(|name| (name, replay.take(name).unwrap_or_default())).collect();
        let life = replay.take("life").unwrap();
        *self = Self { words, life: life.into_iter().map(|byte| byte as i8).collect() };
        self.clone()
    }

    /// Gives the table the values that a step asks for.
    pub fn prepare(&mut self, p: &Params, step: &Request) {
        let Some(seed) = step.values.filter(|_| p.lifetime == Lifetime::Learned) else { return };
        let random = &mut SplitMix64(seed);
        let learned = &mut self.words[PLANES.len() - 1].1;
        learned[part::VALUES..LIFETIMES].fill_with(|| random.below(1 << 32) as i32);
    }

    /// Learns from a step.
    pub fn learn(&mut self, p: &Params) {
        if p.lifetime == Lifetime::Learned {
            let (mut words, outputs) = (self.table(p), self.results().to_vec());
            memory::learn(p, &mut words);
            *self = Self::from_words(p, &mut words, outputs);
        }
    }

    /// Does the refreshes that a step has deferred, and learns from it.
    pub fn finish(&mut self, p: &Params, step: &Request) {
        self.learn(p);
        let late = step.param("deferred") as usize;
        if late > 0 && VectorCore::serves(p) {
            let at =
                step.param("slot_at") as usize + (late - 1) * step.param("slot_stride") as usize;
            let slots = self.output("gm_slot")[at..][..step.param("k") as usize].to_vec();
            refresh_deferred(p, &mut self.life, &slots);
        }
    }

    /// Returns a plane or an output by its name.
    pub fn output(&self, name: &str) -> &[i32] {
        &self.words.iter().find(|o| o.0 == name).expect("a known output").1
    }

    /// Checks that two states are equal; `run` names the run in the message.
    pub fn expect_same(&self, want: &Self, run: &str) {
        for ((name, got), (_, want)) in self.words.iter().zip(&want.words) {
            let differs = got.iter().zip(want).position(|(a, b)| a != b);
            assert!(differs.is_none() && got.len() == want.len(), "{run}: {name} at {differs:?}");
        }
        let differs = self.life.iter().zip(&want.life).position(|(a, b)| a != b);
        assert!(differs.is_none(), "{run}: life at {differs:?}");
    }
}
