//! All memory of a pool, an engine and a plan, computed before anything is taken.

use crate::config::{Device, avsg_engine_config, engine_config};
use crate::pool_config::{avsg_pool_config, pool_config};
use crate::sized::{OutStruct, SizedStruct};
use crate::status::{Result, avsg_status, enter};
use avsg::allocator::MemoryBytes;
use avsg::ascend::sizes;
use avsg::engine::{Config, Engine};
use avsg::plan::Plan;
use avsg::pool::{HostPool, PoolConfig};

/// The memory of a pool, an engine and a plan by `avsg_memory_kind`, in bytes. What is 0 on "cpu" has
/// a value on an Ascend device only.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_memory {
    /// sizeof(avsg_memory).
    pub size: usize,
    /// What `avsg_pool_create` takes of AVSG_MEMORY_HOST; without an allocator, at most.
    pub pool: usize,
    /// What `avsg_engine_create` takes of AVSG_MEMORY_HOST: on "cpu" the device buffer, the tables of
    /// all indexers and the cores' working memory; on an Ascend device a copy of one table.
    pub engine_host: usize,
    /// What it takes of AVSG_MEMORY_DEVICE: the device buffer, the tables of all indexers, 8 bytes for
    /// each chunk of the pool, and 512 bytes with AVSG_LIFETIME_FREQUENCY; 0 on "cpu".
    pub engine_device: usize,
    /// What `avsg_plan_create` takes of AVSG_MEMORY_HOST.
    pub plan_host: usize,
    /// What it takes of AVSG_MEMORY_PINNED; 0 on "cpu".
    pub plan_pinned: usize,
    /// What it takes of AVSG_MEMORY_DEVICE; 0 on "cpu". `plan_pinned` and this are released when a
    /// later plan of the engine is created, or with the engine.
    pub plan_device: usize,
    /// What the functions of a step with a NULL stream add of AVSG_MEMORY_PINNED once the largest
    /// batch and the largest append came; 0 on "cpu". An engine takes it once for all its plans.
    pub staging_pinned: usize,
    /// What they add of AVSG_MEMORY_DEVICE; 0 on "cpu".
    pub staging_device: usize,
}

// SAFETY: the struct is repr(C) with `size` first, and its fields are words.
unsafe impl SizedStruct for avsg_memory {
    const NAME: &'static str = "avsg_memory";
    const FIRST_SIZE: usize = 72;
}
const _: () = assert!(size_of::<avsg_memory>() == 72);

/// Checks a configuration as the creation of the engine does. Returns the bytes of the slots that it
/// allocates, and those of the tables and, on "cpu", of the cores' working memory.
pub(crate) fn slots_and_tables(
    config: &Config,
    device: &Device,
    pool: &PoolConfig,
) -> Result<(usize, usize)> {
    Ok(match device {
        Device::Ascend(_) => sizes::slots_and_tables(config, pool)?,
        Device::Cpu(Some(workers)) => Engine::bytes_with_workers(config, pool, workers.threads())?,
        Device::Cpu(None) => Engine::bytes_needed(config, pool)?,
    })
}

/// Computes the memory of a pool, of an engine on it, and of a plan for batches of at most `max_rows`
/// rows and `max_requests` requests, and allocates nothing. It refuses what `avsg_pool_create`,
/// `avsg_engine_create` and `avsg_plan_create` refuse in a configuration; what they find on the machine
/// (memory, threads, devices, kernels) it does not look at. An allocator in the configurations is
/// asked for exactly these bytes. `block_stride` is that of the largest batch with host arrays; only
/// the staging memory depends on it, which is a sum of powers of two and exact for the largest batch.
/// On a pool of `avsg_pool_from_layout` the chunks are the parts of each layer.
///
/// # Safety
/// The pointers keep the rule Pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_memory_bytes(
    config: *const avsg_engine_config,
    pool: *const avsg_pool_config,
    max_rows: usize,
    max_requests: usize,
    block_stride: usize,
    memory: *mut avsg_memory,
) -> avsg_status {
    enter(|| {
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let out = unsafe { OutStruct::new(memory)? };
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let pool = unsafe { pool_config(pool)? };
        let pool_bytes = HostPool::plan_bytes(&pool)?;
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let (config, device) = unsafe { engine_config(config, pool.layers, &pool.format)? };
        let (slots, tables) = slots_and_tables(&config, &device, &pool)?;
        let plan_host = Plan::bytes_needed(&config.params, max_rows, max_requests)?;
        let (engine, plan, staging) = match device {
            Device::Cpu(_) => {
                let host = slots.saturating_add(tables);
                (MemoryBytes { host, ..Default::default() }, Default::default(), Default::default())
            }
            Device::Ascend(_) => (
                sizes::engine_bytes(&config, &pool)?,
                sizes::plan_bytes(&config, max_rows, max_requests)?,
                sizes::staging_bytes(&config, &pool, max_rows, max_requests, block_stride)?,
            ),
        };
        out.write(avsg_memory {
            size: 0,
            pool: pool_bytes,
            engine_host: engine.host,
            engine_device: engine.device,
            plan_host,
            plan_pinned: plan.pinned,
            plan_device: plan.device,
            staging_pinned: staging.pinned,
            staging_device: staging.device,
        });
        Ok(())
    })
}
