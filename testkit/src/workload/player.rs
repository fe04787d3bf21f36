//! Plays a workload's steps: makes each step's batch and rows, and has its results checked, whichever engine
//! takes them and by whichever interface.

use avsg::device::params::ID_LIMIT;

use super::setting::Setting;
use super::verify::{self, Mirror, Want};
use super::world::{World, Write};
use super::{Request, Step};
use crate::batch::Owned;
use crate::found::Found;
use crate::fresh::FreshRows;

/// One step of a workload, as an engine takes it.
pub struct Turn {
    /// The batch to plan.
    pub batch: Owned,
    /// The batch with block tables that lack nothing, to append by.
    pub whole: Owned,
    /// The step's own rows of each layer.
    pub fresh: Vec<FreshRows>,
    wants: Vec<Want>,
}

impl Turn {
    /// Whether some request has rows of its own.
    pub fn has_fresh(&self) -> bool {
        self.batch.stable.iter().any(|&stable| stable >= 0)
    }

    /// How many rows of a layer an append writes.
    pub fn appended(&self) -> usize {
        self.wants.iter().map(|want| want.appended).sum()
    }

    /// Whether an id of a request is a row of this step.
    pub fn makes(&self, request: usize, id: i32) -> bool {
        let (stable, seq) = (self.batch.stable[request], self.batch.seq[request]);
        self.batch.state[request] >= 0 && stable >= 0 && (stable..seq).contains(&id)
    }
}

/// The requests of a workload, the rows that they have, and what its engine's slots must hold.
pub struct Player {
    setting: Setting,
    world: World,
    mirror: Mirror,
    /// Generation of the request at each state, and of the table there.
    generation: Vec<i32>,
    table: Vec<i32>,
    births: i32,
}

impl Player {
    /// Begins on an engine whose slots are zeroed. `write` writes a row of a layer into its pool, and is
    /// called for each.
    pub fn new(setting: Setting, write: &mut dyn FnMut(usize, usize, &[u8])) -> Self {
        Self {
            world: World::new(&setting, write),
            mirror: Mirror::new(&setting),
            generation: vec![0; setting.states],
            table: vec![0; setting.states],
            births: 0,
            setting,
        }
    }

    /// Makes a step. New requests write their rows into the pool.
    pub fn turn(&mut self, step: &Step, write: &mut dyn FnMut(usize, usize, &[u8])) -> Turn {
        let states = self.generation.len();
        if step.swap.is_multiple_of(8) && states > 1 {
            let a = usize::from(step.swap / 8) % states;
            let b = (a + 1) % states;
            self.world.sequences.swap(a, b);
            self.rename(a);
            self.rename(b);
        }
        let (batch, wants) = self.batch(step, write);
        let fresh = (0..self.setting.layers).map(|layer| self.fresh(&batch, &wants, layer));
        let fresh = fresh.collect();
        let whole = self.with_whole_tables(&batch, &wants);
        for want in &wants {
            if let Some(state) = want.state {
                self.table[state] = self.generation[state];
                self.world.sequences[state].stable += want.accepted;
            }
        }
        Turn { batch, whole, fresh, wants }
    }

    /// Gives every request of a step a new generation, as a runtime does when work in its stream has
    /// failed.
    pub fn renew(&mut self, turn: &mut Turn) {
        for (r, want) in turn.wants.iter_mut().enumerate() {
            let Some(state) = want.state else { continue };
            self.rename(state);
            want.cold = true;
            self.table[state] = self.generation[state];
            turn.batch.generation[r] = self.generation[state];
            turn.whole.generation[r] = self.generation[state];
        }
    }

    /// Checks the last step, once each of its layers was transferred. `read` reads the slot of a state
    /// and layer.
    ///
    /// # Panics
    /// If something is not as it must be.
    pub fn check(
        &mut self,
        turn: &Turn,
        found: &Found,
        read: impl FnMut(usize, usize, usize, &mut [u8]),
    ) {
        verify::step(found, &turn.batch, &turn.wants, &self.world, &mut self.mirror, read);
    }

    /// The id and version of the row that a request's id of the last step names on a layer. It is one of
    /// the request's own.
    pub fn content(&self, turn: &Turn, request: usize, layer: usize, id: i32) -> (i32, u32) {
        let state = turn.wants[request].state.expect("it is not padded");
        (id, self.world.version(state, id as usize) + layer as u32)
    }

    /// Checks the pool, once the last step was appended on each layer. `read` reads a layer's row.
    ///
    /// # Panics
    /// If a row is not the last that was written.
    pub fn check_pool(&self, read: impl FnMut(usize, usize, &mut [u8])) {
        self.world.expect_pool(read);
    }

    fn rename(&mut self, state: usize) {
        self.births += 1;
        // Odd factor: all different, of both signs.
        self.generation[state] = self.births.wrapping_mul(0x4000_0001);
    }

    fn batch(&mut self, step: &Step, write: Write<'_>) -> (Owned, Vec<Want>) {
        let params = self.setting.params;
        let k =
            (params.k as usize - usize::from(step.form / 2 % 4).min(params.k as usize - 1)).max(1);
        let mut owned = Owned::new(k, usize::from(step.form / 8 % 3));
        let whole = self.world.sequences[0].blocks.len();
        if whole != 0 {
            // The last block's entry may be missing, or junk may follow it.
            owned.block_stride = whole + usize::from(step.form / 32 % 4) - 1;
        }
        let mut named = vec![false; self.generation.len()];
        let mut wants = Vec::new();
        for request in step.requests.iter().take(self.setting.requests) {
            let state = usize::from(request.who) % named.len();
            let tokens = usize::from(request.tokens) % (params.tokens as usize + 1);
            if request.act % 8 == 1 || named[state] {
                let rows = vec![vec![i32::from(request.pick); k]; tokens];
                owned.push([-1, 9, i32::from(request.accept) - 1, -5], &rows);
                owned.blocks.resize(owned.blocks.len() + owned.block_stride, i32::MIN);
                wants.push(Want::padded(tokens));
                continue;
            }
            named[state] = true;
            wants.push(self.request(request, state, tokens, &mut owned, write));
        }
        (owned, wants)
    }

    fn request(
        &mut self,
        r: &Request,
        state: usize,
        tokens: usize,
        owned: &mut Owned,
        write: Write<'_>,
    ) -> Want {
        let pick = usize::from(r.pick);
        if r.act.is_multiple_of(8) {
            self.world.join(state, pick, write);
            self.rename(state);
        }
        let sequence = &mut self.world.sequences[state];
        let (base, end) = (sequence.base, sequence.end());
        if r.act % 8 == 5 || sequence.stable >= end {
            sequence.stable = base + pick % (sequence.stable - base + 1);
        }
        let read_only = (2..=4).contains(&(r.act % 8));
        let (stable, tokens) =
            (sequence.stable, tokens.min(if read_only { 9 } else { end - sequence.stable }));
        let seq = match r.act % 8 {
            2 | 3 => end,
            4 => ID_LIMIT as usize,
            // A step may hold rows that are no tokens yet.
            _ => stable + tokens - usize::from(pick % 4 == 3).min(tokens),
        };
        // Rows at or above the sequence length are no tokens: they are neither appended nor accepted.
        let real = if read_only { 0 } else { tokens.min(seq - stable) };
        if !read_only {
            (stable..stable + real).for_each(|id| {
                self.world.renew(state, id);
            });
        }
        let mut rows: Vec<Vec<i32>> = Vec::new();
        for g in 0..tokens {
            let mut row: Vec<i32> = Vec::new();
            for lane in 0..owned.k {
                let raw = match r.ids.len() {
                    0 => 15,
                    n => r.ids[(g * owned.k + lane) % n],
                };
                let x = i32::from(raw >> 4);
                row.push(match raw & 15 {
                    0 => -1,
                    1 => i32::MIN + x,
                    2 => seq as i32 + x,
                    3 => i32::MAX - x,
                    4 => row.last().copied().unwrap_or(-1),
                    5 | 6 if !read_only && seq > stable => {
                        stable as i32 + x % (seq - stable) as i32
                    }
                    7 | 8 if seq > end => self.world.pool_rows as i32 + x,
                    _ if seq > base => base as i32 + x % (seq.min(end) - base) as i32,
                    _ => -1,
                });
            }
            rows.push(row);
        }
        let stable_len = if read_only { -1 } else { stable as i32 };
        owned.push([state as i32, self.generation[state], stable_len, seq as i32], &rows);
        let mut blocks = self.world.sequences[state].blocks.clone();
        blocks.resize(owned.block_stride, -7);
        if pick.is_multiple_of(5) && !blocks.is_empty() {
            let (at, total) =
                (pick / 5 % blocks.len(), self.world.pool_rows / self.setting.params.page as usize);
            blocks[at] = [-1, total as i32, i32::MAX, i32::MIN][pick % 4];
        }
        owned.blocks.extend(&blocks);
        let accepted = usize::from(r.accept) % tokens.max(1) + 1;
        Want {
            state: Some(state),
            tokens,
            stable: (!read_only).then_some(stable),
            seq,
            cold: self.table[state] != self.generation[state],
            accepted: accepted.min(real),
            appended: real,
            blocks,
        }
    }

    /// This step's rows of one layer, junk where no request has made one.
    fn fresh(&self, owned: &Owned, wants: &[Want], layer: usize) -> FreshRows {
        let mut rows = FreshRows::new(&self.setting.format, owned.rows());
        for (r, want) in wants.iter().enumerate() {
            let (Some(state), Some(stable)) = (want.state, want.stable) else { continue };
            for g in 0..want.tokens {
                let version = self.world.version(state, stable + g) + layer as u32;
                rows.put(owned.cu_q[r] as usize + g, (stable + g) as i32, version);
            }
        }
        rows
    }

    /// The batch with block tables that lack nothing, for append.
    fn with_whole_tables(&self, owned: &Owned, wants: &[Want]) -> Owned {
        let mut whole = owned.clone();
        whole.blocks.clear();
        whole.block_stride = self.world.sequences[0].blocks.len();
        for want in wants {
            let state = want.state.unwrap_or(0);
            whole.blocks.extend(&self.world.sequences[state].blocks);
        }
        whole
    }
}
