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
    let (layers, rows) = (config.layers, config.rows);
    let (mut regions, mut strides, mut parts) = (Vec::new(), Vec::new(), Vec::new());
    for (segment, format) in config.format.as_slice().iter().enumerate() {
        let layer_stride = rows.saturating_mul(format.stride);
        let len = layers.saturating_mul(layer_stride);
        // Without a reservation the system grants more than it has, as only few pages are written.
        let map = MmapOptions::new().len(len).no_reserve_swap().map_anon();
        let mut map = map.context("mapping a sparse host pool")?;
        // A hugepage would provide memory for a thousand rows that are not used. A kernel without
        // hugepages refuses the advice and needs none.
        let _ = map.advise(Advice::NoHugePage);
        let memory = Chunk::new(map.as_mut_ptr(), len).context("mapping a sparse host pool")?;
        regions.push(Region { memory, device_address: None });
        strides.push(Strides::rows(format.stride));
        let (layers, rows) = (0..layers, 0..rows);
        parts.push(Part { segment, layers, rows, region: segment, offset: 0, layer_stride });
        std::mem::forget(map);
    }
    let layout = HostLayout { regions: &regions, strides: &strides, parts: &parts };
    // SAFETY: every region is a mapping of its own of that length, which is never unmapped because
    // `forget` skipped its drop, and no other code has its address.
    Ok(unsafe { HostPool::from_layout(config, &layout)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use avsg::rows::RowFormat;

    #[test]
    fn rows_of_a_sparse_pool_are_zero_until_they_are_written() {
        let config = PoolConfig::new(1, 1 << 24, RowFormat::segments(&[64, 9]).unwrap());
        let pool = pool(&config).unwrap();
        let (mut row, last) = ([1; 73], (1 << 24) - 1);
        pool.read_row(0, last, &mut row).unwrap();
        assert_eq!(row, [0; 73]);
        pool.write_row(0, last, &[7; 73]).unwrap();
        pool.read_row(0, last, &mut row).unwrap();
        assert_eq!(row, [7; 73]);
    }

    #[test]
    fn a_sparse_pool_may_be_larger_than_the_memory() {
        let strict = std::fs::read_to_string("/proc/sys/vm/overcommit_memory");
        if strict.is_ok_and(|mode| mode.trim() == "2") {
            println!("skipped: this system grants no more memory than it has");
            return;
        }
        let available = avsg::available_memory::bytes().unwrap();
        let rows = 2 * available / (1 << 20);
        let config = PoolConfig::new(1, rows, RowFormat::single(1 << 20).unwrap());
        assert!(HostPool::new(&config).is_err());
        assert_eq!(pool(&config).unwrap().rows(), rows);
    }

    #[test]
    fn small_and_full_pools_are_not_sparse() {
        assert!(is_worthwhile(4 << 30, 6000, 1 << 22));
        assert!(!is_worthwhile(1 << 20, 6, 1 << 10));
        assert!(!is_worthwhile(4 << 30, 1 << 21, 1 << 22));
    }
}
