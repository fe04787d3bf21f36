//! The calls of a decode step. They allocate nothing and wait for no lock.

use std::ffi::c_void;

use crate::arrays::{avsg_batch, avsg_fresh, batch as read_batch, fresh as read_fresh, with_fresh};
use crate::engine::avsg_engine;
use crate::handle;
use crate::plan::avsg_plan;
use crate::pool::room_for;
use crate::queue;
use crate::sized;
use crate::status::avsg_status::{AVSG_INVALID, AVSG_NULL};
use crate::status::{Fail, avsg_status, enter};
use avsg::engine::Engine;
use avsg::plan::Plan;
use avsg::rows;

/// Stage One: slots and miss lists of a batch. Layers that share an indexer need it once.
///
/// # Safety
/// `batch` as its type says. `stream`: NULL waits, and is all that the device `cpu` knows; else an
/// aclrtStream of the engine's device, and all arrays are device memory (see `avsg_engine`).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_plan(
    engine: *mut avsg_engine,
    batch: *const avsg_batch,
    plan: *mut avsg_plan,
    stream: *mut c_void,
) -> avsg_status {
    enter(|| {
        let mut engine = handle::alone::<Engine>(engine)?;
        let mut plan = handle::alone::<Plan>(plan)?;
        // SAFETY: the contract.
        if let Some(stream) = unsafe { queue::stream(&engine, stream)? } {
            // SAFETY: the contract.
            return unsafe { queue::plan(&mut engine, batch, &mut plan, stream) };
        }
        // SAFETY: the contract.
        let batch = unsafe { read_batch(batch)? };
        Ok(engine.plan(&batch, &mut plan)?)
    })
}

/// Stage Two: copies a plan's misses into one layer's slots. `fresh` may be NULL if no miss is a row of
/// this step. A plan is transferred as it was planned: with NULL, or in a stream behind its plan, where the
/// batch's `cu_q` and `state` must still be there.
///
/// Order: every plan that missed a row goes to every layer that is read. For one layer and state, plans go
/// in the order in which they were planned: one that comes after a newer one, or before an older one that
/// the layer lacks, is AVSG_INVALID with nothing copied. Everything else is free: a plan may go to layers in
/// any order and to one twice, plans of different states do not wait for each other, and the next batch may
/// be planned, and transferred to the layers that have this one, while this one is on its way to others. In
/// a stream the states are not looked at, and a replay is not seen at all: there the order is the caller's.
///
/// # Safety
/// `fresh` is NULL or as its type says. `stream` as for `avsg_engine_plan`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_transfer(
    engine: *mut avsg_engine,
    plan: *mut avsg_plan,
    layer: usize,
    fresh: *const avsg_fresh,
    stream: *mut c_void,
) -> avsg_status {
    enter(|| {
        let mut engine = handle::alone::<Engine>(engine)?;
        let mut plan = handle::alone::<Plan>(plan)?;
        // SAFETY: the contract.
        if let Some(stream) = unsafe { queue::stream(&engine, stream)? } {
            // SAFETY: the contract.
            return unsafe { queue::transfer(&mut engine, &plan, layer, fresh, stream) };
        }
        queue::readable(&plan)?;
        // SAFETY: the contract.
        let fresh = unsafe { read_fresh(fresh)? };
        Ok(with_fresh(fresh.as_ref(), |fresh| engine.transfer(&mut plan, layer, fresh))?)
    })
}

/// Plan and transfer of one layer (avsg_engine_config.launches), in the order that `avsg_engine_transfer` demands. `fresh` may
/// be NULL if every `stable_len` is -1.
///
/// # Safety
/// As for `avsg_engine_plan` and `avsg_engine_transfer`.
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
        let mut engine = handle::alone::<Engine>(engine)?;
        let mut plan = handle::alone::<Plan>(plan)?;
        // SAFETY: the contract.
        if let Some(stream) = unsafe { queue::stream(&engine, stream)? } {
            // SAFETY: the contract.
            return unsafe { queue::step(&mut engine, batch, &mut plan, layer, fresh, stream) };
        }
        // SAFETY: the contract.
        let (batch, fresh) = unsafe { (read_batch(batch)?, read_fresh(fresh)?) };
        Ok(with_fresh(fresh.as_ref(), |fresh| engine.step(&batch, &mut plan, layer, fresh))?)
    })
}

/// Writes this step's rows, which were only fresh until now, to one layer of the host pool: row g of a
/// request becomes the row of id stable_len + g. Call it when the layer's gather is done and before the
/// next step plans. In a stream, rows without a place are passed over. Requests without `stable_len` or state are passed over. AVSG_INVALID, with nothing
/// written, if some row has no place in the pool or this process is a reader of it.
///
/// # Safety
/// As for `avsg_engine_step`; `fresh` is not NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_append(
    engine: *mut avsg_engine,
    batch: *const avsg_batch,
    layer: usize,
    fresh: *const avsg_fresh,
    stream: *mut c_void,
) -> avsg_status {
    enter(|| {
        let mut engine = handle::alone::<Engine>(engine)?;
        // SAFETY: the contract.
        if let Some(stream) = unsafe { queue::stream(&engine, stream)? } {
            // SAFETY: the contract.
            return unsafe { queue::append(&mut engine, batch, layer, fresh, stream) };
        }
        // SAFETY: the contract.
        let (batch, fresh) = unsafe { (read_batch(batch)?, read_fresh(fresh)?) };
        with_fresh(fresh.as_ref(), |fresh| match fresh {
            Some(fresh) => Ok(engine.append(&batch, layer, fresh)?),
            None => {
                let text = "fresh is NULL, but it holds the rows to append; pass the step's";
                Err(Fail::new(AVSG_NULL, text.into()))
            }
        })
    })
}

/// What a paged attention kernel wants to know of a batch: for each request the pages of its state, as
/// indices of pages of `page` slots that count from avsg_buffer.base, S / page of them at
/// table[request * stride]; and the number of slots, S, in lengths[request]. Slot s is row s % page of the
/// page at index s / page. A padded request (state -1) gets pages of -1 and length 0. A `page` of 0 means S.
///
/// # Safety
/// `states` has `requests` elements; `table` has room for requests * stride, `lengths` for `requests`.
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
        // Of state 0: whether the page is one, and how many there are to a state.
        let pages = buffer.block_table(0, page)?.len();
        room_for(pages, stride, "pages in a request's row")?;
        let total = requests.checked_mul(stride).ok_or_else(|| {
            let text =
                format!("requests is {requests}, but rows of {stride} must fit memory; pass fewer");
            Fail::new(AVSG_INVALID, text)
        })?;
        // SAFETY: the contract.
        let states = unsafe { sized::array("states", states, requests)? };
        for &state in states.iter().filter(|&&state| state != -1) {
            rows::index(
                "state",
                usize::try_from(state).unwrap_or(usize::MAX),
                engine.config().states,
            )?;
            buffer.block_table(state as usize, page)?;
        }
        // SAFETY: the contract.
        let table = unsafe { sized::array_mut("table", table, total)? };
        // SAFETY: the contract.
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
