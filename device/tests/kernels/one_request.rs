//! One request: its table, the working columns of a core, its outputs, and Stage One of a step on
//! any CPU machine. Every output lies between guard words, which no kernel may write.

use core::marker::PhantomData;

use avsg_device::learned::{LIFETIMES, part};
use avsg_device::machine::cpu::{Cpu, Scalar};
use avsg_device::machine::{Kernel, emu::Emu};
use avsg_device::memory::{clear_state, learn, life_at, links_end, split_state, state_words};
use avsg_device::params::{ID_LIMIT, Lifetime, NO_STABLE_LEN, Params};
use avsg_device::request::{Blocks, MissList, Request, Rows, Share, Span, record};
use avsg_device::schedule::Schedule;
use avsg_device::sequential::Sequential;
use avsg_device::simt::Simt;
use avsg_device::stage_one::stage_one;
use avsg_device::state::{EMPTY, header};
use avsg_device::vector_core::{VectorCore, refresh_deferred};
use avsg_device::work::{split_work, work_words};

/// A machine that runs kernels; each machine has `run` as an inherent function.
pub trait Runner: Copy {
    fn run<K: Kernel>(self, kernel: K) -> K::Out;
}

macro_rules! runner {
    ([$($g:tt)*] $m:ty) => {
        impl<$($g)*> Runner for $m {
            fn run<K: Kernel>(self, kernel: K) -> K::Out {
                <$m>::run(self, kernel)
            }
        }
    };
}
runner!([const N: usize] Emu<N>);
#[cfg(target_arch = "x86_64")]
runner!([const G: bool] avsg_device::machine::avx512::Avx512<G>);
#[cfg(target_arch = "x86_64")]
runner!([const G: bool] avsg_device::machine::avx2::Avx2<G>);
#[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
runner!([] avsg_device::machine::neon::Neon);

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

/// The schedule that runs the steps of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Sequential,
    /// [`VectorCore`], if it serves the table.
    VectorCore,
    /// [`Simt`], if it serves the table.
    Simt,
}

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
        let words = work_words::<Sequential>(&p).max(work_words::<VectorCore>(&p));
        let words = words.max(work_words::<Simt>(&p));
        let work = vec![UNTOUCHED; words];
        Self {
            p,
            order: Order::Sequential,
            shared: false,
            deferred: 0,
            state,
            work,
            outputs: Default::default(),
        }
    }

    /// Runs one step. Only [`Sequential`] runs on CPUs; the other orders are recorded, and run on one machine
    /// here.
    pub fn step(&mut self, m: impl Runner, step: &Step) -> Outcome {
        let (k, n) = (self.k(step), step.tokens.len());
        let stride = self.p.k as usize + 3;
        let most = self.p.k as usize * n;
        let sizes = [stride * n, n, most, most, most, most, record::WORDS];
        self.outputs = sizes.map(|words| vec![UNTOUCHED; words + 2 * GUARD]);
        match self.order {
            Order::VectorCore if VectorCore::serves(&self.p) => {
                Emu::<16>.run(OneStep(self, step, k, stride, PhantomData::<VectorCore>));
                self.refresh_last(step, k, stride);
            }
            Order::Simt if Simt::serves(&self.p) => {
                Emu::<16>.run(OneStep(self, step, k, stride, PhantomData::<Simt>));
            }
            _ => m.run(OneStep(self, step, k, stride, PhantomData::<Sequential>)),
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
        let total = rec[record::TOTAL as usize] as usize;
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
            counts: record::row_misses(rec, n).collect(),
            status: rec[record::STATUS as usize],
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
            let values = &mut self.state[links_end(&self.p) + part::VALUES..][..LIFETIMES];
            let mut word = seed;
            for value in values {
                word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *value = if seed.is_multiple_of(3) { (word >> 24) as i32 } else { word as i32 };
            }
        }
    }

    /// Refreshes the hits of the last token that [`VectorCore`] deferred.
    fn refresh_last(&mut self, step: &Step, k: usize, stride: usize) {
        let Some(last) = step.tokens.len().checked_sub(1) else { return };
        let slots = &self.outputs[0][GUARD + stride * last..][..k];
        let mut state = split_state::<Emu<1>>(&self.p, &mut self.state);
        let life = state.life.slots_mut();
        let before = life.to_vec();
        refresh_deferred(&self.p, life, slots);
        self.deferred = before.iter().zip(life).filter(|(a, b)| a != b).count();
    }

    fn k(&self, step: &Step) -> usize {
        let k = step.tokens.first().map_or(0, Vec::len);
        assert!(k <= self.p.k as usize && step.tokens.len() <= self.p.tokens as usize);
        assert!(step.tokens.iter().all(|t| t.len() == k), "all tokens have as many ids");
        k
    }
}

/// A step of a request with `k` ids per token and `stride` words from one row of slots to the next.
struct OneStep<'a, S>(&'a mut OneRequest, &'a Step, usize, usize, PhantomData<S>);

impl<S: Schedule> Kernel for OneStep<'_, S> {
    type Out = ();
    #[inline(always)]
    fn run<C: Cpu>(self, m: C) {
        let Self(memory, step, k, stride, _) = self;
        let scalar = |n: usize| Scalar::new(i32::try_from(n).expect("small"));
        let guard = scalar(GUARD);
        // Inputs start after a guard word too, and end with the last row.
        let ids: Vec<i32> =
            core::iter::once(UNTOUCHED).chain(step.tokens.iter().flatten().copied()).collect();
        let mut blocks = vec![UNTOUCHED; GUARD];
        blocks.extend(&step.blocks);
        let OneRequest { p, shared, state, work, outputs, .. } = memory;
        let [slot, valid, position, id, miss_slot, row, record] = outputs;
        stage_one(
            m,
            p,
            &mut split_state::<C>(p, state),
            &mut split_work::<C, S>(p, work),
            &mut Request {
                tokens: scalar(step.tokens.len()),
                k: scalar(k),
                generation: Scalar::new(step.generation),
                stable: Scalar::new(step.stable),
                limit: Scalar::new(step.limit),
                rows: Scalar::new(step.rows),
                ids: Rows { words: &ids, at: scalar(1), stride: scalar(k) },
                blocks: Blocks { words: &blocks, at: guard, len: scalar(step.blocks.len()) },
                slot: Rows { words: slot, at: guard, stride: scalar(stride) },
                valid: Span { words: valid, at: guard },
                misses: MissList { position, id, slot: miss_slot, row, at: guard },
                record: Span { words: record, at: guard },
                share: Share {
                    shared: scalar(usize::from(*shared)),
                    at: scalar(0),
                    len: scalar(k),
                },
                deferred: scalar(step.tokens.len()),
            },
        );
    }
}
