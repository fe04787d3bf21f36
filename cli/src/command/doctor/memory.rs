//! Host memory: what registers, and how fast it is read.

use anyhow::{Result, bail};
use avsg::ascend::RegisteredPool;
use avsg::ascend::acl::owned::DeviceMemory;
use avsg::pool::{HostPool, Pages, PoolConfig};
use avsg::rows::RowFormat;

use super::Patient;

const ROW: usize = 1152;

/// One chunk of so many bytes, registered.
fn chunk(p: &Patient, bytes: usize, pages: Pages) -> Result<RegisteredPool> {
    let format = RowFormat::single(4096)?;
    let config =
        PoolConfig { chunk_bytes: bytes, pages, ..PoolConfig::new(1, bytes / 4096, format) };
    Ok(RegisteredPool::new(&p.context, HostPool::new(&config)?)?)
}

/// Whether memory in explicit hugepages registers.
pub fn hugetlb(p: &Patient) -> Result<bool> {
    let pool = chunk(p, 8 << 20, Pages::Huge2M);
    match pool {
        Ok(pool) if pool.pool().pages() == Pages::Huge2M => Ok(true),
        Ok(pool) => bail!(
            "no 2 MiB hugepages are free (got {}); set /proc/sys/vm/nr_hugepages",
            pool.pool().pages()
        ),
        Err(error) => Err(error.context("the registration was refused")),
    }
}

/// The largest power of two that one registration took, up to the option's.
pub fn largest(p: &Patient) -> Result<usize> {
    let mut best = 0;
    let mut bytes = 1 << 20;
    while bytes <= p.largest {
        match chunk(p, bytes, Pages::Plain) {
            Ok(_) => best = bytes,
            Err(error) if best == 0 => return Err(error),
            Err(_) => break,
        }
        bytes *= 2;
    }
    Ok(best)
}

/// Bandwidth of all cores by rows that are on their way at once.
pub fn rows_in_flight(p: &Patient, out: &DeviceMemory) -> Result<Vec<(i32, f64)>> {
    let rows = if p.simulated { 32 } else { 4096 };
    let config = PoolConfig {
        chunk_bytes: usize::MAX,
        ..PoolConfig::new(1, rows * p.cores, RowFormat::single(ROW)?)
    };
    let pool = RegisteredPool::create(&p.context, &config)?;
    let from = pool.addresses().next().unwrap_or(0);
    let mut found = Vec::new();
    for depth in [1, 2, 4, 8, 16, 32] {
        let setting = [0, depth, ROW as i32, rows as i32];
        let us = p.probe.best(|b| b.run(c"avsg_probe_rows", from, out, setting, p.cores))?;
        found.push((depth, (rows * p.cores * ROW) as f64 / us / 1e3));
    }
    p.hardware()?;
    Ok(found)
}
