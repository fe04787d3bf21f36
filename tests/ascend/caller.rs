//! Calls of an engine for tests that make random ones. The tests of pools in files include this file by its
//! path.

use std::ops::Range;

use avsg::Result;
use avsg::engine::{Engine, Fresh, Load};
use avsg::plan::Plan;
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::content::fill_row;
use avsg_testkit::fresh::FreshRows;
use avsg_testkit::step_result::StepResult;

/// A call of an engine. Plans are numbers.
#[derive(Clone, Debug)]
#[allow(dead_code, reason = "no test program makes all calls")]
pub enum Call {
    Plan(usize, OwnedBatch),
    Step(usize, OwnedBatch, usize),
    Transfer(usize, usize),
    /// Transfers a plan to every layer of its indexer. After each transfer, the row of this miss is written
    /// again.
    TransferAll(usize, usize),
    /// Transfers a plan to every layer of its indexer in one call.
    TransferLayers(usize),
    Discard(usize),
    /// Appends the fresh rows of the batch to layers, in the version and those above it.
    Append(OwnedBatch, Range<usize>, u32),
    /// From a state in a generation to other states in other generations.
    Fork(usize, i32, Vec<i32>, Vec<i32>),
    /// Loads ids for an indexer, with the plan of this number.
    Load(usize, usize, [i32; 2], Vec<i32>),
    Invalidate(usize, Range<i32>),
    /// Writes a row of a layer in a version.
    Write(usize, usize, u32),
    /// Writes the next version of rows, and invalidates them in every state.
    Rewrite(Range<i32>),
    Flush,
}

/// An engine, its plans, and the batches that they were made for.
pub struct Caller<'a> {
    pub engine: &'a mut Engine,
    pub plans: Vec<Plan>,
    pub batches: Vec<OwnedBatch>,
    /// How often each row was rewritten, times 16.
    pub versions: Vec<u32>,
}

impl<'a> Caller<'a> {
    pub fn new(engine: &'a mut Engine, plans: usize) -> Self {
        let none = OwnedBatch::new(engine.config().params.k as usize, 0);
        let (batches, versions) = (vec![none; plans], vec![0; engine.pool().rows()]);
        let plans = (0..plans).map(|_| engine.new_plan(4, 2).unwrap()).collect();
        Self { engine, plans, batches, versions }
    }

    /// Returns the layers of the indexer of a plan.
    pub fn layers_of(&self, at: usize) -> Vec<usize> {
        let (indexers, indexer) = (&self.engine.config().indexers, self.plans[at].indexer());
        (0..self.engine.pool().layers()).filter(|&layer| indexers.of(layer) == indexer).collect()
    }

    /// Makes a call and returns its number, if it has one.
    pub fn run(&mut self, call: &Call) -> Result<usize> {
        let engine = &mut *self.engine;
        match call {
            Call::Plan(at, owned) => {
                engine.plan(&owned.batch(), &mut self.plans[*at])?;
                self.batches[*at] = owned.clone();
            }
            Call::Step(at, owned, layer) => {
                let rows = fresh(engine, owned, 1000 + *layer as u32);
                let fresh = Fresh { segments: &rows.segments() };
                engine.step(&owned.batch(), &mut self.plans[*at], *layer, Some(&fresh))?;
                self.batches[*at] = owned.clone();
            }
            Call::Transfer(at, layer) => self.transfer(*at, &[*layer])?,
            Call::TransferAll(at, nth) => {
                for layer in self.layers_of(*at) {
                    self.transfer(*at, &[layer])?;
                    let row = self.plans[*at].misses(0).row.get(*nth).copied();
                    let Some(row) = row.and_then(|row| usize::try_from(row).ok()) else { continue };
                    for later in layer..self.engine.pool().layers() {
                        self.run(&Call::Write(later, row, *nth as u32))?;
                    }
                }
            }
            Call::TransferLayers(at) => self.transfer(*at, &self.layers_of(*at))?,
            Call::Discard(at) => {
                engine.discard(&mut self.plans[*at])?;
                self.forget(*at);
            }
            Call::Append(owned, layers, version) => {
                let layers: Vec<usize> = layers.clone().collect();
                let rows = layers.iter().map(|&layer| fresh(engine, owned, version + layer as u32));
                let rows: Vec<FreshRows> = rows.collect();
                let fresh = Fresh { segments: &FreshRows::segments_of(&rows) };
                engine.append_layers(&owned.batch(), &layers, &fresh)?;
            }
            Call::Fork(from, old, to, new) => engine.fork_to(*from, *old, to, new)?,
            Call::Load(at, indexer, [state, generation], ids) => {
                let (state, generation, indexer) = (*state, *generation, *indexer);
                let blocks = blocks(engine);
                let (seq_len, block_table) = (engine.pool().rows() as i32, &blocks[..]);
                let load = Load { indexer, state, generation, seq_len, ids, block_table };
                let loaded = engine.load(&load, &mut self.plans[*at])?;
                self.forget(*at);
                return Ok(loaded);
            }
            Call::Invalidate(state, ids) => return engine.invalidate(*state, ids.clone()),
            Call::Write(layer, row, version) => {
                let mut bytes = vec![0; engine.pool().format().bytes()];
                fill_row(*row as i32, *version, &mut bytes);
                engine.pool().write_row(*layer, *row, &bytes)?;
            }
            Call::Rewrite(ids) => return self.rewrite(ids.clone()),
            Call::Flush => engine.pool().flush()?,
        }
        Ok(0)
    }

    fn transfer(&mut self, at: usize, layers: &[usize]) -> Result<()> {
        let rows = |&layer: &usize| fresh(self.engine, &self.batches[at], 1000 + layer as u32);
        let rows: Vec<FreshRows> = layers.iter().map(rows).collect();
        let fresh = Fresh { segments: &FreshRows::segments_of(&rows) };
        self.engine.transfer_layers(&mut self.plans[at], layers, Some(&fresh))
    }

    /// Plans from before are not used again, because a hit of theirs may be a row of the old version.
    fn rewrite(&mut self, ids: Range<i32>) -> Result<usize> {
        for id in ids.clone() {
            let row = id as usize;
            self.versions[row] += 16;
            for layer in 0..self.engine.pool().layers() {
                self.run(&Call::Write(layer, row, self.versions[row] + layer as u32))?;
            }
        }
        for at in 0..self.plans.len() {
            self.plans[at] = self.engine.new_plan(4, 2)?;
            self.forget(at);
        }
        let states = 0..self.engine.config().states;
        states.map(|state| self.engine.invalidate(state, ids.clone())).sum()
    }

    /// Notes that a plan has no batch.
    fn forget(&mut self, at: usize) {
        self.batches[at] = OwnedBatch::new(self.batches[at].k, 0);
    }

    /// Returns everything about a plan that devices have in common.
    pub fn result(&self, at: usize) -> Option<StepResult> {
        let (plan, owned) = (&self.plans[at], &self.batches[at]);
        (plan.requests() + 1 == owned.cu_q.len()).then(|| StepResult::from_plan(plan, &owned.cu_q))
    }
}

/// Returns the fresh rows of a batch.
fn fresh(engine: &Engine, owned: &OwnedBatch, version: u32) -> FreshRows {
    let mut rows = FreshRows::new(engine.pool().format(), owned.rows().max(1));
    (0..owned.rows()).for_each(|at| rows.put(at, at as i32, version));
    rows
}

/// Returns the blocks of every request: all of the pool, in descending order.
pub fn blocks(engine: &Engine) -> Vec<i32> {
    let (rows, page) = (engine.pool().rows(), engine.config().params.page as usize);
    (0..rows.checked_div(page).unwrap_or(0) as i32).rev().collect()
}
