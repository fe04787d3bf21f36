//! Frequency lifetimes without a hash table: the hit rate of the 8-bit policy if no mapping is lost.
//!
//! A score is the logarithm of an exponentially decaying count, in units of u = ln(1 / lambda). The
//! decay of a step subtracts 1 from the score. A hit adds 1 to the count, so the score becomes
//! round(ln(1 + e^(u s)) / u). A new row has the score 0. Scores are the 128 values up to `top`, the
//! score of a row that is hit in every step. Rows that the running step uses are not evicted, and a
//! second hit in the same step does not count.

use avsg_cli::baseline::Policy;
use avsg_cli::baseline::residents::Residents;

/// The buffer. Each token with misses sorts all slots to find its victims.
#[derive(Debug)]
pub struct IdealFrequency {
    residents: Residents,
    /// The score of each slot; `floor` - 1 for an empty slot.
    score: Vec<i16>,
    /// For each slot, the last step that used it, counted from 1; 0 for none.
    used_in: Vec<u32>,
    /// The running step, counted from 1.
    step: u32,
    /// The smallest score, `top` - 127.
    floor: i16,
    /// The score after a hit, indexed by the score before it minus `floor`.
    after_hit: Vec<i16>,
}

impl IdealFrequency {
    /// Creates an empty buffer of `slots` rows. Each step multiplies the counts by `lambda`, which the
    /// rule frequency must accept.
    pub fn new(slots: usize, lambda: f64) -> Self {
        let u = -libm::log(lambda);
        let top = libm::floor(-libm::log(1.0 - lambda) / u + 0.5);
        let (top, floor) = (top as i16, top as i16 - 127);
        let hit = |s: i16| libm::round(libm::log(1.0 + libm::exp(u * f64::from(s))) / u);
        let after_hit = (floor..=top).map(|s| (hit(s) as i16).min(top)).collect();
        Self {
            residents: Residents::new(slots),
            score: vec![floor - 1; slots],
            used_in: vec![0; slots],
            step: 0,
            floor,
            after_hit,
        }
    }

    /// Returns the slots that may be evicted, the smallest score first; equal scores stay in the order of
    /// slots.
    fn victims(&self) -> Vec<usize> {
        let is_free =
            |&slot: &usize| self.used_in[slot] != self.step || self.residents.is_empty(slot);
        let mut victims: Vec<usize> = (0..self.score.len()).filter(is_free).collect();
        victims.sort_by_key(|&slot| self.score[slot]);
        victims
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
        let mut victims = self.victims().into_iter();
        let mut kept = first;
        for at in first..misses.len() {
            let id = misses[at];
            if self.residents.find(id).is_some() {
                continue;
            }
            misses[kept] = id;
            kept += 1;
            // If N_q * K > S, every slot may be in use. The row is then not kept.
            let Some(slot) = victims.next() else { continue };
            self.residents.bind(id, slot);
            self.score[slot] = 0;
            self.used_in[slot] = self.step;
        }
        misses.truncate(kept);
    }
}
