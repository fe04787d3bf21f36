//! Frequency lifetimes without a table: what the 8-bit policy reaches where no mapping is ever lost.
//!
//! A score is the logarithm of an exponentially decaying count, in units of u = ln(1 / lambda): decay
//! is one less a step, and a hit, count + 1, is s <- round(ln(1 + e^(u s)) / u). A new row starts at 0.
//! Scores live in the 128 values up to `top`, where a row that is hit in every step settles. Rows of
//! the running step are in use: they are not evicted, and a second hit in it does not count.

use super::residents::Residents;
use super::{Policy, check_slots};
use avsg::{Error, Result};

/// 127 is the mark for "in use" in the operator's byte, so no score may reach it.
const LARGEST_TOP: f64 = 126.0;

/// The buffer. Finding victims takes one pass over the slots for each token with misses.
#[derive(Debug)]
pub struct IdealFrequency {
    residents: Residents,
    score: Vec<i16>,
    /// The step that used the slot last; 0 for none.
    used_in: Vec<u32>,
    step: u32,
    floor: i16,
    /// The score after a hit, by the score before it, from the floor up.
    after_hit: Vec<i16>,
    /// Slots by score from one below the floor (empty slots): the counting sort of victims.
    by_score: Vec<Vec<u32>>,
}

impl IdealFrequency {
    /// An empty buffer of `slots` rows whose counts fall to `lambda` of themselves each step.
    pub fn new(slots: usize, lambda: f64) -> Result<Self> {
        let slots = check_slots(slots, 1)?;
        let remedy = "0.9 is a good start, 0.97 is near the limit";
        if !(lambda > 0.0 && lambda < 1.0) {
            return Err(Error::invalid("lambda", lambda, "it is between 0 and 1", remedy));
        }
        let u = -libm::log(lambda);
        let top = libm::floor(-libm::log(1.0 - lambda) / u + 0.5);
        if !(0.0..=LARGEST_TOP).contains(&top) {
            let limit = format!("its largest score {top} must be 0 to {LARGEST_TOP}");
            return Err(Error::invalid("lambda", lambda, limit, remedy));
        }
        let (top, floor) = (top as i16, top as i16 - 127);
        let hit = |s: i16| libm::round(libm::log(1.0 + libm::exp(u * f64::from(s))) / u);
        let after_hit = (floor..=top).map(|s| (hit(s) as i16).min(top)).collect();
        Ok(Self {
            residents: Residents::new(slots),
            score: vec![floor - 1; slots],
            used_in: vec![0; slots],
            step: 0,
            floor,
            after_hit,
            by_score: vec![Vec::new(); 129],
        })
    }

    /// Sorts the slots that are not in use by score; ties stay in the order of slots.
    fn sort_victims(&mut self) {
        self.by_score.iter_mut().for_each(Vec::clear);
        for slot in 0..self.score.len() {
            if self.used_in[slot] != self.step || self.residents.is_empty(slot) {
                self.by_score[(self.score[slot] - self.floor + 1) as usize].push(slot as u32);
            }
        }
    }
}

impl Policy for IdealFrequency {
    fn begin_step(&mut self) {
        self.step += 1;
        for (slot, score) in self.score.iter_mut().enumerate() {
            if !self.residents.is_empty(slot) {
                *score = (*score - 1).max(self.floor);
            }
        }
    }

    fn token(&mut self, ids: &[i32], misses: &mut Vec<i32>) {
        let first = misses.len();
        for &id in ids.iter().filter(|&&id| id >= 0) {
            match self.residents.find(id) {
                Some(slot) if self.used_in[slot] == self.step => {}
                Some(slot) => {
                    self.used_in[slot] = self.step;
                    self.score[slot] = self.after_hit[(self.score[slot] - self.floor) as usize];
                }
                None => misses.push(id),
            }
        }
        if misses.len() == first {
            return;
        }
        self.sort_victims();
        let mut victims = self.by_score.iter().flatten();
        let mut kept = first;
        for at in first..misses.len() {
            let id = misses[at];
            if self.residents.find(id).is_some() {
                continue;
            }
            misses[kept] = id;
            kept += 1;
            // Without N_q * K <= S there may be nobody left to evict: the row is not kept.
            let Some(&slot) = victims.next() else { continue };
            let slot = slot as usize;
            self.residents.bind(id, slot);
            self.score[slot] = 0;
            self.used_in[slot] = self.step;
        }
        misses.truncate(kept);
    }
}
