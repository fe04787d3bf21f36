//! Lives a life: builds each step's batch, calls the engine as a runtime would, and has every
//! result checked.

use crate::content::fill_row;
use avsg::device::params::ID_LIMIT;
use avsg::engine::{Engine, Fresh};
use avsg::plan::Plan;

use super::verify::{self, Mirror, Want};
use super::world::World;
use super::{Life, Request, Step};
use crate::batch::Owned;

/// The most requests of a batch; more than the states, so some are padded.
const MAX_REQUESTS: usize = 6;

/// Lives it on an engine of its shape. Returns every slot and miss list, to compare machines by.
///
/// # Panics
/// If a result is not exact.
pub fn live(life: &Life, engine: Engine) -> Vec<i32> {
    let params = engine.config().params;
    let states = life.shape.states();
    let mut player = Player {
        world: World::new(states, params.page as usize, engine.pool()),
        mirror: Mirror::new(&engine),
        plan: engine.new_plan(MAX_REQUESTS * params.tokens as usize, MAX_REQUESTS).unwrap(),
        generation: vec![0; states],
        table: vec![0; states],
        births: 0,
        log: Vec::new(),
        engine,
    };
    life.steps.iter().for_each(|step| player.step(step));
    player.world.expect_pool(player.engine.pool());
    player.log
}

struct Player {
    engine: Engine,
    world: World,
    mirror: Mirror,
    plan: Plan,
    /// Generation of the request at each state, and of the table there.
    generation: Vec<i32>,
    table: Vec<i32>,
    births: i32,
    log: Vec<i32>,
}

impl Player {
    fn rename(&mut self, state: usize) {
        self.births += 1;
        // Odd factor: all different, of both signs.
        self.generation[state] = self.births.wrapping_mul(0x4000_0001);
    }

    fn step(&mut self, step: &Step) {
        let states = self.generation.len();
        if step.swap.is_multiple_of(8) && states > 1 {
            let a = usize::from(step.swap / 8) % states;
            let b = (a + 1) % states;
            self.world.sequences.swap(a, b);
            self.rename(a);
            self.rename(b);
        }
        let (owned, wants) = self.batch(step);
        let segments: Vec<_> =
            (0..self.engine.pool().layers()).map(|l| self.fresh(&owned, &wants, l)).collect();
        let with_fresh = owned.stable.iter().any(|&s| s >= 0);
        let views: Vec<Vec<&[u8]>> =
            segments.iter().map(|l| l.iter().map(Vec::as_slice).collect()).collect();
        let fresh: Vec<_> = views.iter().map(|v| Fresh { segments: v }).collect();
        let fresh_of = |layer: usize| with_fresh.then_some(&fresh[layer]);

        let batch = owned.batch();
        if step.form.is_multiple_of(2) {
            self.engine.step(&batch, &mut self.plan, 0, fresh_of(0)).unwrap();
            for layer in 1..fresh.len() {
                self.engine.transfer(&mut self.plan, layer, fresh_of(layer)).unwrap();
            }
        } else {
            self.engine.plan(&batch, &mut self.plan).unwrap();
            for layer in (0..fresh.len()).rev() {
                self.engine.transfer(&mut self.plan, layer, fresh_of(layer)).unwrap();
            }
        }
        verify::step(&self.engine, &self.plan, &owned, &wants, &self.world, &mut self.mirror);
        verify::note(&self.plan, &mut self.log);

        let whole = self.with_whole_tables(&owned, &wants);
        for (layer, fresh) in fresh.iter().enumerate() {
            self.engine.append(&whole.batch(), layer, fresh).unwrap();
        }
        for want in &wants {
            if let Some(state) = want.state {
                self.table[state] = self.generation[state];
                self.world.sequences[state].stable += want.accepted;
            }
        }
    }

    fn batch(&mut self, step: &Step) -> (Owned, Vec<Want>) {
        let params = self.engine.config().params;
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
        for request in step.requests.iter().take(MAX_REQUESTS) {
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
            wants.push(self.request(request, state, tokens, &mut owned));
        }
        (owned, wants)
    }

    fn request(&mut self, r: &Request, state: usize, tokens: usize, owned: &mut Owned) -> Want {
        let pick = usize::from(r.pick);
        if r.act.is_multiple_of(8) {
            self.world.join(state, pick, self.engine.pool());
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
            let (at, total) = (pick / 5 % blocks.len(), self.world.pool_rows / self.world.page);
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
            blocks,
        }
    }

    /// This step's rows of one layer, junk where no request has made one.
    fn fresh(&self, owned: &Owned, wants: &[Want], layer: usize) -> Vec<Vec<u8>> {
        let format = self.engine.pool().format();
        let rows = *owned.cu_q.last().unwrap() as usize;
        let mut segments: Vec<Vec<u8>> =
            format.as_slice().iter().map(|s| vec![0xEE; rows * s.stride]).collect();
        let mut bytes = vec![0; format.bytes()];
        for (r, want) in wants.iter().enumerate() {
            let (Some(state), Some(stable)) = (want.state, want.stable) else { continue };
            for g in 0..want.tokens {
                let id = stable + g;
                let version = self.world.version(state, id) + layer as u32;
                fill_row(id as i32, version, &mut bytes);
                let mut rest = &bytes[..];
                for (i, segment) in format.as_slice().iter().enumerate() {
                    let (part, after) = rest.split_at(segment.bytes);
                    let at = (owned.cu_q[r] as usize + g) * segment.stride;
                    segments[i][at..][..segment.bytes].copy_from_slice(part);
                    rest = after;
                }
            }
        }
        segments
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
