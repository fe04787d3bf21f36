//! A step's arrays in device memory.

use std::ffi::c_void;
use std::ptr::without_provenance;
use std::sync::Arc;

use avsg::ascend::acl::Context;
use avsg::engine::{DeviceArray, DeviceBatch};
use avsg_capi::*;
use avsg_testkit::device_arrays::DeviceArrays;

use crate::*;

/// The structs that a C program passes with a stream, and the device memory that they point to.
pub struct DeviceStep {
    /// The batch.
    pub batch: avsg_batch,
    /// The fresh rows, which both layers share.
    pub fresh: avsg_fresh,
    _memory: DeviceArrays,
}

impl DeviceStep {
    /// Allocates device memory for a step and copies the step to it.
    pub fn new(context: &Arc<Context>, step: &Arrays) -> Self {
        let rows = std::slice::from_ref(&step.rows);
        let memory = DeviceArrays::new(context, step, rows).unwrap();
        memory.write(step, rows).unwrap();
        let on_device = memory.batch();
        let array =
            |a: DeviceArray| avsg_i32s { data: without_provenance(a.address as usize), len: a.len };
        let DeviceBatch { ids, cu_q, state, generation, .. } = on_device;
        let DeviceBatch { stable_len, seq_len, block_table, .. } = on_device;
        let arrays = [ids, cu_q, state, generation, stable_len, seq_len, block_table];
        let batch = c_batch_at(step, arrays.map(array));
        let mut fresh = step.fresh();
        for (data, rows) in fresh.data.iter_mut().zip(memory.fresh(0)) {
            *data = without_provenance::<c_void>(rows.address as usize);
        }
        Self { batch, fresh, _memory: memory }
    }
}
