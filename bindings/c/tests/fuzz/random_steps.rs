//! Random steps. A single thread demands that each one without a mistake is exact, and that exactly the requests
//! fail that need a row of a file that was never written. Then it goes on in one of three ways.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::ptr::{null, null_mut};

use avsg_capi::avsg_status::{AVSG_LOST_ROWS, AVSG_OK};
use avsg_capi::*;
use avsg_capi_testkit::*;
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::exact::{assert_exact, for_each_id};
use avsg_testkit::memory::read_words;

use super::models::EngineModel;
use super::random_caller::RandomCaller;
use super::shared_handles::Kind;

/// A step without a mistake.
struct Step<'a> {
    engine: *mut avsg_engine,
    model: &'a EngineModel,
    plan: *mut avsg_plan,
    owned: &'a OwnedBatch,
    /// The requests that transfers left out, with the layer and the row.
    failed: BTreeMap<usize, (usize, usize)>,
}

impl RandomCaller<'_> {
    /// Makes a step of one indexer: a plan, and a transfer to each of its layers.
    pub(super) fn step(&mut self) {
        let engine = self.handle(Kind::Engine);
        let plan = self.plan_of(engine);
        self.step_into(engine, plan, false);
    }

    /// Makes a step with a plan, which may hold a batch that no layer has.
    pub(super) fn step_into(
        &mut self,
        engine: *mut avsg_engine,
        plan: *mut avsg_plan,
        overwrites: bool,
    ) {
        let model = self.engine_model(engine);
        let model = model.as_deref();
        if let Some(model) = model.filter(|_| self.verify) {
            self.move_blocks(model);
        }
        let first = self.index(2);
        let mut owned = self.batch(model, model.map_or(2, |model| model.tokens));
        owned.indexer = model.map_or(0, |model| model.indexer(first));
        let rows = [0, 1].map(|layer| Self::fresh_rows(model, &owned, layer));
        let mut fresh = rows.each_ref().map(c_fresh);
        fresh[first % 2] = self.fresh(&rows[first % 2]);
        let (batch, stream) = (self.c_batch(&mut owned), self.stream());
        let no_fresh = self.mistake(60);
        // What is overwritten may be held before, and is not hit.
        let checked = model.is_some() && self.exact() && !overwrites;
        let requests = if checked { owned.state.len() } else { 0 };
        let held: Vec<_> = (0..requests).map(|n| self.held_by(engine, &owned, n)).collect();
        let alone = model.is_some_and(|model| model.indexers == 1);
        let listed = alone && self.rarely(4);
        let fused = !listed && !self.rarely(4);
        let (list, count) = if listed { self.list() } else { ([first, 0], 1) };
        let other = !listed && !fused && self.mistake(16);
        let transferred = if other { self.handle(Kind::Plan) } else { plan };
        let at = if listed { fresh.as_ptr() } else { &fresh[first % 2] };
        let at = if no_fresh { null() } else { at };
        // SAFETY: `owned` and `rows` own the arrays, each length is at most the true one or too
        // large for any memory, and handles are looked up.
        let (planned, moved) = unsafe {
            if fused {
                let status = avsg_engine_step(engine, &batch, plan, first, at, stream);
                (status == AVSG_OK || status == AVSG_LOST_ROWS, status)
            } else {
                let planned = self.record(avsg_engine_plan(engine, &batch, plan, stream));
                let (layers, named) = (list.as_ptr(), owned.state.iter().any(|&state| state >= 0));
                let moved = if self.rarely(2) {
                    avsg_engine_transfer(engine, transferred, layers, count, at, stream)
                } else {
                    let (to, batch) = ((engine, transferred), (&batch, named));
                    self.begin_and_wait(to, (layers, count, at), stream, batch)
                };
                (planned, moved)
            }
        };
        let exact = model.filter(|_| self.exact());
        let (owned, failed) = (&owned, BTreeMap::new());
        let mut exact = exact.map(|model| Step { engine, model, plan, owned, failed });
        // A transfer that leaves requests out serves the others, also those of an older plan after a plan that failed.
        let some = self.record(moved) || planned || moved == AVSG_LOST_ROWS;
        let mut layers = if listed { vec![0, 1] } else { vec![first] };
        if let Some(step) = &mut exact {
            assert!(planned, "a plan without a mistake: {}", last_error());
            self.check_transfer(step, &layers, moved);
        }
        if some && !listed && alone {
            let layer = 1 - first % 2;
            // SAFETY: as above.
            let moved =
                unsafe { avsg_engine_transfer(engine, plan, &layer, 1, &fresh[layer], null_mut()) };
            self.record(moved);
            layers.push(layer);
            if let Some(step) = &mut exact {
                self.check_transfer(step, &[layer], moved);
            }
        }
        if let Some(step) = exact {
            self.check_plan(&step, &held);
            self.check_slots(&step, &layers);
            self.recover(step);
        } else if some {
            // The slots may have other rows, or a layer lacks a plan.
            self.epoch += 1;
        }
    }

    /// Returns a list of both layers and their number, at times with a mistake.
    pub(super) fn list(&mut self) -> ([usize; 2], usize) {
        let layers = if self.mistake(24) { [self.index(2), self.index(2)] } else { [0, 1] };
        let count = self.mostly(2);
        (layers, if count == 1 { 0 } else { count })
    }

    /// Returns the ids below [`ROWS`] that the state of a request holds.
    fn held_by(
        &mut self,
        engine: *mut avsg_engine,
        owned: &OwnedBatch,
        at: usize,
    ) -> BTreeSet<i32> {
        let (state, generation) = (owned.state[at].max(0), owned.generation[at]);
        self.held(engine, owned.indexer, (state, generation), 0..ROWS)
    }

    /// Returns the ids of a range that a state holds for an indexer.
    pub(super) fn held(
        &mut self,
        engine: *mut avsg_engine,
        indexer: usize,
        (state, generation): (i32, i32),
        Range { start, end }: Range<usize>,
    ) -> BTreeSet<i32> {
        let (state, mut bits) = (state as usize, [u64::MAX; ROWS / 64]);
        let (at, words) = (bits.as_mut_ptr(), bits.len());
        // SAFETY: the array has that many words.
        self.expect(unsafe {
            avsg_engine_get_held(engine, indexer, state, generation, start, end, at, words)
        });
        let is_held = |n: &usize| bits[n / 64] >> (n % 64) & 1 == 1;
        (0..end - start).filter(is_held).map(|n| (start + n) as i32).collect()
    }

    /// Checks the misses of each row and their slots, and that the first token of each request hit what its state held
    /// and nothing else.
    fn check_plan(&mut self, step: &Step<'_>, held: &[BTreeSet<i32>]) {
        let Step { model, plan, owned, .. } = *step;
        // SAFETY: the struct has its `size` set.
        let arrays = self.filled(|to| unsafe { avsg_plan_get_arrays(plan, HOST, to) });
        for (request, (held, ends)) in held.iter().zip(owned.cu_q.windows(2)).enumerate() {
            let (first, rows) = (ends[0] as usize, (ends[1] - ends[0]) as usize);
            let (missed, stable) = (missed(plan, request, true), owned.stable[request]);
            // SAFETY: the plan's arrays hold the batch's requests and rows.
            let [positions, of_misses, row_misses, slots] = unsafe {
                [
                    read_words(None, arrays.miss_position.add(first * K), missed.len()),
                    read_words(None, arrays.miss_slot.add(first * K), missed.len()),
                    read_words(None, arrays.row_misses.add(first), rows),
                    read_words(None, arrays.slot.add(first * K), rows * K),
                ]
            };
            let mut listed = vec![0; rows];
            positions.iter().for_each(|&at| listed[at as usize / K] += 1);
            assert_eq!(row_misses, listed);
            for (&at, &slot) in positions.iter().zip(&of_misses) {
                let state = owned.state[request] as usize;
                let returned = model.place(state, slots[at as usize] as usize);
                assert_eq!(model.place_in_state(state, slot as usize), returned, "slot {slot}");
            }
            if owned.state[request] < 0 || rows == 0 {
                continue;
            }
            let missed = &missed[..row_misses[0] as usize];
            for (&id, &slot) in owned.row(first).iter().zip(&slots).filter(|(_, slot)| **slot >= 0)
            {
                let held = held.contains(&id) && (stable < 0 || id < stable);
                assert_eq!(held, !missed.contains(&id), "request {request}, id {id}, slot {slot}");
                self.checked += 1;
            }
        }
    }

    /// Checks the slots of the requests that did not fail, and the counters of the plan.
    fn check_slots(&mut self, step: &Step<'_>, layers: &[usize]) {
        let Step { model, plan, owned, .. } = *step;
        // SAFETY: the structs have their `size` set, and the plan's arrays hold the batch's rows.
        let (counters, misses, slots) = unsafe {
            let arrays = self.filled(|to| avsg_plan_get_arrays(plan, HOST, to));
            let misses = read_words(None, arrays.row_misses, owned.rows()).iter().sum::<i32>();
            let slots = read_words(None, arrays.slot, owned.rows() * K);
            (self.filled(|to| avsg_plan_get_counters(plan, to)), misses as usize, slots)
        };
        assert_eq!((counters.requests, counters.tokens), (owned.state.len(), owned.rows()));
        assert_eq!((counters.misses, counters.hits), (misses, counters.selected - misses));
        let mut selected = 0;
        for &layer in layers {
            for_each_id(
                &owned.batch(),
                ROW,
                |row| &slots[row * K..][..K],
                |state, slot, bytes| model.read(layer, state, slot, bytes),
                |_, id| {
                    let host = model.host_row(id as usize);
                    (host as i32, model.pool.version(layer, host))
                },
                |seen| {
                    selected += usize::from(!seen.bytes.is_empty());
                    if !step.failed.contains_key(&seen.request) {
                        self.checked += assert_exact(seen, layer);
                    }
                },
            );
        }
        assert_eq!(counters.selected * layers.len(), selected);
    }

    /// Checks that a transfer of a step to some layers left out exactly the requests that missed a row that was
    /// never written, in this transfer or in an earlier one: those in `failed`.
    fn check_transfer(&mut self, step: &mut Step<'_>, layers: &[usize], status: avsg_status) {
        let Step { model, plan, ref mut failed, .. } = *step;
        let text = last_error();
        // SAFETY: the struct has its `size` set.
        let counters = self.filled(|to| unsafe { avsg_plan_get_counters(plan, to) });
        for request in 0..counters.requests {
            let rows = missed(plan, request, false);
            let lacks_row = |layer, row| row >= 0 && !model.pool.is_written(layer, row as usize);
            let lacks = |&layer: &usize| {
                let lost = rows.iter().filter(|&&row| lacks_row(layer, row)).min();
                lost.map(|&row| (layer, row as usize))
            };
            let lost = layers.iter().find_map(lacks).filter(|_| !failed.contains_key(&request));
            let (is_new, ids) = lost_ids(plan, request);
            assert_eq!(is_new, lost.is_some(), "request {request}");
            if let Some(lost) = lost {
                failed.insert(request, lost);
                let lacks = |row: &i32| layers.iter().any(|&layer| lacks_row(layer, *row));
                let all = rows.iter().zip(missed(plan, request, true));
                let all: Vec<_> = all.filter(|(row, _)| lacks(row)).map(|(_, id)| id).collect();
                assert_eq!(ids, all, "request {request}");
            }
        }
        let expected = if failed.is_empty() { AVSG_OK } else { AVSG_LOST_ROWS };
        assert_eq!(status, expected, "a transfer without a mistake: {text}");
        let all: Vec<_> = failed.iter().map(|(&request, &(l, row))| (request, l, row)).collect();
        assert_eq!(failures(plan, counters.requests), all);
    }

    /// Checks that the states of requests that were left out are empty, and goes on: writes the rows, discards
    /// the plan, or neither.
    fn recover(&mut self, Step { engine, model, plan, owned, failed }: Step<'_>) {
        if failed.is_empty() {
            return;
        }
        for (&request, lost) in &failed {
            let held = self.held_by(engine, owned, request);
            assert!(held.is_empty(), "request {request} without {lost:?} has {held:?}");
        }
        let known = self.shared.known().pools.contains_key(&model.pool.handle);
        let way = if known { self.below(3) } else { 1 + self.below(2) };
        self.recovered[way] += 1;
        match way {
            0 => failed.values().for_each(|&(layer, row)| model.pool.restore(layer, row)),
            1 => self.expect(avsg_engine_discard(engine, plan)),
            _ => {}
        }
    }
}
