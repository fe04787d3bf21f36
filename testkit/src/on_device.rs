//! A batch and its own rows in device memory, at the same addresses in every step: what a graph is
//! captured with.

use std::sync::Arc;

use avsg::Result;
use avsg::ascend::acl::owned::{Context, DeviceMemory};
use avsg::engine::{DeviceArray, DeviceBatch, DeviceRows};

use crate::batch::Owned;
use crate::fresh::FreshRows;

/// Device memory for steps of one form.
pub struct OnDevice {
    batch: DeviceBatch,
    arrays: [DeviceMemory; 7],
    /// By layer and segment.
    fresh: Vec<Vec<DeviceMemory>>,
}

impl OnDevice {
    /// Room for steps with as many requests, rows, ids and blocks as these arrays have, and with such
    /// rows on each layer.
    ///
    /// # Errors
    /// If the device's memory is used up.
    pub fn new(context: &Arc<Context>, like: &Owned, fresh: &[FreshRows]) -> Result<Self> {
        let memory = |bytes: usize| DeviceMemory::zeroed(context, bytes.max(4));
        let mut arrays = Vec::new();
        for array in like.arrays() {
            arrays.push(memory(4 * array.len())?);
        }
        let layer = |rows: &FreshRows| rows.parts().iter().map(|p| memory(p.len())).collect();
        let fresh = fresh.iter().map(layer).collect::<Result<_>>()?;
        let Ok(arrays) = <[DeviceMemory; 7]>::try_from(arrays) else {
            unreachable!("seven arrays")
        };
        let lengths = like.arrays().map(<[i32]>::len);
        let at = |i: usize| DeviceArray { address: arrays[i].address(), len: lengths[i] };
        let batch = DeviceBatch {
            requests: like.state.len(),
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
        };
        Ok(Self { batch, arrays, fresh })
    }

    /// Brings a step's arrays and rows there. Behind fewer ids than there is room for lies junk.
    ///
    /// # Errors
    /// If the runtime does not copy.
    pub fn write(&self, step: &Owned, fresh: &[FreshRows]) -> Result<()> {
        let [ids, others @ ..] = step.arrays();
        let mut ids = ids.to_vec();
        assert!(ids.len() <= self.batch.ids.len, "more ids than there is room for");
        ids.resize(self.batch.ids.len, -9);
        for (memory, array) in self.arrays.iter().zip([&ids[..]].into_iter().chain(others)) {
            let bytes: Vec<u8> = array.iter().flat_map(|word| word.to_ne_bytes()).collect();
            memory.write(0, &bytes)?;
        }
        for (layer, rows) in self.fresh.iter().zip(fresh) {
            for (memory, part) in layer.iter().zip(rows.parts()) {
                memory.write(0, part)?;
            }
        }
        Ok(())
    }

    /// Where the arrays are.
    pub fn batch(&self) -> DeviceBatch {
        self.batch
    }

    /// Where a layer's rows are.
    pub fn fresh(&self, layer: usize) -> Vec<DeviceRows> {
        let rows = |m: &DeviceMemory| DeviceRows { address: m.address(), bytes: m.len() };
        self.fresh[layer].iter().map(rows).collect()
    }
}
