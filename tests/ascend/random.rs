//! A random life in lockstep: joins, leaves, permuted states, padded requests, any number of tokens,
//! bad ids, and rows of the step itself.

use std::path::PathBuf;
use std::sync::Arc;

use avsg::ascend::acl::owned::Context;
use avsg::device::params::Params;
use avsg_sim::Session;
use avsg_testkit::content::check_row;
use avsg_testkit::splitmix::SplitMix64;

use super::lockstep::{Form, Pair};
use super::stand;
use avsg_testkit::batch::Owned;

const K: usize = 12;
const SLOTS: usize = 128;
const TOKENS: usize = 2;
const REQUESTS: usize = 4;
const STATES: usize = 3;
const PAGE: usize = 16;
/// Blocks of a request.
const BLOCKS: usize = 8;
pub const LAYERS: usize = 2;

/// The engines of such a life: block tables, two segments, two layers.
pub fn form(cores: usize, one_launch: bool) -> Form {
    let pool_rows = STATES * BLOCKS * PAGE;
    Form {
        params: Params { page: PAGE as u32, ..Params::wide(K as u32, TOKENS as u32, SLOTS as u32) },
        states: STATES,
        cores,
        one_launch,
        requests: REQUESTS,
        rows: REQUESTS * TOKENS,
        blocks: BLOCKS,
        layers: LAYERS,
        segments: &[40, 8],
        pool_rows,
        made: pool_rows,
    }
}

/// A life on five cores by the session's own kernels.
pub fn life(session: &Session, context: &Arc<Context>, seed: u64, one_launch: bool) -> Random {
    let form = form(5, one_launch);
    Random::new(&form, context, stand::kernels(session, &form.config()), seed)
}

/// The life.
pub struct Random {
    pub pair: Pair,
    dice: SplitMix64,
    generation: [i32; STATES],
    stable: [usize; STATES],
    versions: u32,
}

impl Random {
    /// On engines of [`form`].
    pub fn new(
        form: &Form,
        context: &Arc<Context>,
        kernels: impl Into<Option<PathBuf>>,
        seed: u64,
    ) -> Self {
        Self {
            pair: Pair::new(form, context, kernels),
            dice: SplitMix64::new(seed),
            generation: [0; STATES],
            stable: [20; STATES],
            versions: 100,
        }
    }

    fn roll(&mut self, n: usize) -> usize {
        (self.dice.word() % n as u64) as usize
    }

    /// Draws the next step and brings its arrays to the device.
    pub fn next(&mut self) {
        let mut step = Owned::new(K, 0);
        step.block_stride = BLOCKS;
        let mut order: Vec<usize> = (0..STATES).collect();
        self.dice.shuffle(&mut order);
        for request in 0..REQUESTS {
            let state = order.get(request).copied().filter(|_| self.roll(5) > 0);
            let tokens = self.roll(TOKENS + 1);
            step.blocks.extend((0..BLOCKS).map(|b| (state.unwrap_or(0) * BLOCKS + b) as i32));
            let Some(state) = state else {
                let junk = self.roll(99) as i32;
                step.push([-1, junk, junk - 50, -junk], &vec![vec![-9; K]; tokens]);
                continue;
            };
            if self.roll(6) == 0 || self.stable[state] + TOKENS > BLOCKS * PAGE {
                // Another request takes the state.
                self.generation[state] += 1;
                self.stable[state] = self.roll(60);
            }
            let (stable, seq) = (self.stable[state], self.stable[state] + tokens);
            let mut id = || match self.roll(12) {
                0 => -1 - self.roll(3) as i32,
                1 => (seq + self.roll(9)) as i32,
                2 => i32::MAX - self.roll(2) as i32,
                3 | 4 => (stable + self.roll(tokens)) as i32,
                _ => self.roll(seq) as i32,
            };
            let rows: Vec<Vec<i32>> = (0..tokens).map(|_| (0..K).map(|_| id()).collect()).collect();
            let numbers = [state as i32, self.generation[state], stable as i32, seq as i32];
            step.push(numbers, &rows);
            // Some drafts are rejected.
            self.stable[state] += if tokens == 0 { 0 } else { 1 + self.roll(tokens) };
        }
        self.versions += 10;
        let version = self.versions;
        self.pair.bring(step, |row| (row as i32, version));
    }

    /// Brings the same step again, with a new generation of every request: what a runtime does when work
    /// in its stream has failed.
    pub fn renew(&mut self) {
        let mut step = self.pair.step.clone();
        for (generation, &state) in step.generation.iter_mut().zip(&step.state) {
            if let Ok(state) = usize::try_from(state) {
                self.generation[state] += 1;
                *generation = self.generation[state];
            }
        }
        let version = self.versions;
        self.pair.bring(step, |row| (row as i32, version));
    }

    /// Whether every returned slot of a row that this step made holds it, on both layers: for gathers
    /// that read them from the pool.
    pub fn fresh_rows_arrived(&mut self) -> bool {
        self.pair.read();
        let (step, slots) = (&self.pair.step, &self.pair.found.slots);
        let mut got = [0; 48];
        let mut right = true;
        for r in (0..REQUESTS).filter(|&r| step.state[r] >= 0) {
            for row in step.cu_q[r]..step.cu_q[r + 1] {
                let slots = &slots[row as usize * K..][..K];
                for (&id, &slot) in step.row(row as usize).iter().zip(slots) {
                    if id < step.stable[r] || id >= step.seq[r] {
                        continue;
                    }
                    let made = step.cu_q[r] + id - step.stable[r];
                    for layer in 0..LAYERS {
                        let (state, slot) = (step.state[r] as usize, slot as usize);
                        self.pair.ascend.buffer().slot_bytes(state, layer, slot, &mut got).unwrap();
                        right &= check_row(made, self.versions + layer as u32, &got);
                    }
                }
            }
        }
        right
    }
}
