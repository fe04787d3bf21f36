//! Both stages of a decode step in one call.

use std::ffi::c_void;

use crate::arrays::{avsg_batch, avsg_fresh, batch_of, device_array};
use crate::engine::avsg_engine;
use crate::fresh_list::{with_device_rows, with_host_rows};
use crate::handle;
use crate::plan::avsg_plan;
use crate::sized;
use crate::stages::{caller_stream, host_batch};
use crate::status::{avsg_status, enter};
use avsg::engine::{DeviceFresh, Engine, Fresh};
use avsg::plan::Plan;
use avsg::rows::MAX_SEGMENTS;

/// Plans a batch and transfers it to one layer: `avsg_engine_plan` and `avsg_engine_transfer` in one
/// call, `fresh` may be NULL if every `stable_len` is -1. After AVSG_OS and AVSG_LOST_ROWS the batch is
/// planned: go on as after such an `avsg_engine_transfer`.
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
        let stream = contract!(caller_stream(&engine, stream))?;
        let batch = contract!(sized::read(batch))?;
        let Some(stream) = stream else {
            let run = |fresh: Option<&Fresh<'_>>| {
                let batch = contract!(host_batch(&batch))?;
                Ok(engine.step(&batch, &mut plan, layer, fresh)?)
            };
            return contract!(with_host_rows::<MAX_SEGMENTS>(fresh, 1, run));
        };
        let run = |fresh: Option<&DeviceFresh<'_>>| {
            let batch = batch_of(&batch, device_array)?;
            Ok(contract!(engine.enqueue_step(&batch, &mut plan, layer, fresh, stream))?)
        };
        contract!(with_device_rows::<MAX_SEGMENTS>(fresh, 1, run))
    })
}
