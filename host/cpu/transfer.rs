//! Stage Two on the CPU: each core copies its share of the misses of each layer.

use avsg_device::one_request::{ROW, SLOT};
use avsg_device::stage_two::for_each_range;

use super::cores::Outputs;
use super::worker_pool::copy_nanoseconds;
use crate::copy::Copier;
use crate::resources::Resources;

/// One launch of Stage Two, without the fresh rows. Its pieces are the shares of the cores in each layer.
pub(super) struct Transfer<'a> {
    pub resources: &'a Resources,
    pub copier: Copier,
    pub out: Outputs<'a>,
    /// The misses of all requests, which may be a guess.
    pub misses: usize,
    pub layers: &'a [usize],
}

impl Transfer<'_> {
    /// Returns the number of pieces.
    pub fn pieces(&self) -> usize {
        self.layers.len() * self.resources.config.cores
    }

    /// Returns the nanoseconds in which one core runs all pieces.
    pub fn nanoseconds(&self) -> u64 {
        let row_bytes = self.resources.pool.format().bytes();
        copy_nanoseconds(self.misses * self.layers.len(), row_bytes)
    }

    /// Copies the share of one core in one layer.
    pub fn run(&self, piece: usize) {
        let (resources, out) = (self.resources, &self.out);
        let cores = resources.config.cores;
        let (layer, core) = (self.layers[piece / cores], piece % cores);
        let misses = |request| out.misses(request, ROW).len();
        for_each_range(core, cores, out.requests, misses, |request, range| {
            let mut slots = &out.misses(request, SLOT)[range.clone()];
            let state = out.state[request] as usize;
            for rows in out.misses(request, ROW)[range].split_inclusive(|&row| row < 0) {
                let (of_rows, others) = slots.split_at(rows.len());
                slots = others;
                let count = rows.len() - usize::from(rows.last().is_some_and(|&row| row < 0));
                for (i, segment) in resources.pool.format().as_slice().iter().enumerate() {
                    let to = resources.buffer.checked_view(state, layer, i);
                    let from = resources.pool.checked_view(layer, i);
                    // SAFETY: Stage One returns only rows of the pool, apart from fresh rows, and slots below S.
                    // A slot is in one miss of one request, so destinations are distinct. Pool and buffer do not
                    // overlap, and no other thread or process writes these rows (module `pool`).
                    unsafe {
                        self.copier.copy_rows(
                            count,
                            segment.bytes,
                            |n| from.ptr(rows[n] as usize),
                            |n| to.ptr(of_rows[n] as usize),
                        );
                    }
                }
            }
        });
    }
}
