//! A checker of the invariants of every step. It uses nothing of the kernels but their outputs: it
//! keeps its own map from slots to rows, and its own versions of rows.
//!
//! 1. Padding, and an id without a row, has slot -1 and is not copied; every other id has a slot.
//! 2. A slot is in 0..S.
//! 3. A hit's slot held the id before the token.
//! 4. A request takes no slot twice.
//! 5. Two ids of a token have different slots, and an id misses at most as often as the token
//!    contains it.
//! 6. n_g is the length of a token's miss list, and all copies of an id hit or miss together.
//! 7. The miss list is in token order, and its entries agree with the ids and the slots of the
//!    token.
//! 8. At the end of the step, every returned slot holds the current version of its row.
//!
//! They hold after every step of random decodings, whatever values a request has learned: a slot that a step uses is
//! not its victim. The guards of `one_request` check that no output is written out of bounds.

use super::one_request::{OneRequest, Outcome, Step};
use super::sequences;
use avsg_device::params::Params;
use avsg_device::request::status;
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};

type Row = (i32, u32);

struct Checker {
    p: Params,
    generation: i32,
    /// The row and its version in each slot of the device buffer.
    slot: Vec<Option<Row>>,
    /// The version of each row: how often it was written again. A row without an entry has version
    /// 0.
    version: HashMap<i32, u32>,
}

macro_rules! holds {
    ($number:literal, $rule:expr, $($what:tt)+) => {
        prop_assert!($rule, "invariant {}: {}", $number, format!($($what)+));
    };
}

impl Checker {
    fn new(p: Params) -> Self {
        Self { p, generation: 0, slot: vec![None; p.slots as usize], version: HashMap::new() }
    }

    /// Checks one step and its outcome.
    fn follow(&mut self, step: &Step, got: &Outcome) -> Result<(), TestCaseError> {
        if step.generation != self.generation {
            self.generation = step.generation;
            self.slot.fill(None);
        }
        // This forward pass writes these rows; a slot that held one of them has an older version.
        for id in step.stable..step.limit {
            *self.version.entry(id).or_default() += 1;
        }
        for held in self.slot.iter_mut().filter(|h| h.is_some_and(|(id, _)| id >= step.stable)) {
            *held = None;
        }
        let mut used = HashSet::new();
        let mut expected_status = 0;
        let mut misses = got.misses.iter();
        for (g, ids) in step.tokens.iter().enumerate() {
            let n = got.counts[g] as usize;
            let list: Vec<_> = misses.by_ref().take(n).collect();
            let (slots, before) = (&got.slots[g], self.slot.clone());
            let first = (g * self.p.k as usize) as i32;
            let lane_of = |pos: i32| usize::try_from(pos - first).ok().filter(|&l| l < ids.len());
            holds!(6, list.len() == n, "the miss list has fewer entries than n_g");
            holds!(7, list.windows(2).all(|w| w[0].pos < w[1].pos), "order within token {g}");
            let mut missed = HashMap::new();
            for miss in &list {
                let lane = lane_of(miss.pos);
                holds!(7, lane.is_some(), "position {} of token {g}", miss.pos);
                let lane = lane.unwrap_or_default();
                let listed = (miss.id, miss.slot);
                holds!(7, listed == (ids[lane], slots[lane]), "lane {lane}: {miss:?}");
                holds!(2, (0..self.p.slots as i32).contains(&miss.slot), "{miss:?}");
                holds!(4, used.insert(miss.slot), "slot taken twice by the request: {miss:?}");
                prop_assert_eq!(Some(miss.row), self.row(step, miss.id), "the row of {:?}", miss);
                missed.insert(lane, miss.id);
                self.slot[miss.slot as usize] = Some((miss.id, self.now(miss.id)));
            }
            for (lane, (&x, &slot)) in ids.iter().zip(slots).enumerate() {
                let padding = !(0..step.limit).contains(&x);
                if slot == -1 {
                    holds!(1, padding || self.row(step, x).is_none(), "id {x} has no slot");
                    holds!(1, !missed.contains_key(&lane), "padding {x} is copied");
                    expected_status |= match (x >= step.limit, padding) {
                        (true, _) => status::ID_OUT_OF_RANGE,
                        (_, false) => status::ROW_OUT_OF_POOL,
                        _ => 0,
                    };
                    continue;
                }
                holds!(1, !padding, "padding {x} has slot {slot}");
                holds!(2, (0..self.p.slots as i32).contains(&slot), "slot {slot}");
                if !missed.contains_key(&lane) {
                    let held = before[slot as usize].is_some_and(|(id, _)| id == x);
                    holds!(3, held, "id {x} hits slot {slot}, {:?}", before[slot as usize]);
                    used.insert(slot);
                }
            }
            let valid = slots.iter().filter(|&&s| s >= 0).count();
            prop_assert_eq!(got.valid[g] as usize, valid, "valid ids of token {}", g);
            self.distinct(ids, slots, &missed)?;
        }
        holds!(7, misses.next().is_none(), "more misses than the tokens have");
        prop_assert_eq!(got.status, expected_status, "status");
        for (g, ids) in step.tokens.iter().enumerate() {
            for (&x, &slot) in ids.iter().zip(&got.slots[g]).filter(|(_, s)| **s >= 0) {
                let held = self.slot[slot as usize];
                holds!(8, held == Some((x, self.now(x))), "{x} in slot {slot}: {held:?}");
            }
        }
        let mine: Vec<i32> = self.slot.iter().map(|h| h.map_or(-1, |(id, _)| id)).collect();
        prop_assert!(mine == got.id, "the table's ids are not what the slots hold");
        Ok(())
    }

    /// Checks invariants 5 and 6 for the ids of a token.
    fn distinct(
        &self,
        ids: &[i32],
        slots: &[i32],
        missed: &HashMap<usize, i32>,
    ) -> Result<(), TestCaseError> {
        let mut owner = HashMap::new();
        for (&x, &slot) in ids.iter().zip(slots).filter(|(_, s)| **s >= 0) {
            holds!(5, *owner.entry(slot).or_insert(x) == x, "two ids in slot {slot}");
        }
        let lanes_with = |x| ids.iter().filter(|&&y| y == x).count();
        for &x in missed.values() {
            let count = missed.values().filter(|&&y| y == x).count();
            holds!(5, count <= lanes_with(x), "{x} missed {count} times");
            // Probe finds all copies of an id, or none.
            holds!(6, count == lanes_with(x), "{x} missed {count} times");
        }
        Ok(())
    }

    fn now(&self, id: i32) -> u32 {
        self.version.get(&id).copied().unwrap_or_default()
    }

    /// Returns the host row of the current version of an id: -1 - n for fresh row n, `None` if it
    /// has none.
    fn row(&self, step: &Step, x: i32) -> Option<i32> {
        if x >= step.stable {
            return Some(-1 - (x - step.stable));
        }
        let inside = |row: &i32| (0..step.rows).contains(row);
        if self.p.page == 0 {
            return Some(x).filter(inside);
        }
        let page = self.p.page as i32;
        let block = step.blocks.get((x / page) as usize).copied().filter(inside)?;
        Some(block * page + x % page)
    }
}

proptest! {
    #![proptest_config(sequences::config(512))]
    #[test]
    fn invariants_hold_after_every_step((p, steps) in sequences::sequences(false)) {
        let (mut request, mut checker) = (OneRequest::new(p), Checker::new(p));
        for (i, step) in (0..).zip(&steps) {
            request.scramble(i);
            checker.follow(step, &request.step(step))?;
        }
    }
}
