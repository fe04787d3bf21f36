//! Stage Two on the CPU: each core copies its share of the misses of one layer.

use avsg_device::one_request::{POSITION, ROW, SLOT};
use avsg_device::stage_two::{RequestMisses, for_each_range};

use super::outputs::Outputs;
use crate::Result;
use crate::batch::Layer;
use crate::copy::Copier;
use crate::pool::RowView;
use crate::resources::Resources;
use crate::rows::MAX_SEGMENTS;

/// One launch of Stage Two, for one layer.
pub(super) struct Transfer<'a> {
    resources: &'a Resources,
    copier: Copier,
    out: &'a Outputs<'a>,
    layer: Layer<'a>,
    rows: heapless::Vec<RowView<'a>, MAX_SEGMENTS>,
}

impl<'a> Transfer<'a> {
    pub fn new(
        resources: &'a Resources,
        copier: Copier,
        out: &'a Outputs<'a>,
        layer: Layer<'a>,
    ) -> Result<Self> {
        let segments = resources.pool.format().as_slice().len();
        let rows = (0..segments).map(|s| resources.pool.view(layer.number, s));
        Ok(Self { resources, copier, out, layer, rows: rows.collect::<Result<_>>()? })
    }

    /// Copies the share of one core.
    ///
    /// # Panics
    /// If the plan names a state that does not exist, which the engine has refused. The panic breaks the
    /// device, so that no row is lost in silence.
    pub fn run(&self, core: usize) {
        let (resources, out) = (self.resources, self.out);
        let share = |r: usize| RequestMisses {
            positions: out.misses(r, POSITION),
            selected: (out.cu_q[r + 1] - out.cu_q[r]) as usize * out.k,
        };
        let config = &resources.config;
        for_each_range(
            config.strategy,
            core,
            config.cores,
            out.requests,
            share,
            |request, range| {
                let slots = &out.misses(request, SLOT)[range.clone()];
                let rows = &out.misses(request, ROW)[range];
                let (first, state) = (out.cu_q[request] as usize, out.state[request] as usize);
                for (i, segment) in resources.pool.format().as_slice().iter().enumerate() {
                    let to = resources.buffer.view(state, self.layer.number, i);
                    let to = to.unwrap_or_else(|error| panic!("{error}"));
                    let source = |n: usize| match rows[n] {
                        row @ 0.. => self.rows[i].ptr(row as usize),
                        fresh => {
                            let at = (first + !fresh as usize) * segment.stride;
                            // `check::fresh` has checked that the slice holds a row of every token.
                            self.layer
                                .fresh
                                .map_or(core::ptr::null(), |f| f.segments[i][at..].as_ptr())
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
            },
        );
    }
}
