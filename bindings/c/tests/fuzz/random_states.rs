//! Random changes of a state between steps: loads, forks, dropped plans, and rows that are rewritten.

use std::ptr::null_mut;
use std::sync::Arc;

use avsg_capi::avsg_status::{AVSG_LOST_ROWS, AVSG_OK};
use avsg_capi::*;
use avsg_capi_testkit::*;

use super::models::{EngineModel, PoolModel};
use super::random_caller::RandomCaller;
use super::shared_handles::Kind;

impl RandomCaller<'_> {
    /// Loads ids into the slots of a state.
    pub(super) fn load(&mut self) {
        let engine = self.handle(Kind::Engine);
        let model = self.engine_model(engine);
        let loaded = self.load_into(engine, model.as_deref());
        if model.is_some() && self.exact() {
            assert!(loaded, "a load without a mistake: {}", last_error());
        } else {
            // The state may have other rows.
            self.epoch += i32::from(loaded);
        }
    }

    /// Loads ids with a plan of the engine. Returns whether it loaded them, or emptied the state because the row of one
    /// was never written.
    fn load_into(&mut self, engine: *mut avsg_engine, model: Option<&EngineModel>) -> bool {
        let plan = self.plan_of(engine);
        let mut blocks = EngineModel::blocks(model.is_none_or(|model| model.paged));
        let count = 1 + self.below(64);
        let mut ids: Vec<i32> = (0..count).map(|_| self.below(ROWS) as i32 - 1).collect();
        let (state, indexer) = (self.index(2), self.index(model.map_or(1, |m| m.indexers)));
        let (generation, seq_len) = (self.generation(state), (ROWS - self.below(10)) as i32);
        let state = state as i32;
        let mut load = avsg_load { state, indexer, generation, seq_len, ..sized() };
        if self.mistake(12) {
            let word = [-1, -2, 1, 70, i32::MIN, i32::MAX][self.below(6)];
            let at = self.below(count);
            match self.below(5) {
                0 => load.reserved = word as u32,
                1 => load.seq_len = word,
                2 => load.state = word,
                3 => ids[at] = word,
                _ => blocks.iter_mut().take(1).for_each(|block| *block = word),
            }
        }
        load.ids = avsg_i32s { data: ids.as_ptr(), len: self.mostly(count) };
        load.block_table = avsg_i32s { data: blocks.as_ptr(), len: self.mostly(blocks.len()) };
        self.corrupt_size(&mut load);
        // SAFETY: the arrays have at least the lengths beside them, or no memory has that many
        // elements.
        let status = unsafe { avsg_engine_load(engine, &load, plan) };
        let done = self.record(status);
        if done && model.is_some() && self.exact() {
            let all = self.held(engine, indexer, (state, generation), 0..ROWS);
            let tokens = ids.iter().filter(|id| (0..seq_len).contains(*id));
            let (found, lost): (Vec<i32>, Vec<i32>) = tokens.partition(|id| all.contains(id));
            // The paper's table loses some to later ones.
            assert!(found.len() + K >= lost.len(), "{found:?} are held, {lost:?} are not");
        }
        if status != AVSG_LOST_ROWS {
            return done;
        }
        if let Some(model) = model.filter(|_| self.exact()) {
            let layers = (0..2).filter(|&layer| model.indexer(layer) == indexer);
            let mut rows = layers.flat_map(|layer| ids.iter().map(move |&id| (layer, id)));
            let lacks = |(layer, id): (usize, i32)| {
                (0..load.seq_len).contains(&id)
                    && !model.pool.is_written(layer, model.host_row(id as usize))
            };
            assert!(rows.any(lacks), "a load of rows that were written: {}", last_error());
        }
        true
    }

    /// Plans a batch, transfers it to no layer or one, or begins that, and gives it up: discards it, destroys its plan,
    /// or plans another batch into it, after which no state is blocked but those of a batch that some layer has and
    /// another one lacks. A load before that is refused where a layer lacks the batch's rows, and then changes nothing.
    pub(super) fn give_up(&mut self) {
        let engine = self.handle(Kind::Engine);
        let (model, mut plan) = (self.engine_model(engine), self.plan_of(engine));
        let model = model.as_deref();
        let (mut owned, layer) =
            (self.batch(model, model.map_or(2, |model| model.tokens)), self.below(2));
        owned.indexer = model.map_or(0, |model| model.indexer(layer));
        let rows = Self::fresh_rows(model, &owned, layer);
        let (batch, fresh, none) = (self.c_batch(&mut owned), c_fresh(&rows), null_mut());
        // SAFETY: `owned` and `rows` own the arrays, each length is at most the true one or too
        // large for any memory, and handles are looked up.
        let planned = self.record(unsafe { avsg_engine_plan(engine, &batch, plan, none) });
        let (mut moved, mut begun) = (false, None);
        if planned && self.rarely(2) {
            // SAFETY: as above.
            let status = unsafe { avsg_engine_transfer(engine, plan, &layer, 1, &fresh, none) };
            moved = self.record(status) || status == AVSG_LOST_ROWS;
        } else if planned && self.rarely(2) {
            // SAFETY: as above.
            let status = unsafe { avsg_engine_begin(engine, plan, &layer, 1, &fresh, none) };
            moved = self.record(status);
            let expected = model.is_some() && self.exact();
            assert!(moved || !expected, "a begin without a mistake: {}", last_error());
            begun = moved.then_some(plan);
        }
        let loaded = planned && begun.is_none() && self.rarely(2) && self.load_into(engine, model);
        if self.mistake(20) {
            plan = self.handle(Kind::Plan);
        }
        let exact = model.is_some() && self.exact() && !loaded;
        assert!(!exact || planned, "a plan without a mistake: {}", last_error());
        // A batch that a layer lacks is not overwritten, because what comes then may be refused.
        let lacking = moved && model.is_none_or(|model| model.indexers == 1);
        let way = if begun.is_some() && self.rarely(3) {
            3
        } else {
            self.below(if exact && !lacking { 3 } else { 2 })
        };
        let done = match way {
            0 => self.record(avsg_engine_discard(engine, plan)),
            1 => self.destroy(Kind::Plan, plan.addr()) == AVSG_OK,
            2 => {
                self.step_into(engine, plan, true);
                true
            }
            _ => {
                let status = avsg_engine_wait(engine, plan);
                self.record(status) || status == AVSG_LOST_ROWS
            }
        };
        if let Some(plan) = begun.filter(|_| self.verify && !(exact && self.mistakes == 0)) {
            // A refused call leaves the transfer under way.
            avsg_engine_wait(engine, plan);
        }
        if exact {
            assert!(done, "the end of a plan: {}", last_error());
            self.given_up[way] += 1;
        }
        // The states may have a plan that no layer has, and nothing may have been planned over it.
        let unknown = if exact { way != 0 && lacking || self.mistakes > 0 } else { planned };
        self.epoch += i32::from(unknown);
    }

    /// Copies a state to another one. The copy is empty if the state was not planned in this epoch.
    pub(super) fn fork(&mut self) {
        let engine = self.handle(Kind::Engine);
        let model = self.engine_model(engine);
        let (from, to) = (self.index(2), self.index(2));
        let [expected, generation] = [from, to].map(|state| self.generation(state));
        let (states, generations) = ([to as i32, self.below(3) as i32], [generation; 2]);
        let count = if self.mistake(16) { 2 } else { 1 };
        let (targets, generations) = (states.as_ptr(), generations.as_ptr());
        let indexers = model.filter(|_| self.exact() && from != to).map(|model| model.indexers);
        let held = |caller: &mut Self, state, generation| -> Vec<_> {
            let of = |indexer| caller.held(engine, indexer, (state, generation), 0..ROWS);
            (0..indexers.unwrap_or(0)).map(of).collect()
        };
        let of_original = held(self, from as i32, expected);
        // SAFETY: the arrays have two elements.
        let status =
            unsafe { avsg_engine_fork(engine, from, expected, targets, generations, count) };
        let done = self.record(status);
        if indexers.is_some() {
            assert!(done, "a fork without a mistake: {}", last_error());
            assert_eq!(held(self, to as i32, generation), of_original);
        } else if done {
            // A state may be a copy in another generation than its own.
            self.epoch += 1;
        }
    }

    /// Gives a row of a pool other bytes and invalidates its id in every engine on the pool.
    pub(super) fn rewrite(&mut self) {
        let pool = self.handle(Kind::Pool);
        let Some(model) = self.pool_model(pool).filter(|_| self.verify) else { return };
        let host = self.below(ROWS);
        model.rewrite(host);
        (0..2).for_each(|layer| model.restore(layer, host));
        for (bits, model) in self.engines_on(&model) {
            let (engine, id) = (std::ptr::without_provenance_mut(bits), model.host_row(host));
            for state in 0..2 {
                // A wide range is right as well.
                let end = if self.rarely(8) { ROWS } else { id + 1 };
                assert_eq!(avsg_engine_invalidate(engine, state, id, end), AVSG_OK);
                for indexer in 0..model.indexers {
                    let at = (state as i32, self.generation(state));
                    assert!(self.held(engine, indexer, at, id..end).is_empty(), "ids {id}..{end}");
                }
            }
        }
    }

    fn engines_on(&self, pool: &Arc<PoolModel>) -> Vec<(usize, Arc<EngineModel>)> {
        let known = self.shared.known();
        let engines = known.engines.iter().filter(|(_, model)| Arc::ptr_eq(&model.pool, pool));
        engines.map(|(&bits, model)| (bits, model.clone())).collect()
    }
}
