//! The policy of HiSparse's base kernel: an LRU over batches.
//!
//! A slot whose id the token selects is a hit, any other may be evicted, and misses take the oldest of
//! the others. The new order of use is: slots that were not selected, misses, hits. The extra page for
//! the newest token and the shortcut for short contexts are left out.

use avsg_cli::baseline::Policy;
use avsg_cli::baseline::residents::Residents;

/// The buffer.
#[derive(Debug)]
pub struct HiSparse {
    residents: Residents,
    /// Slots, least recently used first.
    order: Vec<usize>,
    /// Whether the running token selects the id of each slot.
    selected: Vec<bool>,
}

impl HiSparse {
    /// Creates an empty buffer of `slots` rows.
    pub fn new(slots: usize) -> Self {
        let residents = Residents::new(slots);
        Self { residents, order: (0..slots).collect(), selected: vec![false; slots] }
    }
}

impl Policy for HiSparse {
    fn token(&mut self, ids: &[i32], misses: &mut Vec<i32>) {
        self.selected.fill(false);
        let mut missing = Vec::new();
        for &id in ids.iter().filter(|&&id| id >= 0) {
            match self.residents.find(id) {
                Some(slot) => self.selected[slot] = true,
                None => missing.push(id),
            }
        }
        let (hits, mut others): (Vec<_>, Vec<_>) =
            self.order.iter().partition(|&&slot| self.selected[slot]);
        let mut taken = 0;
        for id in missing {
            // An id that has become resident is the repetition of a miss.
            if self.residents.find(id).is_none() {
                misses.push(id);
                self.residents.bind(id, others[taken]);
                taken += 1;
            }
        }
        others.rotate_left(taken);
        self.order = others.into_iter().chain(hits).collect();
    }
}
