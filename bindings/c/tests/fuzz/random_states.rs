//! Random changes of a state between steps: loads, forks, dropped plans, and rows that are rewritten.

use std::ptr::null_mut;
use std::sync::Arc;

use avsg_capi::avsg_status::{AVSG_INVALID, AVSG_LOST_ROWS, AVSG_OK};
use avsg_capi::*;
use avsg_capi_testkit::*;

use super::models::{EngineModel, PoolModel};
use super::random_caller::RandomCaller;
use super::shared_handles::Kind;

/// A plan that is given up.
struct GivenUp {
    plan: *mut avsg_plan,
    /// The states and generations that need its rows.
    needed: Vec<(i32, i32)>,
    indexer: usize,
    /// The layer that it was transferred to.
    moved: Option<usize>,
}

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

    /// Plans a batch, transfers it to no layer or one, and gives it up: drops it, destroys its plan, or plans
    /// another batch into it. A load before that is refused where a layer lacks the batch's rows, and then
    /// changes nothing.
    pub(super) fn give_up(&mut self) {
        let engine = self.handle(Kind::Engine);
        let (model, mut plan) = (self.engine_model(engine), self.plan_of(engine));
        let model = model.as_deref();
        let (mut owned, layer) =
            (self.batch(model, model.map_or(2, |model| model.tokens)), self.below(2));
        owned.indexer = model.map_or(0, |model| model.indexer(layer));
        let rows = Self::fresh_rows(model, &owned, layer);
        let (batch, fresh) = (self.c_batch(&mut owned), c_fresh(&rows));
        // SAFETY: `owned` and `rows` own the arrays, each length is at most the true one or too
        // large for any memory, and handles are looked up.
        let planned = self.record(unsafe { avsg_engine_plan(engine, &batch, plan, null_mut()) });
        let mut moved = false;
        if planned && self.rarely(2) {
            // SAFETY: as above.
            let status =
                unsafe { avsg_engine_transfer(engine, plan, &layer, 1, &fresh, null_mut()) };
            moved = self.record(status) || status == AVSG_LOST_ROWS;
        }
        let mut loaded = false;
        if planned && self.rarely(2) {
            loaded = self.load_into(engine, model);
        }
        if self.mistake(20) {
            plan = self.handle(Kind::Plan);
        }
        let way = self.below(4);
        if let Some(model) = model.filter(|_| self.exact() && !loaded && way > 0) {
            assert!(planned, "a plan without a mistake: {}", last_error());
            let failed = failures(plan, owned.state.len());
            let missed = (0..owned.state.len()).filter(|&n| {
                !missed(plan, n, true).is_empty() && failed.iter().all(|&(other, ..)| other != n)
            });
            let given_up = GivenUp {
                plan,
                needed: missed.map(|n| (owned.state[n], owned.generation[n])).collect(),
                indexer: owned.indexer,
                moved: moved.then_some(layer),
            };
            self.give_up_exactly(engine, model, &given_up, way);
            return;
        }
        if !self.exact() && way == 1 {
            self.destroy(Kind::Plan, plan.addr());
        }
        let dropped = self.record(avsg_engine_discard(engine, plan));
        if model.is_some() && self.exact() && !loaded {
            assert!(planned && dropped, "a discard without a mistake: {}", last_error());
        } else {
            // The states may have a plan that no layer has.
            self.epoch += i32::from(planned);
        }
    }

    /// Gives a plan up in another way than by a discard. Only states of a plan that some layer has are blocked.
    fn give_up_exactly(
        &mut self,
        engine: *mut avsg_engine,
        model: &EngineModel,
        given_up: &GivenUp,
        way: usize,
    ) {
        let &GivenUp { plan, indexer, moved, ref needed } = given_up;
        let lacking = moved.filter(|_| model.indexers == 1).map(|layer| 1 - layer);
        self.given_up[way - 1] += 1;
        if way == 1 {
            assert_eq!(self.destroy(Kind::Plan, plan.addr()), AVSG_OK);
            self.epoch += i32::from(lacking.is_some());
            return;
        }
        if way == 2 && lacking.is_none() {
            self.step_into(engine, plan, true);
            // Nothing may have been planned into it.
            self.epoch += i32::from(self.mistakes > 0);
            return;
        }
        // SAFETY: the struct has its `size` set.
        let number = self.filled(|to| unsafe { avsg_plan_get_counters(plan, to) }).number;
        let mut next = self.batch(Some(model), model.tokens);
        next.indexer = indexer;
        let rows: Vec<_> =
            (0..2).map(|layer| Self::fresh_rows(Some(model), &next, layer)).collect();
        let blocked = |&&(state, generation): &&(i32, i32)| {
            let mut of_next = next.state.iter().zip(&next.generation);
            of_next.any(|(&s, &g)| (s, g) == (state, generation))
        };
        let mut states: Vec<i32> = needed.iter().filter(blocked).map(|&(state, _)| state).collect();
        states.sort_unstable();
        let batch = c_batch(&next);
        if let Some(layer) = lacking {
            // SAFETY: `next` and `rows` own the arrays.
            let transferred = unsafe {
                self.expect(avsg_engine_plan(engine, &batch, plan, null_mut()));
                avsg_engine_transfer(engine, plan, &layer, 1, &c_fresh(&rows[layer]), null_mut())
            };
            self.record(transferred);
            let text = last_error();
            let part = format!("layers [{layer}] lack the rows of plan {number} for states [");
            let named = text.split_once(&part).map(|(_, rest)| {
                let list = rest.split_once(']').expect("a list").0.split(", ");
                let mut list: Vec<i32> = list.map(|n| n.parse().unwrap()).collect();
                list.sort_unstable();
                list
            });
            if states.is_empty() {
                assert!([AVSG_OK, AVSG_LOST_ROWS].contains(&transferred), "{text}");
            } else {
                assert_eq!((transferred, named), (AVSG_INVALID, Some(states)), "{text}");
            }
            self.epoch += 1;
            return;
        }
        let mut newer = null_mut();
        // SAFETY: `newer` is a local variable, and `next` owns the arrays.
        let refused = unsafe {
            self.expect(avsg_plan_create(engine, 2 * model.tokens, 2, &mut newer));
            self.expect(avsg_engine_plan(engine, &batch, newer, null_mut()));
            avsg_engine_plan(engine, &batch, plan, null_mut())
        };
        self.record(refused);
        if moved.is_none() && !states.is_empty() {
            assert_eq!(refused, AVSG_INVALID, "plan {number} of {states:?}");
            assert!(last_error().contains("no layer has its rows, and plan"), "{}", last_error());
        } else {
            assert_eq!(refused, AVSG_OK, "{}", last_error());
        }
        let mut both = [plan, newer];
        both.rotate_left(self.below(2));
        for plan in both {
            assert_eq!(self.destroy(Kind::Plan, plan.addr()), AVSG_OK);
            self.expect(avsg_engine_invalidate(engine, 0, 0, 1));
        }
    }

    /// Copies a state to another one. The copy is empty if the state was not planned in this epoch.
    pub(super) fn fork(&mut self) {
        let engine = self.handle(Kind::Engine);
        let known = self.engine_model(engine).is_some();
        let (from, to) = (self.index(2), self.index(2));
        let [expected, generation] = [from, to].map(|state| self.generation(state));
        let (states, generations) = ([to as i32, self.below(3) as i32], [generation; 2]);
        let count = if self.mistake(16) { 2 } else { 1 };
        let (targets, generations) = (states.as_ptr(), generations.as_ptr());
        // SAFETY: the arrays have two elements.
        let status =
            unsafe { avsg_engine_fork(engine, from, expected, targets, generations, count) };
        let done = self.record(status);
        if known && self.exact() && from != to {
            assert!(done, "a fork without a mistake: {}", last_error());
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
            }
        }
    }

    fn engines_on(&self, pool: &Arc<PoolModel>) -> Vec<(usize, Arc<EngineModel>)> {
        let known = self.shared.known();
        let engines = known.engines.iter().filter(|(_, model)| Arc::ptr_eq(&model.pool, pool));
        engines.map(|(&bits, model)| (bits, model.clone())).collect()
    }

    pub(super) fn destroy_engines_on(&mut self, pool: &Arc<PoolModel>) {
        for (bits, _) in self.engines_on(pool) {
            assert_eq!(self.destroy(Kind::Engine, bits), AVSG_OK);
        }
    }
}
