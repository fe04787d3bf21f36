//! Set-associative FIFO with 16 ways, the policy of a published shared-indexer scheme.
//!
//! The set of an id is id mod the number of sets. A new row replaces the row at the set's head, and
//! the head advances by one, whether or not the replaced row is still selected. Only the policy is
//! modelled: the rows of a step are installed after it, so all its tokens are matched with the buffer
//! as it was before the step, and an id that two tokens miss is fetched twice and installed once.

use avsg_cli::baseline::Policy;
use avsg_cli::baseline::residents::Residents;

/// Rows per set.
const WAYS: usize = 16;

/// The buffer: sets of 16 rows, each with a FIFO head.
#[derive(Debug)]
pub struct SetFifo {
    residents: Residents,
    /// The way of each set that is replaced next.
    heads: Vec<u8>,
    /// Ids that the running step missed, which the next step installs.
    pending: Vec<i32>,
}

impl SetFifo {
    /// Creates an empty buffer of `slots` rows, a multiple of 16.
    pub fn new(slots: usize) -> Self {
        let (residents, heads) = (Residents::new(slots), vec![0; slots / WAYS]);
        Self { residents, heads, pending: Vec::new() }
    }
}

impl Policy for SetFifo {
    fn begin_step(&mut self) {
        for id in self.pending.drain(..) {
            if self.residents.find(id).is_some() {
                continue;
            }
            let set = id as usize % self.heads.len();
            let head = &mut self.heads[set];
            self.residents.bind(id, set * WAYS + usize::from(*head));
            *head = (*head + 1) % WAYS as u8;
        }
    }

    fn token(&mut self, ids: &[i32], misses: &mut Vec<i32>) {
        let missing = ids.iter().filter(|&&id| id >= 0 && self.residents.find(id).is_none());
        let first = misses.len();
        misses.extend(missing);
        self.pending.extend_from_slice(&misses[first..]);
    }
}
