//! A host pool for a trace that uses few of its rows: only the pages of those rows take memory.

use anyhow::{Context, Result};
use avsg::pool::{Chunk, HostLayout, HostPool, Part, PoolConfig, Region};
use avsg::rows::Strides;
use memmap2::{Advice, MmapOptions};

/// Bytes of the smallest pool that is made sparse.
const MIN_BYTES: usize = 64 << 20;
/// The largest share of a pool's rows, as its inverse, that a trace may use for a sparse pool.
const MAX_SHARE: usize = 8;

/// Returns whether a pool of `bytes` bytes, of which `used` of `rows` rows hold something, should be
/// sparse. A pool of which much is used keeps its hugepages, which make copies faster.
pub fn is_worthwhile(bytes: usize, used: usize, rows: usize) -> bool {
    bytes >= MIN_BYTES && used <= rows / MAX_SHARE
}

/// Makes a pool whose pages the system provides when they are first written. Its memory is released
/// when the process ends.
pub fn pool(config: &PoolConfig) -> Result<HostPool> {
    let (mut regions, mut strides, mut parts) = (Vec::new(), Vec::new(), Vec::new());
    for (segment, format) in config.format.as_slice().iter().enumerate() {
        let layer_stride = config.rows.saturating_mul(format.stride);
        let len = config.layers.saturating_mul(layer_stride);
        // Without a reservation the system grants more than it has, as only few pages are written.
        let map = MmapOptions::new().len(len).no_reserve_swap().map_anon();
        let mut map = map.context("mapping a sparse host pool")?;
        // A hugepage would provide memory for a thousand rows that are not used. A kernel without
        // hugepages refuses the advice and needs none.
        let _ = map.advise(Advice::NoHugePage);
        let memory = Chunk::new(map.as_mut_ptr(), len).context("mapping a sparse host pool")?;
        regions.push(Region { memory, device_address: None });
        strides.push(Strides::rows(format.stride));
        let (layers, rows) = (0..config.layers, 0..config.rows);
        parts.push(Part { segment, layers, rows, region: segment, offset: 0, layer_stride });
        std::mem::forget(map);
    }
    let layout = HostLayout { regions: &regions, strides: &strides, parts: &parts };
    // SAFETY: every region is a mapping of its own of that length, which is never unmapped because
    // `forget` skipped its drop, and no other code has its address.
    let config = unsafe { config.clone().with_layout(&layout)? };
    Ok(HostPool::new(&config)?)
}
