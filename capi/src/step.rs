//! The calls of a decode step. On "cpu" they allocate nothing and take no lock.

use std::ffi::c_void;

use crate::arrays::{avsg_batch, avsg_fresh, host_batch, read_fresh, with_fresh};
use crate::engine::avsg_engine;
use crate::handle;
use crate::overlap;
use crate::plan::{avsg_plan, check_readable};
use crate::pool::check_capacity;
use crate::queue;
use crate::sized;
use crate::status::avsg_status::AVSG_INVALID;
use crate::status::{Failure, avsg_status, enter};
use avsg::engine::{Engine, MAX_REQUESTS};
use avsg::plan::Plan;
use avsg::rows;

/// Stage One: finds the slots and miss lists of a batch. Layers that share an indexer share one
/// plan.
///
/// # Safety
/// The pointers keep the rules Pointers and Streams.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_plan(
    engine: *mut avsg_engine,
    batch: *const avsg_batch,
    plan: *mut avsg_plan,
    stream: *mut c_void,
) -> avsg_status {
    enter(|| {
        let mut engine = handle::exclusive::<Engine>(engine)?;
        let mut plan = handle::exclusive::<Plan>(plan)?;
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        if let Some(stream) = unsafe { queue::stream(&engine, stream)? } {
            // SAFETY: the caller keeps the contract of this function (`# Safety`).
            return unsafe { queue::plan(&mut engine, batch, &mut plan, stream) };
        }
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let batch = unsafe { host_batch(&overlap::read_batch(batch, &plan)?)? };
        Ok(engine.plan(&batch, &mut plan)?)
    })
}

/// Stage Two: copies the rows of a plan's misses to the slots of one layer. `fresh` may be NULL if
/// no miss is a fresh row. A plan that was made with a NULL stream is transferred with one. A plan
/// that was made in a stream is transferred in a stream after the plan's work, and the batch's
/// `cu_q` and `state` must not change before.
///
/// Order: every plan with a miss must be transferred to every layer that attention reads. The plans
/// of one state must be transferred to a layer in the order in which they were made: a plan older
/// than the last one transferred, or one with an older plan missing, is AVSG_INVALID. There is no
/// other constraint: a plan may go to the layers in any order and to a layer twice, plans of
/// different states are independent, and the next batch may be planned, and transferred to the
/// layers that have this plan, before the other layers have it. In a stream, states are not checked
/// and replays are unknown to the library, so that the caller ensures the order.
///
/// # Safety
/// The pointers keep the rules Pointers and Streams.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_transfer(
    engine: *mut avsg_engine,
    plan: *mut avsg_plan,
    layer: usize,
    fresh: *const avsg_fresh,
    stream: *mut c_void,
) -> avsg_status {
    enter(|| {
        let mut engine = handle::exclusive::<Engine>(engine)?;
        let mut plan = handle::exclusive::<Plan>(plan)?;
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        if let Some(stream) = unsafe { queue::stream(&engine, stream)? } {
            // SAFETY: the caller keeps the contract of this function (`# Safety`).
            return unsafe { queue::transfer(&mut engine, &plan, layer, fresh, stream) };
        }
        check_readable(&plan)?;
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let fresh = unsafe {
            overlap::check_fresh(fresh, &plan)?;
            read_fresh(fresh)?
        };
        Ok(with_fresh(fresh.as_ref(), |fresh| engine.transfer(&mut plan, layer, fresh))?)
    })
}

/// Does `avsg_engine_plan` and `avsg_engine_transfer` for one layer, in
/// `avsg_engine_config.launches` kernels. `fresh` may be NULL if every `stable_len` is -1.
///
/// # Safety
/// The pointers keep the rules Pointers and Streams.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_step(
    engine: *mut avsg_engine,
    batch: *const avsg_batch,
    plan: *mut avsg_plan,
    layer: usize,
    fresh: *const avsg_fresh,
    stream: *mut c_void,
) -> avsg_status {
    enter(|| {
        let mut engine = handle::exclusive::<Engine>(engine)?;
        let mut plan = handle::exclusive::<Plan>(plan)?;
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        if let Some(stream) = unsafe { queue::stream(&engine, stream)? } {
            // SAFETY: the caller keeps the contract of this function (`# Safety`).
            return unsafe { queue::step(&mut engine, batch, &mut plan, layer, fresh, stream) };
        }
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let batch = unsafe { host_batch(&overlap::read_batch(batch, &plan)?)? };
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let fresh = unsafe {
            overlap::check_fresh(fresh, &plan)?;
            read_fresh(fresh)?
        };
        Ok(with_fresh(fresh.as_ref(), |fresh| engine.step(&batch, &mut plan, layer, fresh))?)
    })
}

/// Writes the step's fresh rows to one layer of the host pool: fresh row g of a request becomes the
/// row of id stable_len + g. A request may have any number of rows, not only N_q (`avsg_batch.rows`
/// in a stream), which writes the rows of a prefill or a restore. Call it after the layer's transfer and before the next plan. Requests
/// whose `stable_len` or `state` is -1 are skipped. AVSG_INVALID if the pool has no row for an id,
/// or if this process is a reader; in a stream, rows without one in the pool are skipped.
///
/// # Safety
/// The pointers keep the rules Pointers and Streams.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_append(
    engine: *mut avsg_engine,
    batch: *const avsg_batch,
    layer: usize,
    fresh: *const avsg_fresh,
    stream: *mut c_void,
) -> avsg_status {
    enter(|| {
        let mut engine = handle::exclusive::<Engine>(engine)?;
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        if let Some(stream) = unsafe { queue::stream(&engine, stream)? } {
            // SAFETY: the caller keeps the contract of this function (`# Safety`).
            return unsafe { queue::append(&mut engine, batch, layer, fresh, stream) };
        }
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let (batch, fresh) = unsafe { (host_batch(&sized::read(batch)?)?, read_fresh(fresh)?) };
        with_fresh(fresh.as_ref(), |fresh| match fresh {
            Some(fresh) => Ok(engine.append(&batch, layer, fresh)?),
            None => Err(queue::no_rows_to_append()),
        })
    })
}

/// Fills the block table of a paged attention kernel, with pages of `page` slots (0 selects S). The
/// pages of a request's state are written from table[request * stride] on, as indices that count
/// from avsg_buffer.base, and S is written to lengths[request]. A state has S / page pages: slot s
/// is row s % page of the page at index s / page. A padded request (state -1) gets pages of -1 and
/// length 0. `requests` is at most 1048576, and the three arrays do not overlap.
///
/// # Safety
/// `states` and `lengths` have `requests` elements, and `table` has requests * stride.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_block_table(
    engine: *const avsg_engine,
    states: *const i32,
    requests: usize,
    page: usize,
    table: *mut i32,
    stride: usize,
    lengths: *mut i32,
) -> avsg_status {
    enter(|| {
        let engine = handle::shared::<Engine>(engine)?;
        let buffer = engine.buffer();
        // The table of state 0 checks `page` and gives the number of pages per state.
        let pages = buffer.block_table(0, page)?.len();
        check_capacity(pages, stride, "pages in a request's row")?;
        let total = requests.checked_mul(stride).filter(|_| requests <= MAX_REQUESTS);
        let total = total.ok_or_else(|| {
            let text = format!(
                "requests is {requests}, but it must be 0..={MAX_REQUESTS}, and rows of {stride} must \
                 fit memory; pass fewer"
            );
            Failure::new(AVSG_INVALID, text)
        })?;
        overlap::check_apart([
            ("states", states.addr(), requests),
            ("table", table.addr(), total),
            ("lengths", lengths.addr(), requests),
        ])?;
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let states = unsafe { sized::array("states", states, requests)? };
        for &state in states.iter().filter(|&&state| state != -1) {
            rows::index(
                "state",
                usize::try_from(state).unwrap_or(usize::MAX),
                engine.config().states,
            )?;
            buffer.block_table(state as usize, page)?;
        }
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let table = unsafe { sized::array_mut("table", table, total)? };
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let lengths = unsafe { sized::array_mut("lengths", lengths, requests)? };
        for (request, &state) in states.iter().enumerate() {
            let row = &mut table[request * stride..][..pages];
            lengths[request] = 0;
            row.fill(-1);
            if state >= 0 {
                lengths[request] = engine.config().params.slots as i32;
                row.iter_mut()
                    .zip(buffer.block_table(state as usize, page)?)
                    .for_each(|(to, index)| *to = index);
            }
        }
        Ok(())
    })
}
