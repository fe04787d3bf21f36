//! Checks what an engine says that its states hold: an id that a state holds hits, and any other misses.

use avsg::engine::Engine;
use avsg::plan::Plan;

use crate::batch::OwnedBatch;

/// Which ids of the first token of each request its state held before a step.
pub struct Held {
    /// For each request, the first id that was asked for, and a bit for each id from there on.
    requests: Vec<(i32, Vec<u64>)>,
}

impl Held {
    /// Asks an engine before a batch is planned.
    ///
    /// # Panics
    /// If the engine refuses or fails, or counts other ids than it has set bits.
    pub fn before(engine: &mut Engine, owned: &OwnedBatch) -> Self {
        let requests = (0..owned.state.len()).map(|r| {
            let ids = first_token(owned, r).filter(|&(_, id)| id >= 0).map(|(_, id)| id);
            let (Some(first), Some(last)) = (ids.clone().min(), ids.max()) else {
                return (0, Vec::new());
            };
            let mut bits = vec![u64::MAX; (last - first) as usize / 64 + 1];
            let (state, generation) = (owned.state[r] as usize, owned.generation[r]);
            let held = engine.held(owned.indexer, state, generation, first..last + 1, &mut bits);
            assert_eq!(
                held.unwrap() as u32,
                bits.iter().map(|word| word.count_ones()).sum::<u32>()
            );
            (first, bits)
        });
        Self { requests: requests.collect() }
    }

    /// Checks the plan of the batch, and returns the number of ids that were held.
    ///
    /// # Panics
    /// If an id that was held missed, or another one hit.
    pub fn check(&self, plan: &Plan, owned: &OwnedBatch) -> usize {
        let mut hits = 0;
        for (r, (first, bits)) in self.requests.iter().enumerate() {
            let (first_row, stable) = (owned.cu_q[r] as usize, owned.stable[r]);
            let has_slot = |&(lane, _): &(usize, i32)| plan.slots(first_row)[lane] >= 0;
            for (lane, id) in first_token(owned, r).filter(has_slot) {
                let at = (id - first) as usize;
                let held = bits[at / 64] >> (at % 64) & 1 == 1 && (stable < 0 || id < stable);
                let missed = &plan.misses(r).id[..plan.row_misses()[first_row] as usize];
                assert_eq!(held, !missed.contains(&id), "request {r}, lane {lane}, id {id}");
                hits += usize::from(held);
            }
        }
        hits
    }
}

/// Returns the lanes and the ids below the sequence length that the first token of a request selects; none
/// of a vacant request.
fn first_token(owned: &OwnedBatch, r: usize) -> impl Iterator<Item = (usize, i32)> + Clone {
    let (first, end) = (owned.cu_q[r] as usize, owned.cu_q[r + 1] as usize);
    let live = owned.state[r] >= 0 && first < end;
    let ids = if live { owned.row(first) } else { &[] };
    ids.iter().copied().enumerate().filter(move |&(_, id)| id < owned.seq[r])
}
