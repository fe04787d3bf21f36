//! Stage Two on the CPU: each core copies its share of the misses of each layer.

use avsg_device::one_request::{ROW, SLOT};
use avsg_device::stage_two::for_each_range;

use super::cores::Outputs;
use crate::call::HostCall;
use crate::copy::Copier;
use crate::resources::Resources;

/// One launch of Stage Two. Its pieces are the shares of the cores in each layer.
pub(super) struct Transfer<'a> {
    pub resources: &'a Resources,
    pub copier: Copier,
    pub out: &'a Outputs<'a>,
    pub call: &'a HostCall<'a>,
}

impl Transfer<'_> {
    /// Returns the number of pieces.
    pub fn pieces(&self) -> usize {
        self.call.layers.len() * self.resources.config.cores
    }

    /// Copies the share of one core in one layer.
    pub fn run(&self, piece: usize) {
        let (resources, out) = (self.resources, self.out);
        let cores = resources.config.cores;
        let (index, core) = (piece / cores, piece % cores);
        let (layer, fresh_rows) = (self.call.layers[index], self.call.fresh_of(index));
        let misses = |request| out.misses(request, ROW).len();
        for_each_range(core, cores, out.requests, misses, |request, range| {
            let slots = &out.misses(request, SLOT)[range.clone()];
            let rows = &out.misses(request, ROW)[range];
            let (first, state) = (out.cu_q[request] as usize, out.state[request] as usize);
            for (i, segment) in resources.pool.format().as_slice().iter().enumerate() {
                let to = resources.buffer.checked_view(state, layer, i);
                let from = resources.pool.checked_view(layer, i);
                let source = |n: usize| match rows[n] {
                    row @ 0.. => from.ptr(row as usize),
                    fresh => {
                        let at = (first + !fresh as usize) * segment.stride;
                        // `check::call` has checked that the slice holds a row of every token.
                        fresh_rows.map_or(core::ptr::null(), |f| f[i][at..].as_ptr())
                    }
                };
                // SAFETY: Stage One returns only rows of the pool and of this step, and slots below
                // S. A slot is in one miss of one request, so destinations are distinct. Pool,
                // buffer and fresh rows do not overlap, and no other thread or process writes these
                // rows (module `pool`).
                unsafe {
                    self.copier.copy_rows(slots.len(), segment.bytes, source, |n| {
                        to.ptr(slots[n] as usize)
                    });
                }
            }
        });
    }
}
