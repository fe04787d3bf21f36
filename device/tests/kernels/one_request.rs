//! One request: its table, the working columns of a core, its outputs, and Stage One of a step on
//! any CPU machine. Every output lies between guard words, which no kernel may write.

use avsg_device::learned::{LIFETIMES, part};
use avsg_device::machine::cpu::{Cpu, Scalar};
use avsg_device::machine::{Kernel, emu::Emu};
use avsg_device::memory::{clear_state, learn, life_at, links_end, state_words};
use avsg_device::one_request::{Compiled, StageOne, scheduled_words, split_state, split_work};
use avsg_device::params::{ID_LIMIT, Lifetime, NO_STABLE_LEN, Params};
use avsg_device::request::{Blocks, MissList, Request, Rows, Share, Span, summary};
use avsg_device::sequential::Sequential;
use avsg_device::stage_one::stage_one;
use avsg_device::state::{EMPTY, header};
use avsg_device::vector_core::VectorCore;

use super::late_refresh::refresh_deferred;
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
    outputs: [Vec<i32>; 7],
}

const UNTOUCHED: i32 = 0x5AA5_C33C;
const GUARD: usize = 5;

impl OneRequest {
    pub fn new(p: Params) -> Self {
        p.check().expect("the geometry of a test is valid");
        let mut state = vec![0; state_words(&p)];
        clear_state(&p, &mut state);
        let words = scheduled_words(Sequential, &p).max(scheduled_words(VectorCore, &p));
        let work = vec![UNTOUCHED; words];
        let outputs = Default::default();
        Self { p, order: SCALAR, shared: false, deferred: 0, state, work, outputs }
    }

    /// Runs one step.
    pub fn step(&mut self, step: &Step) -> Outcome {
        let (k, n) = (step.tokens.first().map_or(0, Vec::len), step.tokens.len());
        assert!(k <= self.p.k as usize && n <= self.p.tokens as usize);
        assert!(step.tokens.iter().all(|t| t.len() == k), "all tokens have as many ids");
        let stride = self.p.k as usize;
        let most = stride * n;
        let sizes = [most, n, most, most, most, most, summary::WORDS];
        self.outputs = sizes.map(|words| vec![UNTOUCHED; words + 2 * GUARD]);
        // Inputs start after a guard, too, and end with the last row.
        let input = |words: &mut dyn Iterator<Item = &i32>| -> Vec<i32> {
            [UNTOUCHED; GUARD].iter().chain(words).copied().collect()
        };
        let ids = input(&mut step.tokens.iter().flatten());
        let blocks = input(&mut step.blocks.iter());
        let order = match self.order {
            Order::VectorCore if !VectorCore::serves(&self.p) => SCALAR,
            order => order,
        };
        // A CPU gets the arrays without their guards, a device the words at which they begin.
        let from = if matches!(order, Order::Cpu(_)) { GUARD } else { 0 };
        let outputs = self.outputs.each_mut().map(|words| {
            let end = words.len() - from;
            &mut words[from..end]
        });
        let [slot, valid, position, id, miss_slot, row, summary] = outputs;
        let stage_one = StageOne {
            params: &self.p,
            state: &mut self.state,
            work: &mut self.work,
            tokens: n,
            k,
            generation: step.generation,
            stable: step.stable,
            limit: step.limit,
            rows: step.rows as usize,
            ids: &ids[from..],
            ids_stride: k,
            blocks: &blocks[from..],
            slot,
            valid,
            miss: [position, id, miss_slot, row],
            summary,
        };
        match order {
            Order::Cpu(run) => run(stage_one),
            Order::VectorCore => {
                Emu::<2>.run(OnDevice(stage_one, self.shared));
                self.refresh_last(n, k);
            }
        }
        if self.p.lifetime == Lifetime::Learned {
            learn(&self.p, &mut self.state);
        }

        let [slot, valid, pos, id, miss_slot, row, rec] = self.outputs.each_ref().map(|o| {
            let (front, rest) = o.split_at(GUARD);
            let (content, back) = rest.split_at(rest.len() - GUARD);
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

    /// Refreshes the hits of the last of `n` tokens that [`VectorCore`] deferred.
    fn refresh_last(&mut self, n: usize, k: usize) {
        let Some(last) = n.checked_sub(1) else { return };
        let slots = &self.outputs[0][GUARD + self.p.k as usize * last..][..k];
        let mut state = split_state::<Emu<1>>(&self.p, &mut self.state);
        let life = state.life.slots_mut();
        let before = life.to_vec();
        refresh_deferred(&self.p, life, slots);
        self.deferred = before.iter().zip(life).filter(|(a, b)| a != b).count();
    }
}

/// A step by [`VectorCore`], whose arrays begin after their guards, and whether a core has all of a shared token.
struct OnDevice<'a>(StageOne<'a>, bool);

impl Kernel for OnDevice<'_> {
    type Out = ();
    #[inline(always)]
    fn run<C: Cpu>(self, m: C) {
        let Self(one, shared) = self;
        let scalar = |n: usize| Scalar::new(i32::try_from(n).expect("small"));
        let (p, at) = (one.params, scalar(GUARD));
        let [position, id, slot, row] = one.miss;
        stage_one(
            m,
            VectorCore,
            p,
            &mut split_state(p, one.state),
            &mut split_work(VectorCore, p, one.work),
            &mut Request {
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
                summary: Span { words: one.summary, at },
                share: Share {
                    shared: scalar(usize::from(shared)),
                    at: scalar(0),
                    len: scalar(one.k),
                },
                deferred: scalar(one.tokens),
            },
        );
    }
}
