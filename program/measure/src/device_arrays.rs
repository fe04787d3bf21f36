//! The arrays and the fresh rows of a batch in device memory, at the same addresses in every step,
//! so that a graph can be captured with them.

use std::sync::Arc;

use avsg::Result;
use avsg::ascend::acl::{Context, DeviceMemory};
use avsg::engine::{DeviceArray, DeviceBatch};

use crate::batch::OwnedBatch;
use crate::fresh::FreshRows;

/// Device memory for the arrays and fresh rows of steps whose arrays have the same lengths.
pub struct DeviceArrays {
    batch: DeviceBatch,
    arrays: Vec<DeviceMemory>,
    /// Indexed by layer and segment.
    fresh: Vec<Vec<DeviceMemory>>,
}

impl DeviceArrays {
    /// Allocates device memory for arrays as long as those of `like`, and for `fresh` rows on each
    /// layer.
    ///
    /// # Errors
    /// If the device has not enough free memory.
    pub fn new(context: &Arc<Context>, like: &OwnedBatch, fresh: &[FreshRows]) -> Result<Self> {
        let memory = |bytes: usize| DeviceMemory::zeroed(context, bytes.max(4));
        let arrays = like.arrays().into_iter().map(|array| memory(4 * array.len()));
        let arrays = arrays.collect::<Result<Vec<_>>>()?;
        let layer = |rows: &FreshRows| rows.parts().iter().map(|p| memory(p.len())).collect();
        let fresh = fresh.iter().map(layer).collect::<Result<_>>()?;
        let lengths = like.arrays().map(<[i32]>::len);
        let at = |i: usize| DeviceArray { address: arrays[i].address(), len: lengths[i] };
        let batch = DeviceBatch {
            k: like.k,
            ids: at(0),
            ids_stride: like.stride,
            cu_q: at(1),
            state: at(2),
            generation: at(3),
            stable_len: at(4),
            seq_len: at(5),
            block_table: at(6),
            block_stride: like.block_stride,
            indexer: like.indexer,
        };
        Ok(Self { batch, arrays, fresh })
    }

    /// Copies the arrays and fresh rows of a step to the device. Unused ids are set to -9. Whoever has put
    /// work on the arrays into a stream has waited for it.
    ///
    /// # Errors
    /// If a copy fails.
    ///
    /// # Panics
    /// If `step` has more ids than were allocated.
    pub fn write(&self, step: &OwnedBatch, fresh: &[FreshRows]) -> Result<()> {
        let [ids, others @ ..] = step.arrays();
        let mut ids = ids.to_vec();
        let room = self.batch.ids.len;
        assert!(ids.len() <= room, "{} ids do not fit the {room} that were allocated", ids.len());
        ids.resize(room, -9);
        for (memory, array) in self.arrays.iter().zip([&ids[..]].into_iter().chain(others)) {
            let bytes: Vec<u8> = array.iter().flat_map(|word| word.to_ne_bytes()).collect();
            // SAFETY: kernels get the addresses by the engine's unsafe calls only, whose caller lets nothing
            // write the arrays while the work runs (`Engine::enqueue_plan`).
            unsafe { memory.write(0, &bytes)? };
        }
        for (layer, rows) in self.fresh.iter().zip(fresh) {
            for (memory, part) in layer.iter().zip(rows.parts()) {
                // SAFETY: as for the arrays.
                unsafe { memory.write(0, part)? };
            }
        }
        Ok(())
    }

    /// Returns the addresses of the arrays.
    pub fn batch(&self) -> DeviceBatch {
        self.batch
    }

    /// Returns the addresses of a layer's fresh rows, segment by segment.
    pub fn fresh(&self, layer: usize) -> Vec<DeviceArray> {
        let rows = |m: &DeviceMemory| DeviceArray { address: m.address(), len: m.len() };
        self.fresh[layer].iter().map(rows).collect()
    }
}
