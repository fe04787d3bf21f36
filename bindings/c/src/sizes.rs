//! All memory of a pool, an engine and a plan, computed before anything is taken.

use crate::boundary::{give_struct, zeroed};
use crate::engine::{Device, avsg_engine_config, engine_config};
use crate::pool::{avsg_pool_config, pool_config};
use crate::status::{Result, avsg_status};
use avsg::ascend::sizes;
use avsg::engine::{Config, Engine};
use avsg::pool::{HostPool, PoolConfig};
use avsg::system::allocator::MemoryKind;

/// Where memory is.
#[repr(C)]
pub enum avsg_memory_kind {
    /// Memory of the process: pools, the outputs of plans, and all memory of an engine on "cpu".
    AVSG_MEMORY_HOST = 0,
    /// Memory of the process that an Ascend device copies, as of aclrtMallocHost.
    AVSG_MEMORY_PINNED = 1,
    /// Memory of an Ascend device, as of aclrtMalloc.
    AVSG_MEMORY_DEVICE = 2,
}

// An allocator gets the numbers of the library's kinds.
const _: () = assert!(
    MemoryKind::Pinned as i32 == avsg_memory_kind::AVSG_MEMORY_PINNED as i32
        && MemoryKind::Device as i32 == avsg_memory_kind::AVSG_MEMORY_DEVICE as i32
);

/// The memory of a pool, an engine and a plan by `avsg_memory_kind`, in bytes. What is 0 on "cpu" has
/// a value on an Ascend device only.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_memory {
    /// sizeof(avsg_memory).
    pub size: usize,
    /// AVSG_MEMORY_HOST of `avsg_pool_create`; without an allocator, at most. 0 with a layout; with a file its
    /// queue of writes and what it notes of each row.
    pub pool: usize,
    /// The device buffer: S rows for each state and layer; 0 in memory of the caller.
    pub buffer: usize,
    /// The tables of all indexers and, on "cpu", the cores' working memory and, with a file, a bounce
    /// buffer for each transfer that may be under way.
    pub tables: usize,
    /// AVSG_MEMORY_HOST of `avsg_engine_create`: on "cpu" `buffer` and `tables`; on an Ascend device a
    /// copy of one table.
    pub engine_host: usize,
    /// AVSG_MEMORY_DEVICE of it: `buffer` and `tables`, 8 bytes for each chunk of the pool or part of a
    /// layer, and 512 bytes with AVSG_LIFETIME_LEARNED; 0 on "cpu".
    pub engine_device: usize,
    /// AVSG_MEMORY_HOST of `avsg_plan_create`: on "cpu" 20 * K + 8 bytes per token and 116 per request, and
    /// with a file 12 * K bytes per token and, for layers that share an indexer, a bounce buffer of at most
    /// 32 MiB.
    pub plan_host: usize,
    /// AVSG_MEMORY_PINNED of it; 0 on "cpu".
    pub plan_pinned: usize,
    /// AVSG_MEMORY_DEVICE of it; 0 on "cpu". `plan_pinned` and this are released when a later plan of
    /// the engine is created, or with the engine.
    pub plan_device: usize,
    /// What steps with a NULL stream add of AVSG_MEMORY_PINNED once the largest batch came; 0 on "cpu".
    /// An engine takes it once for all its plans.
    pub staging_pinned: usize,
    /// What they add of AVSG_MEMORY_DEVICE; 0 on "cpu".
    pub staging_device: usize,
}

/// Adds the memory of an engine to `all`, after the checks of its creation.
fn add_engine(
    all: &mut avsg_memory,
    config: &Config,
    device: &Device,
    pool: &PoolConfig,
) -> Result<()> {
    (all.buffer, all.tables) = match device {
        Device::Ascend(_) => sizes::slots_and_tables(config, pool)?,
        Device::Cpu(workers) => Engine::bytes_needed(config, pool, workers.as_ref())?,
    };
    if matches!(device, Device::Cpu(_)) {
        all.engine_host = all.buffer.saturating_add(all.tables);
        return Ok(());
    }
    let engine = sizes::engine_bytes(config, pool)?;
    (all.engine_host, all.engine_device) = (engine.host, engine.device);
    Ok(())
}

/// Computes the memory of a pool, of an engine on it, and of a plan for batches of at most `max_tokens`
/// tokens and `max_requests` requests, and takes none of it. With a NULL `config` it is that of the
/// pool alone, and without tokens and requests there is no plan. It refuses what the create functions
/// refuse in a configuration, a layout included, and nothing else, and does not look at what they find on
/// the machine (memory, files, threads, devices, kernels). An allocator is asked for exactly these bytes.
/// `block_stride` is that of the largest batch with host arrays, for which the staging memory, a sum of powers
/// of two, is exact.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_get_memory(
    config: *const avsg_engine_config,
    pool: *const avsg_pool_config,
    max_tokens: usize,
    max_requests: usize,
    block_stride: usize,
    memory: *mut avsg_memory,
) -> avsg_status {
    let add = || {
        let pool = contract!(pool_config(pool)?);
        let mut all = avsg_memory { pool: HostPool::plan_bytes(&pool)?, ..zeroed() };
        if !config.is_null() {
            let (config, device) = contract!(engine_config(config, pool.layers, &pool.format)?);
            add_engine(&mut all, &config, &device, &pool)?;
            if (max_tokens, max_requests) != (0, 0) {
                all.plan_host = Engine::plan_bytes(&config, &pool, max_tokens, max_requests)?;
                if let Device::Ascend(_) = device {
                    let plan = sizes::plan_bytes(&config, max_tokens, max_requests)?;
                    (all.plan_pinned, all.plan_device) = (plan.pinned, plan.device);
                    let (n, requests) = (max_tokens, max_requests);
                    let more = sizes::staging_bytes(&config, &pool, n, requests, block_stride)?;
                    (all.staging_pinned, all.staging_device) = (more.pinned, more.device);
                }
            }
        }
        Ok(all)
    };
    contract!(give_struct(memory, add))
}
