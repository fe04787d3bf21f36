//! The calls of a decode step. On "cpu" they allocate nothing and take no lock.

use std::ffi::c_void;

use crate::arrays::{avsg_batch, avsg_fresh, host_batch, read_fresh, with_fresh};
use crate::contract::contract;
use crate::engine::avsg_engine;
use crate::handle;
use crate::overlap;
use crate::plan::{avsg_plan, check_readable};
use crate::queue;
use crate::sized;
use crate::status::{avsg_status, enter};
use avsg::engine::Engine;
use avsg::plan::Plan;

/// Plans a batch and transfers it to one layer: `avsg_engine_plan` and `avsg_engine_transfer` in one
/// call. `fresh` may be NULL if every `stable_len` is -1.
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
        if let Some(stream) = contract!(queue::stream(&engine, stream)?) {
            return contract!(queue::step(&mut engine, batch, &mut plan, layer, fresh, stream));
        }
        let batch = contract!(host_batch(&overlap::read_batch(batch, &plan)?)?);
        contract!(overlap::check_fresh(fresh, &plan)?);
        let fresh = contract!(read_fresh(fresh)?);
        Ok(with_fresh(fresh.as_ref(), |fresh| engine.step(&batch, &mut plan, layer, fresh))?)
    })
}

/// Stage One: finds the slots and miss lists of a batch. Layers that share an indexer share one
/// plan.
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
        if let Some(stream) = contract!(queue::stream(&engine, stream)?) {
            return contract!(queue::plan(&mut engine, batch, &mut plan, stream));
        }
        let batch = contract!(host_batch(&overlap::read_batch(batch, &plan)?)?);
        Ok(engine.plan(&batch, &mut plan)?)
    })
}

/// Stage Two: copies the rows of a plan's misses to the slots of one layer. `fresh` may be NULL if
/// no miss is a fresh row. AVSG_INVALID if the layer lacks an older plan of a state, or has a newer one.
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
        if let Some(stream) = contract!(queue::stream(&engine, stream)?) {
            return contract!(queue::transfer(&mut engine, &plan, layer, fresh, stream));
        }
        check_readable(&plan)?;
        contract!(overlap::check_fresh(fresh, &plan)?);
        let fresh = contract!(read_fresh(fresh)?);
        Ok(with_fresh(fresh.as_ref(), |fresh| engine.transfer(&mut plan, layer, fresh))?)
    })
}

/// Writes the step's fresh rows to one layer of the pool: fresh row g of a request becomes the row of
/// id stable_len + g. A request may have any number of them, not only N_q, which writes the rows of a
/// prefill or a restore. Requests whose `stable_len` or `state` is -1 are skipped. AVSG_INVALID if the
/// pool has no row for an id, or if this process is a reader; a stream skips rows without one.
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
        if let Some(stream) = contract!(queue::stream(&engine, stream)?) {
            return contract!(queue::append(&mut engine, batch, layer, fresh, stream));
        }
        let (batch, fresh) = contract!((host_batch(&sized::read(batch)?)?, read_fresh(fresh)?));
        with_fresh(fresh.as_ref(), |fresh| match fresh {
            Some(fresh) => Ok(engine.append(&batch, layer, fresh)?),
            None => Err(queue::no_rows_to_append()),
        })
    })
}
