//! One request: its table, the working columns of a core, its outputs, and Stage One of a step on
//! any CPU machine. Every output lies between guard words, which no kernel may write.

use avsg_device::learned::{AFTER_HIT, LIFETIMES, part};
use avsg_device::machine::cpu::{Cpu, Scalar};
use avsg_device::machine::{Kernel, emu::Emu};
use avsg_device::memory::{clear_state, learn, life_at, links_end, table_words};
use avsg_device::one_request::{Compiled, StageOne, scheduled_words, split_state, split_work};
use avsg_device::params::{ID_LIMIT, Lifetime, NO_STABLE_LEN, Params};
use avsg_device::request::{Blocks, MissList, Request, Rows, Share, Span, summary};
use avsg_device::sequential::Sequential;
use avsg_device::stage_one::stage_one;
use avsg_device::state::{EMPTY, State, header};
use avsg_device::vector_core::VectorCore;

use super::splitmix::SplitMix64;

/// The inputs of a step.
#[derive(Clone, Debug)]
pub struct Step {
    pub generation: i32,
    pub stable: i32,
    pub limit: i32,
    pub rows: i32,
    /// All tokens have the same number of ids, at most K.
    pub tokens: Vec<Vec<i32>>,
    pub blocks: Vec<i32>,
}

impl Default for Step {
    fn default() -> Self {
        let (stable, limit, rows) = (NO_STABLE_LEN, ID_LIMIT, ID_LIMIT);
        Self { generation: 1, stable, limit, rows, tokens: vec![], blocks: vec![] }
    }
}

impl Step {
    /// Returns the number of ids of each token.
    pub fn k(&self) -> usize {
        self.tokens.first().map_or(0, Vec::len)
    }
}

impl From<Vec<Vec<i32>>> for Step {
    fn from(tokens: Vec<Vec<i32>>) -> Self {
        Self { tokens, ..Self::default() }
    }
}

/// One entry of the miss list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    pub pos: i32,
    pub id: i32,
    pub slot: i32,
    pub row: i32,
}

/// The outputs of a step, and the table after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub slots: Vec<Vec<i32>>,
    pub valid: Vec<i32>,
    pub misses: Vec<Miss>,
    /// The number n_g of misses of each token.
    pub counts: Vec<i32>,
    pub status: i32,
    pub header: Vec<i32>,
    pub id: Vec<i32>,
    pub life: Vec<i8>,
    pub link: Vec<i32>,
    /// What learned lifetimes keep, after the step was learned.
    pub learned: Vec<i32>,
}

/// What runs the steps of a request.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    /// [`Sequential`], as the library has compiled it for one lane or another machine.
    Cpu(fn(StageOne<'_>)),
    /// [`VectorCore`], if it serves the table. Devices run what is recorded of it; here a machine of eight lanes runs it.
    VectorCore,
}

/// One lane.
pub const SCALAR: Order = Order::Cpu(|stage_one| Emu.stage_one(stage_one));

/// The memory of a request. A test may change `state`, `order` and `shared` between steps.
#[derive(Clone)]
pub struct OneRequest {
    pub p: Params,
    pub order: Order,
    /// Whether the first token is probed as a shared one, by one core.
    pub shared: bool,
    /// The number of lifetimes that the deferred refresh of the last step changed.
    pub deferred: usize,
    pub state: Vec<i32>,
    work: Vec<i32>,
    /// Slots, valid counts, the four arrays of the miss list and the summary, each between its guards.
    pub outputs: [Vec<i32>; 7],
}

/// The value of words that nothing has written.
pub const UNTOUCHED: i32 = 0x5AA5_C33C;
/// The words of a guard. A summary is a line of 64 bytes, and so is its guard.
pub const GUARD: usize = 5;
pub const SUMMARY_GUARD: usize = summary::WORDS;
const GUARDS: [usize; 7] = [GUARD, GUARD, GUARD, GUARD, GUARD, GUARD, SUMMARY_GUARD];

impl OneRequest {
    pub fn new(p: Params) -> Self {
        p.check().expect("the geometry of a test is valid");
        let mut state = vec![0; table_words(&p)];
        clear_state(&p, &mut state);
        let words = scheduled_words(Sequential, &p).max(scheduled_words(VectorCore, &p));
        let work = vec![UNTOUCHED; words];
        let outputs = Default::default();
        Self { p, order: SCALAR, shared: false, deferred: 0, state, work, outputs }
    }

    /// Runs one step.
    pub fn step(&mut self, step: &Step) -> Outcome {
        match self.order {
            Order::VectorCore => {
                let way = Way { shared: self.shared, deferred: true };
                self.run_on_device(step, |one| Emu::<2>.run(OnDevice(one, way)));
                self.refresh_last(step);
            }
            Order::Cpu(run) => self.run(step, true, run),
        }
        self.learn();
        self.outcome(step)
    }

    /// Runs Stage One by `run`, which gets the arrays with their guards, as a device does.
    pub fn run_on_device(&mut self, step: &Step, run: impl FnOnce(StageOne<'_>)) {
        self.run(step, false, run);
    }

    /// Learns from a step.
    pub fn learn(&mut self) {
        if self.p.lifetime == Lifetime::Learned {
            learn(&self.p, &mut self.state);
        }
    }

    fn run(&mut self, step: &Step, without_guards: bool, run: impl FnOnce(StageOne<'_>)) {
        let (k, n) = (step.k(), step.tokens.len());
        assert!(k <= self.p.k as usize && n <= self.p.tokens as usize);
        assert!(step.tokens.iter().all(|t| t.len() == k), "all tokens have as many ids");
        let most = self.p.k as usize * n;
        let sizes = [most, n, most, most, most, most, summary::WORDS];
        self.outputs = std::array::from_fn(|i| vec![UNTOUCHED; sizes[i] + 2 * GUARDS[i]]);
        // Inputs start after a guard, too, and end with the last row.
        let input = |words: &mut dyn Iterator<Item = &i32>| -> Vec<i32> {
            [UNTOUCHED; GUARD].iter().chain(words).copied().collect()
        };
        let ids = input(&mut step.tokens.iter().flatten());
        let blocks = input(&mut step.blocks.iter());
        let skipped = |guard: usize| if without_guards { guard } else { 0 };
        let mut guards = GUARDS.into_iter().map(skipped);
        let [slot, valid, position, id, miss_slot, row, summary] =
            self.outputs.each_mut().map(|words| {
                let (from, len) = (guards.next().unwrap_or_default(), words.len());
                &mut words[from..len - from]
            });
        run(StageOne {
            params: &self.p,
            state: &mut self.state,
            work: &mut self.work,
            tokens: n,
            k,
            generation: step.generation,
            stable: step.stable,
            limit: step.limit,
            rows: step.rows as usize,
            ids: &ids[skipped(GUARD)..],
            ids_stride: k,
            blocks: &blocks[skipped(GUARD)..],
            slot,
            valid,
            miss: [position, id, miss_slot, row],
            summary,
        });
    }

    /// Checks that nothing was written out of bounds, and returns the results.
    fn outcome(&self, step: &Step) -> Outcome {
        let (k, n, stride) = (step.k(), step.tokens.len(), self.p.k as usize);
        let mut guards = GUARDS.into_iter();
        let [slot, valid, pos, id, miss_slot, row, rec] = self.outputs.each_ref().map(|o| {
            let guard = guards.next().unwrap_or_default();
            let (front, rest) = o.split_at(guard);
            let (content, back) = rest.split_at(rest.len() - guard);
            assert!(front.iter().chain(back).all(|&w| w == UNTOUCHED), "a guard was written");
            content
        });
        let mut past = slot.chunks(stride).flat_map(|row| &row[k..]);
        assert!(past.all(|&w| w == UNTOUCHED), "slots after the end of a row were written");
        let total = rec[summary::TOTAL as usize] as usize;
        for list in [pos, id, miss_slot, row] {
            assert!(list[total..].iter().all(|&w| w == UNTOUCHED), "the miss list overran");
        }
        let (s, t) = (self.p.slots as usize, self.p.links() as usize);
        let (ids, learned) = (header::WORDS, links_end(&self.p));
        let unused = &self.state[ids + s..life_at(&self.p)];
        assert!(unused.iter().all(|&id| id == EMPTY), "an id above the slots was written");
        let bytes = self.state[life_at(&self.p)..].iter().flat_map(|w| w.to_ne_bytes());
        Outcome {
            slots: slot.chunks(stride).map(|row| row[..k].to_vec()).collect(),
            valid: valid.to_vec(),
            misses: (0..total)
                .map(|i| Miss { pos: pos[i], id: id[i], slot: miss_slot[i], row: row[i] })
                .collect(),
            counts: summary::row_misses(rec, n).collect(),
            status: rec[summary::STATUS as usize],
            header: self.state[..ids].to_vec(),
            id: self.state[ids..ids + s].to_vec(),
            life: bytes.take(s).map(u8::cast_signed).collect(),
            link: self.state[learned - t..learned].to_vec(),
            learned: self.state[learned..].to_vec(),
        }
    }

    /// Replaces the values of learned lifetimes by any words.
    pub fn scramble(&mut self, seed: u32) {
        if self.p.lifetime == Lifetime::Learned {
            let mut random = SplitMix64::new(seed.into());
            let range = if seed.is_multiple_of(3) { 0xFF } else { -1 };
            let values = &mut self.state[links_end(&self.p) + part::VALUES..][..LIFETIMES];
            values.iter_mut().for_each(|value| *value = random.word() as i32 & range);
        }
    }

    /// Refreshes the hits of the last token, if [`VectorCore`] deferred that.
    pub fn refresh_last(&mut self, step: &Step) {
        let last = step.tokens.len().checked_sub(1);
        let Some(last) = last.filter(|_| VectorCore::serves(&self.p)) else { return };
        let slots = &self.outputs[0][GUARD + self.p.k as usize * last..][..step.k()];
        let mut state = split_state::<Emu<1>>(&self.p, &mut self.state);
        let life = state.life.slots_mut();
        let before = life.to_vec();
        refresh_deferred(&self.p, life, slots);
        self.deferred = before.iter().zip(life).filter(|(a, b)| a != b).count();
    }
}

/// Makes the refresh that `VectorCore` defers, as `avsg_late.h` makes it on a device: of the slots of a token, as bytes of a table. New slots are among them: the rule of a hit gives them the
/// lifetime of a new slot. A slot of -1 belongs to an id that is not valid.
fn refresh_deferred(p: &Params, life: &mut [i8], slots: &[i32]) {
    for &slot in slots {
        let Some(life) = usize::try_from(slot).ok().and_then(|slot| life.get_mut(slot)) else {
            continue;
        };
        *life = match &p.lifetime {
            Lifetime::Constant(l) => *l,
            Lifetime::Learned => AFTER_HIT[usize::from(life.cast_unsigned() ^ 128)],
        };
    }
}

/// How cores divide a step: whether the first token is probed as a shared one, by one core, and whether the refresh of the
/// last one is deferred.
#[derive(Clone, Copy)]
pub struct Way {
    pub shared: bool,
    pub deferred: bool,
}

/// A step by the schedule that is recorded for a device, whose arrays begin after their guards.
pub struct OnDevice<'a>(pub StageOne<'a>, pub Way);

impl Kernel for OnDevice<'_> {
    type Out = ();
    #[inline(always)]
    fn run<C: Cpu>(self, m: C) {
        let (p, (mut state, work, mut request)) = (self.0.params, arrays(self.0, self.1));
        if VectorCore::serves(p) {
            let mut work = split_work(VectorCore, p, work);
            stage_one(m, VectorCore, p, &mut state, &mut work, &mut request);
        } else {
            let mut work = split_work(Sequential, p, work);
            stage_one(m, Sequential, p, &mut state, &mut work, &mut request);
        }
    }
}

/// Returns the table, the working words and the request of a step whose arrays begin after their guards.
#[inline(always)]
pub fn arrays<'a, C: Cpu>(
    one: StageOne<'a>,
    Way { shared, deferred }: Way,
) -> (State<'a, C>, &'a mut [i32], Request<'a, C>) {
    let scalar = |n: usize| Scalar::new(i32::try_from(n).expect("small"));
    let (p, at) = (one.params, scalar(GUARD));
    let [position, id, slot, row] = one.miss;
    let request = Request {
        tokens: scalar(one.tokens),
        k: scalar(one.k),
        generation: Scalar::new(one.generation),
        stable: Scalar::new(one.stable),
        limit: Scalar::new(one.limit),
        rows: scalar(one.rows),
        ids: Rows { words: one.ids, at, stride: scalar(one.ids_stride) },
        blocks: Blocks { words: one.blocks, at, len: scalar(one.blocks.len() - GUARD) },
        slot: Rows { words: one.slot, at, stride: scalar(p.k as usize) },
        valid: Span { words: one.valid, at },
        misses: MissList { position, id, slot, row, at },
        summary: Span { words: one.summary, at: scalar(SUMMARY_GUARD) },
        share: Share { shared: scalar(shared.into()), at: scalar(0), len: scalar(one.k) },
        deferred: scalar(if deferred { one.tokens } else { 0 }),
    };
    (split_state(p, one.state), one.work, request)
}
