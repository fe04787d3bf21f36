//! Copies of rows in memory to slots: Stage Two, the rows that only a step has, and the slots of a sequence that is forked.

use avsg_device::one_request::{ROW, SLOT};
use avsg_device::stage_two::{for_each_range, share_start};

use super::cores::Outputs;
use super::worker_pool::{Stage, WorkerPool, copy_nanoseconds};
use crate::Result;
use crate::backend::SlotCopy;
use crate::call::HostCall;
use crate::copy::Copier;
use crate::plan::Plan;
use crate::resources::Resources;

/// Bytes of slots that are copied to every state before the next ones, so that the others read them from a cache.
const BLOCK_BYTES: usize = 64 << 10;

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
                    let source = |n: usize| from.ptr(rows[n] as usize);
                    let slot = |n: usize| to.ptr(of_rows[n] as usize);
                    // SAFETY: Stage One returns only rows of the pool, apart from fresh rows, and slots below S.
                    // A slot is in one miss of one request, so destinations are distinct. Pool and buffer do not
                    // overlap, and no other thread or process writes these rows (module `pool`).
                    unsafe { self.copier.copy_rows(count, segment.bytes, source, slot) };
                }
            }
        });
    }
}

/// Copies the fresh rows that a plan missed to the layers of a call, in the calling thread: they are few, and their
/// memory is the caller's during the call only.
pub(super) fn copy_fresh(resources: &Resources, plan: &Plan, call: &HostCall<'_>) {
    let [rows, slots] = [ROW, SLOT].map(|column| &plan.miss[column]);
    for request in (0..plan.requests).filter(|&request| plan.fresh && plan.missed(request)) {
        let (first, state) = (plan.cu_q[request] as usize, plan.state[request] as usize);
        for place in plan.places(request).filter(|&place| rows[place] < 0) {
            let token = first + !rows[place] as usize;
            for (index, &layer) in call.layers.iter().enumerate() {
                let fresh = call.fresh_of(index).unwrap_or(&[]);
                let segments = resources.pool.format().as_slice().iter();
                for (i, (segment, rows)) in segments.zip(fresh).enumerate() {
                    // `check::call` has checked that the slice holds a row of every token.
                    let from = &rows[token * segment.stride..][..segment.bytes];
                    let view = resources.buffer.checked_view(state, layer, i);
                    // SAFETY: the slot is one of the buffer, which has room for the segment and which no
                    // input overlaps.
                    unsafe {
                        let to = view.ptr(slots[place] as usize);
                        core::ptr::copy_nonoverlapping(from.as_ptr(), to, segment.bytes);
                    }
                }
            }
        }
    }
}

/// Copies slots of one state to others. The pieces are the shares of the cores in each layer.
pub(super) fn copy_slots(
    workers: &WorkerPool,
    resources: &Resources,
    copier: Copier,
    copy: &SlotCopy<'_>,
) -> Result<()> {
    let SlotCopy { layers, from, to, slots } = *copy;
    let (format, cores) = (resources.pool.format(), resources.config.cores);
    let view = |state, layer, segment| resources.buffer.checked_view(state, layer, segment);
    let run = |piece: usize, _: usize| {
        let (layer, core) = (layers[piece / cores], piece % cores);
        let share =
            share_start(slots.len(), core, cores)..share_start(slots.len(), core + 1, cores);
        for block in slots[share].chunks((BLOCK_BYTES / format.bytes()).max(1)) {
            for &state in to {
                for (i, segment) in format.as_slice().iter().enumerate() {
                    let (from, to) = (view(from, layer, i), view(state as usize, layer, i));
                    let source = |n: usize| from.ptr(block[n] as usize).cast_const();
                    let slot = |n: usize| to.ptr(block[n] as usize);
                    // SAFETY: the engine has checked both states, their blocks and that they differ, and
                    // the slots are distinct and below S, so that both ends are slots of the buffer and
                    // none of them overlap. No other piece has these slots, and no other launch runs.
                    unsafe { copier.copy_rows(block.len(), segment.bytes, source, slot) };
                }
            }
        }
    };
    let rows = slots.len().saturating_mul(layers.len()).saturating_mul(to.len());
    let stage = Stage { pieces: layers.len() * cores, run: &run };
    workers.launch(copy_nanoseconds(rows, format.bytes()), [None, Some(stage)], None).map(drop)
}
