//! Learned lifetimes with perfect look-up: slots are found by a hash map, so no id loses its slot, and the
//! rule is written as plain loops.

use avsg::device::learned::{self, AFTER_HIT, MAX_VALUE, NEW, WAS_USED, part};
use avsg::device::params::Params;
use avsg::device::state::header;
use avsg_cli::baseline::Policy;
use std::collections::HashMap;

/// The policy of a geometry.
pub struct Ideal {
    p: Params,
    life: Vec<i8>,
    id: Vec<i32>,
    slot_of: HashMap<i32, usize>,
    header: [i32; header::WORDS],
    learned: Vec<i32>,
    begun: bool,
}

impl Ideal {
    pub fn new(p: Params) -> Self {
        let slots = p.slots as usize;
        Self {
            p,
            life: vec![i8::MIN; slots],
            id: vec![-1; slots],
            slot_of: HashMap::new(),
            header: [0; header::WORDS],
            learned: vec![0; learned::words(&p)],
            begun: false,
        }
    }

    /// Returns the lifetimes of a sample.
    fn sample(&self, first: i32) -> Vec<i8> {
        let first = self.header[first as usize] as usize;
        self.life[first..first + learned::sample_slots(&self.p)].to_vec()
    }

    fn value(&self, slot: usize) -> i32 {
        let life = self.life[slot];
        let learned = self.learned[part::VALUES + (i32::from(life) + 128) as usize];
        if life >= NEW { MAX_VALUE + 1 } else { learned }
    }
}

impl Policy for Ideal {
    fn begin_step(&mut self) {
        if std::mem::replace(&mut self.begun, true) {
            learned::learn(&self.p, &mut self.header, &mut self.learned);
        }
        let sample_part = learned::sample_part(&self.p);
        for (i, life) in self.sample(header::LAST_SAMPLE).into_iter().enumerate() {
            let used = if life > NEW { WAS_USED } else { 0 };
            self.learned[part::RESULT + i] = self.learned[sample_part + i] + used;
        }
        let moves_from = self.header[header::MOVES_FROM as usize];
        let moving = self.life.iter_mut().filter(|life| i32::from(**life) >= moves_from);
        moving.for_each(|life| *life = life.saturating_sub(16));
        for (i, life) in self.sample(header::SAMPLE).into_iter().enumerate() {
            self.learned[sample_part + i] = i32::from(life) + 128;
        }
    }

    fn token(&mut self, ids: &[i32], misses: &mut Vec<i32>) {
        for &id in ids {
            match self.slot_of.get(&id) {
                Some(&slot) => {
                    self.life[slot] = AFTER_HIT[(i32::from(self.life[slot]) + 128) as usize];
                }
                None => misses.push(id),
            }
        }
        let mut victims: Vec<usize> = (0..self.life.len()).collect();
        victims.sort_by_key(|&slot| self.value(slot));
        for (&id, slot) in misses.iter().zip(victims) {
            self.slot_of.remove(&self.id[slot]);
            self.slot_of.insert(id, slot);
            (self.id[slot], self.life[slot]) = (id, NEW);
        }
    }
}
