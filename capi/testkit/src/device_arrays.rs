//! A step's arrays in device memory, and handles on every device.

use std::ffi::{CStr, CString, c_void};
use std::ptr::without_provenance;
use std::sync::Arc;

use avsg::ascend::acl::Context;
use avsg::ascend::simulated;
use avsg::engine::DeviceArray;
use avsg_capi::*;
use avsg_testkit::batch::OwnedBatch;
use avsg_testkit::device_arrays::DeviceArrays;
use avsg_testkit::fresh::FreshRows;

use crate::device::{c_path, simulator_library};
use crate::workload::{self, SLOTS, params};
use crate::*;

/// Creates handles on "cpu", "ascend-sim", or "ascend", with the geometry of [`params`]. "ascend"
/// runs the code of a real device over a runtime library found by path, which is the simulator's.
pub fn handles_on(device: &'static CStr) -> Handles {
    handles_with(device, |_| ())
}

/// Does the same after `set` has changed the configuration.
pub fn handles_with(device: &'static CStr, set: impl FnOnce(&mut avsg_engine_config)) -> Handles {
    let mut config = config_on(device);
    (config.cores, config.slots) = (3, SLOTS);
    set(&mut config);
    let (runtime, kernels, mut ascend): (CString, CString, avsg_ascend);
    if device == c"ascend" {
        let emitted = simulated::emit(&params()).unwrap();
        (runtime, kernels) = (c_path(&simulator_library()), c_path(&emitted));
        ascend = sized();
        (ascend.runtime, ascend.kernels) = (runtime.as_ptr(), kernels.as_ptr());
        config.ascend = &ascend;
    }
    let pool = avsg_pool_config { rows: workload::POOL_ROWS, ..pool_config() };
    Handles::create(&pool, &config)
}

/// The structs that a C program passes with a stream, and the device memory that they point to.
pub struct DeviceStep {
    /// The batch.
    pub batch: avsg_batch,
    /// The fresh rows of each layer.
    pub fresh: [avsg_fresh; 2],
    memory: DeviceArrays,
}

impl DeviceStep {
    /// Allocates device memory for a step and copies the step to it.
    pub fn new(context: &Arc<Context>, arrays: &Arrays) -> Self {
        let rows = [arrays.rows.clone(), arrays.rows.clone()];
        let device = Self::allocate(context, arrays, &rows);
        device.write(arrays, &rows);
        device
    }

    /// Allocates device memory for the arrays of one step, with the lengths of `like` and `rows`.
    pub fn allocate(context: &Arc<Context>, like: &OwnedBatch, rows: &[FreshRows; 2]) -> Self {
        let memory = DeviceArrays::new(context, like, rows).unwrap();
        let on_device = memory.batch();
        let array =
            |a: DeviceArray| avsg_i32s { data: without_provenance(a.address as usize), len: a.len };
        let batch = avsg_batch {
            ids: array(on_device.ids),
            cu_q: array(on_device.cu_q),
            state: array(on_device.state),
            generation: array(on_device.generation),
            stable_len: array(on_device.stable_len),
            seq_len: array(on_device.seq_len),
            block_table: array(on_device.block_table),
            ..c_batch(like)
        };
        let fresh = [0, 1].map(|layer| {
            let mut fresh = c_fresh(&rows[layer]);
            for (data, rows) in fresh.data.iter_mut().zip(memory.fresh(layer)) {
                *data = without_provenance::<c_void>(rows.address as usize);
            }
            fresh
        });
        Self { batch, fresh, memory }
    }

    /// Copies a step to the device memory.
    pub fn write(&self, step: &OwnedBatch, rows: &[FreshRows]) {
        self.memory.write(step, rows).unwrap();
    }
}
