//! The hit rate of exact LRU for every buffer size, from one pass over a trace.
//!
//! The rows that [`ExactLru`](super::ExactLru) keeps in S slots are the first S of one list, which does
//! not depend on S: all selected ids, the last used first (Mattson et al., "Evaluation techniques for
//! storage hierarchies", 1970). So an id hits in every buffer of at least as many slots as its position
//! in the list when its token begins, its *stack distance*. The repetitions of an id within a token hit
//! in every buffer.

use super::HitCount;
use crate::trace::Trace;

/// The mark of an id that was not selected, and of a time whose selection is not the last of its id.
const NONE: u32 = u32::MAX;

/// Hits of exact LRU, for every S of at least K.
#[derive(Debug)]
pub struct LruCurve {
    /// Hits (after the first step, in it) of a buffer with as many slots as the index.
    hits: Vec<[u64; 2]>,
    /// Selected ids (after the first step, in it).
    selected: [u64; 2],
}

impl LruCurve {
    /// Computes the stack distances of all ids of a trace.
    pub fn of(trace: &Trace) -> Self {
        let mut recency = Recency::new(trace.largest_id().map_or(0, |id| id as usize + 1), trace.k);
        let mut at_distance: Vec<[u64; 2]> = vec![[0; 2]];
        let mut selected = [0; 2];
        // For each id, the number of the last row that selected it, counted from 1.
        let mut last_row = vec![0; recency.time_of.len()];
        let mut stale = trace.stale().into_iter().peekable();
        for (row, number) in (0..trace.steps * trace.tokens).zip(1u32..) {
            let first = usize::from(row < trace.tokens);
            let ids = trace.row(row / trace.tokens, row % trace.tokens);
            for (at, &id) in (row * trace.k..).zip(ids).filter(|&(_, &id)| id >= 0) {
                selected[first] += 1;
                let repeated = std::mem::replace(&mut last_row[id as usize], number) == number;
                let distance = if repeated { Some(0) } else { recency.distance(id) };
                // An id whose row was rewritten is copied anew in every buffer.
                if stale.next_if_eq(&at).is_some() {
                    continue;
                }
                if let Some(distance) = distance {
                    if distance >= at_distance.len() {
                        at_distance.resize(distance + 1, [0; 2]);
                    }
                    at_distance[distance][first] += 1;
                }
            }
            ids.iter().filter(|&&id| id >= 0).for_each(|&id| recency.make_newest(id));
        }
        let mut sum = [0; 2];
        for hits in &mut at_distance {
            sum = [sum[0] + hits[0], sum[1] + hits[1]];
            *hits = sum;
        }
        Self { hits: at_distance, selected }
    }

    /// Returns the hits of a buffer of `slots` rows, at least K.
    pub fn count(&self, slots: usize) -> HitCount {
        let [later, first] = self.hits[slots.min(self.largest_distance())];
        let [later_selected, first_selected] = self.selected;
        HitCount {
            selected: later_selected + first_selected,
            hits: later + first,
            first_selected,
            first_hits: first,
        }
    }

    /// Returns the smallest buffer that has all hits that exact LRU can have.
    pub fn largest_distance(&self) -> usize {
        self.hits.len() - 1
    }
}

/// The selected ids in the order of their last use. Each selection has a time, and a Fenwick tree
/// counts the times that are some id's last.
#[derive(Debug)]
struct Recency {
    /// The time of each id's last use, or `NONE`.
    time_of: Vec<u32>,
    /// The id whose last use was at each time, or `NONE`.
    id_at: Vec<u32>,
    /// Partial sums over the times: node i covers the `i & -i` times that end at time i - 1.
    sums: Vec<u32>,
    /// The time of the next selection.
    now: usize,
    /// The number of different ids so far.
    live: usize,
}

impl Recency {
    fn new(ids: usize, k: usize) -> Self {
        let times = (4 * k).next_power_of_two();
        Self {
            time_of: vec![NONE; ids],
            id_at: vec![NONE; times],
            sums: vec![0; times + 1],
            now: 0,
            live: 0,
        }
    }

    /// Returns the number of ids that were used since this id was, the id itself included; `None` for
    /// an id without a use.
    fn distance(&self, id: i32) -> Option<usize> {
        let time = self.time_of[id as usize];
        if time == NONE {
            return None;
        }
        let (mut node, mut older) = (time as usize, 0);
        while node > 0 {
            older += self.sums[node] as usize;
            node &= node - 1;
        }
        Some(self.live - older)
    }

    fn make_newest(&mut self, id: i32) {
        if self.now == self.id_at.len() {
            self.renumber();
        }
        let now = self.now as u32;
        let before = std::mem::replace(&mut self.time_of[id as usize], now);
        self.id_at[self.now] = id as u32;
        self.add(self.now, 1);
        self.now += 1;
        if before == NONE {
            self.live += 1;
        } else {
            self.id_at[before as usize] = NONE;
            self.add(before as usize, u32::MAX);
        }
    }

    /// Adds to the count of a time; `u32::MAX` subtracts 1.
    fn add(&mut self, time: usize, value: u32) {
        let mut node = time + 1;
        while node < self.sums.len() {
            self.sums[node] = self.sums[node].wrapping_add(value);
            node += node & node.wrapping_neg();
        }
    }

    /// Gives the ids the times 0, 1, .. in their order, and doubles the times if ids fill more than
    /// half of them, so that renumbering takes a constant time per selection.
    fn renumber(&mut self) {
        let times = self.id_at.len() << usize::from(2 * self.live > self.id_at.len());
        let ids: Vec<u32> = self.id_at.drain(..).filter(|&id| id != NONE).collect();
        self.id_at = ids;
        for (time, &id) in (0..).zip(&self.id_at) {
            self.time_of[id as usize] = time;
        }
        self.now = self.id_at.len();
        self.id_at.resize(times, NONE);
        self.sums = vec![0; times + 1];
        for node in 1..=times {
            self.sums[node] += u32::from(node <= self.now);
            let parent = node + (node & node.wrapping_neg());
            if parent <= times {
                self.sums[parent] += self.sums[node];
            }
        }
    }
}
