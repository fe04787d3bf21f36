//! Checks of host memory: which memory can be registered, and how fast the device reads it.

use anyhow::{Result, bail};
use avsg::ascend::RegisteredPool;
use avsg::pool::{HostPool, Pages, PoolConfig};
use avsg::rows::RowFormat;

use super::harness::{Harness, ROW, TIMES};
use super::probe::Launch;

fn register_chunk(harness: &Harness, bytes: usize, pages: Pages) -> Result<RegisteredPool> {
    let format = RowFormat::single(4096)?;
    let config =
        PoolConfig { chunk_bytes: bytes, pages, ..PoolConfig::new(1, bytes / 4096, format) };
    Ok(RegisteredPool::new(&harness.context, HostPool::new(&config)?)?)
}

/// Returns whether memory in explicit hugepages can be registered.
pub fn hugetlb(harness: &Harness) -> Result<bool> {
    let pool = register_chunk(harness, 8 << 20, Pages::Huge2M);
    match pool {
        Ok(pool) if pool.pool().pages() == Pages::Huge2M => Ok(true),
        Ok(pool) => bail!(
            "no 2 MiB hugepages are free (the pool got {}); set /proc/sys/vm/nr_hugepages to 4 or more",
            pool.pool().pages()
        ),
        Err(error) => Err(error.context("the registration was refused")),
    }
}

/// Returns the bytes of the largest registration that succeeded: powers of two from 1 MiB to `--largest`.
pub fn largest(harness: &Harness) -> Result<usize> {
    let mut best = 0;
    let mut bytes = 1 << 20;
    while bytes <= harness.largest {
        match register_chunk(harness, bytes, Pages::Plain) {
            Ok(_) => best = bytes,
            Err(error) if best == 0 => return Err(error),
            Err(_) => break,
        }
        bytes *= 2;
    }
    Ok(best)
}

/// Returns a pool of registered rows in one chunk, and the number of rows for each core.
pub fn host_rows(harness: &Harness) -> Result<(RegisteredPool, i32)> {
    let rows = if harness.simulated { 32 } else { 4096 };
    let config = PoolConfig {
        chunk_bytes: usize::MAX,
        ..PoolConfig::new(1, rows * harness.cores, RowFormat::single(ROW)?)
    };
    Ok((RegisteredPool::create(&harness.context, &config)?, rows as i32))
}

/// Returns the bandwidth of all cores in GB/s for each number of rows in flight per core.
pub fn rows_in_flight(harness: &Harness) -> Result<Vec<(i32, f64)>> {
    let probe = harness.probe(TIMES)?;
    let (pool, rows) = host_rows(harness)?;
    let from = pool.addresses().next().unwrap_or(0);
    let mut bandwidths = Vec::new();
    for depth in [1, 2, 4, 8, 16, 28] {
        let setting = [rows / depth, depth, ROW as i32, rows];
        let launch = Launch { name: c"avsg_probe_rows", from, setting, blocks: harness.cores };
        let least = (0..5).try_fold(f64::MAX, |best, _| Ok(probe.run(&launch)?.min(best)));
        let bytes = (rows / depth * depth) as usize * harness.cores * ROW;
        bandwidths.push((depth, bytes as f64 / least.map_err(|e: anyhow::Error| e)? / 1e3));
    }
    Ok(bandwidths)
}
