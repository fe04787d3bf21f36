//! A server's step: an engine plans and transfers what each layer selects, and computes with the rows.

use std::hint::{black_box, spin_loop};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use avsg::device::memory::state_words;
use avsg::device::params::Params;
use avsg::disk::DiskStats;
use avsg::engine::{Config, Engine, MAX_UNDER_WAY};
use avsg::plan::Plan;
use avsg::pool::{HostPool, PoolConfig};
use serde::Serialize;

use super::setting::{Setting, Step, setting};
use crate::batch::OwnedBatch;
use crate::content::tag;
use crate::exact::for_each_id;
use crate::stats::us_since;

/// What a step does while rows are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Nothing: each layer is transferred, and then computed.
    Transfer,
    /// It computes with the hits of the layer, and with the misses afterwards.
    HitsFirst,
    /// It computes the layer before: so many indexers in a row select the same ids, and all of them begin with the first.
    Followers(usize),
    /// It computes the other half of the requests.
    TwoGroups,
}

/// The work of a step.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct StepWork {
    /// The requests of a batch, each with one token and with rows of its own.
    pub requests: usize,
    /// K.
    pub k: usize,
    /// S.
    pub slots: u32,
    /// Microseconds of arithmetic of each layer.
    pub compute_us: f64,
    /// What it does while rows are read.
    #[serde(skip)]
    pub way: Way,
}

/// The layers of an indexer, and some of the requests.
struct StepPart {
    layers: Vec<usize>,
    requests: Range<usize>,
    /// The requests' group.
    group: usize,
    /// When this part is waited for, those before this one have begun.
    ahead: usize,
    batch: OwnedBatch,
    plan: Plan,
    /// The sum of the first bytes of all selected rows.
    expected: u8,
}

/// An engine, and the parts of its steps in their order.
pub struct Server {
    engine: Engine,
    work: StepWork,
    parts: Vec<StepPart>,
    /// Whether the plan missed a slot of a request.
    missed: Vec<bool>,
}

impl StepWork {
    fn config(&self, pool: &PoolConfig) -> Config {
        let &Self { requests, k, slots, way, .. } = self;
        let params = Params::wide(u32::try_from(k).unwrap_or(u32::MAX), 1, slots);
        let under_way = if let Way::Followers(n) = way { n.clamp(4, MAX_UNDER_WAY) } else { 0 };
        let indexers = pool.indexers.clone();
        Config { indexers, under_way, ..Config::new(params, requests) }
    }

    /// Returns the bytes of slots, tables, bounce buffers and the queue of writes. Working columns, which each core
    /// needs for any number of rows, are left out, as the stacks and the code of other settings are.
    pub fn memory_bytes(&self, pool: &PoolConfig) -> Result<usize> {
        let config = self.config(pool);
        let in_memory = PoolConfig { file: None, ..pool.clone() };
        let plans = |pool| Engine::plan_bytes(&config, pool, self.requests, self.requests);
        let ((slots, with_bounce), (_, without)) = (
            Engine::bytes_needed(&config, pool, None)?,
            Engine::bytes_needed(&config, &in_memory, None)?,
        );
        let bounce =
            with_bounce - without + (plans(pool)? - plans(&in_memory)?) * config.indexers.count();
        let tables = 4 * state_words(&config.params) * config.tables();
        Ok(slots + tables + bounce + HostPool::plan_bytes(pool)?)
    }
}

impl Server {
    /// Makes an engine over the rows of a pool that `config` describes.
    pub fn new(pool: Arc<HostPool>, config: &PoolConfig, work: StepWork) -> Result<Self> {
        let (indexers, requests) = (&config.indexers, work.requests);
        let engine = Engine::new(work.config(config), pool)?;
        let groups = if work.way == Way::TwoGroups { 2 } else { 1 };
        let mut parts = Vec::new();
        for indexer in 0..indexers.count() {
            for group in 0..groups {
                let first = |group: usize| group * requests / groups;
                let requests = first(group)..first(group + 1);
                let mut batch = OwnedBatch::uniform(work.k, requests.len(), 1, config.rows);
                batch.indexer = indexer;
                batch.state = requests.clone().map(|state| state as i32).collect();
                let layers = (0..config.layers).filter(|&layer| indexers.of(layer) == indexer);
                let ahead = match work.way {
                    Way::Followers(n) => (indexer / n + 1) * n,
                    Way::TwoGroups => parts.len() + 2,
                    _ => parts.len() + 1,
                };
                let ahead = ahead.min(parts.len() + MAX_UNDER_WAY);
                let plan = engine.new_plan(requests.len(), requests.len())?;
                let layers = layers.collect();
                parts.push(StepPart { layers, requests, group, ahead, batch, plan, expected: 0 });
            }
        }
        Ok(Self { engine, work, parts, missed: vec![false; work.slots as usize] })
    }

    /// Returns the setting whose steps are those of a server over a pool.
    pub fn setting(
        name: &'static str,
        pool: &Arc<HostPool>,
        config: &PoolConfig,
        work: StepWork,
    ) -> Result<Setting<'static>> {
        let mut server = Self::new(Arc::clone(pool), config, work)?;
        Ok(setting(name, work.memory_bytes(config)?, move |ids| server.step(ids)))
    }

    /// Does a step in which every indexer selects the same `ids`, K for each request, and the ids of a layer exist
    /// only when the layer before was computed.
    pub fn step(&mut self, ids: &[i32]) -> Result<Step> {
        self.prepare(ids);
        let before = self.counters();
        // What the last part of each group has computed beside what its rows should give: 0.
        let (start, mut computed, mut begun) = (Instant::now(), [0; 2], 0);
        for at in 0..self.parts.len() {
            while begun < self.parts[at].ahead.min(self.parts.len()) {
                self.begin(begun, computed[self.parts[begun].group])?;
                begun += 1;
            }
            let mut sum = 0u8;
            if self.work.way == Way::HitsFirst {
                sum = self.compute(at, true)?;
            }
            self.engine.wait(&mut self.parts[at].plan)?;
            if self.work.way != Way::HitsFirst {
                sum = self.compute(at, true)?;
            }
            sum = sum.wrapping_add(self.compute(at, false)?);
            computed[self.parts[at].group] = sum ^ self.parts[at].expected;
        }
        let us = us_since(start);
        Ok(Step::of_file(us, [before, self.counters()], self.wrong_rows()))
    }

    /// Sets the ids of all parts, and what their rows give.
    fn prepare(&mut self, ids: &[i32]) {
        let (k, rows) = (self.work.k, self.engine.pool().rows() / self.work.requests);
        for StepPart { layers, requests, batch, expected, .. } in &mut self.parts {
            *expected = 0;
            for (request, ids) in requests.clone().zip(ids[requests.start * k..].chunks_exact(k)) {
                let to = &mut batch.ids[(request - requests.start) * k..][..k];
                for (to, &id) in to.iter_mut().zip(ids) {
                    *to = if id < 0 { id } else { id + (request * rows) as i32 };
                    for &layer in layers.iter().filter(|_| id >= 0) {
                        *expected = expected.wrapping_add(tag(*to, layer as u32) as u8);
                    }
                }
            }
        }
    }

    /// Plans a part and begins its transfer. Its ids are those that were set if `computed` is 0.
    fn begin(&mut self, at: usize, computed: u8) -> Result<()> {
        let StepPart { layers, batch, plan, .. } = &mut self.parts[at];
        batch.ids.iter_mut().for_each(|id| *id ^= i32::from(computed));
        self.engine.plan(&batch.batch(), plan)?;
        Ok(self.engine.begin(plan, layers, None)?)
    }

    /// Computes with the hits of a part or with its misses, for as long as their share of its arithmetic takes, and
    /// returns the sum of the first bytes of their rows.
    fn compute(&mut self, at: usize, hits: bool) -> Result<u8> {
        let StepPart { layers, requests, plan, .. } = &self.parts[at];
        let (start, mut sum, mut count, mut all) = (Instant::now(), 0u8, 0, 0);
        for (token, state) in requests.clone().enumerate() {
            self.missed.fill(false);
            plan.misses(token).slot.iter().for_each(|&slot| self.missed[slot as usize] = true);
            let slots = || plan.slots(token).iter().filter_map(|&slot| usize::try_from(slot).ok());
            let chosen = || slots().filter(|&slot| self.missed[slot] != hits);
            (count, all) = (count + chosen().count(), all + slots().count());
            for &layer in layers {
                let rows = self.engine.buffer().view(state, layer, 0)?;
                for slot in chosen() {
                    // SAFETY: the plan's slots are below S, a row has a byte, and no transfer under way writes the
                    // slot: it is a hit, or the plan was waited for.
                    sum = sum.wrapping_add(unsafe { rows.ptr(slot).read() });
                }
            }
        }
        let share = (requests.len() * count) as f64 / (self.work.requests * all) as f64;
        let us = self.work.compute_us * layers.len() as f64 * share;
        while us_since(start) < us {
            spin_loop();
        }
        Ok(black_box(sum))
    }

    /// Returns what the file counted; of rows in memory, those that were copied.
    fn counters(&self) -> DiskStats {
        let stats = self.engine.stats();
        let copied = DiskStats {
            reads: stats.misses,
            read_bytes: stats.transferred_bytes,
            ..DiskStats::default()
        };
        self.engine.pool().store().map_or(copied, |store| store.stats())
    }

    fn wrong_rows(&self) -> usize {
        let (buffer, bytes) = (self.engine.buffer(), self.engine.pool().format().bytes());
        let mut wrong = 0;
        for StepPart { layers, batch, plan, .. } in &self.parts {
            for &layer in layers {
                for_each_id(
                    &batch.batch(),
                    bytes,
                    |token| plan.slots(token),
                    |state, slot, row| buffer.slot_bytes(state, layer, slot, row).is_ok(),
                    |_, id| (id, layer as u32),
                    |seen| wrong += usize::from(!seen.exact),
                );
            }
        }
        wrong
    }
}

#[cfg(test)]
mod tests;
