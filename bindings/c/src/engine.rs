//! Creation and destruction of engines.

use std::ffi::{CStr, c_char};
use std::sync::Arc;

use crate::allocator::{allocator, avsg_allocator};
use crate::ascend::{AscendDevice, ascend_device, avsg_ascend};
use crate::boundary::enter;
use crate::layout::{avsg_caller_buffer, caller_buffer};
use crate::pool::{Pool, avsg_pool, indexers};
use crate::status::avsg_status::AVSG_INVALID;
use crate::status::{Failure, Result, avsg_status, choice};
use crate::workers::{avsg_tuning, avsg_workers};
use crate::{boundary, handle};
use avsg::ascend::AscendOptions;
use avsg::ascend::acl::{Acl, Context};
use avsg::cpu::worker_pool::WorkerPool;
use avsg::device::params::Params;
use avsg::engine::{Config, Engine};
use avsg::rows::RowFormat;
use avsg::system::cpus::{MAX_CORES, allowed_cpu_count};

/// The configuration of an engine.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_engine_config {
    /// sizeof(avsg_engine_config).
    pub size: usize,
    /// A name of `avsg_devices`, or NULL for "cpu".
    pub device: *const c_char,
    /// K, the most ids that a token selects: 1 to S.
    pub k: u32,
    /// N_q, the most tokens of a request in one step: 1 to 16, with N_q * K at most S.
    pub tokens: u32,
    /// S, slots per state and layer: a multiple of 64 (Ascend: 128), at most 65536.
    pub slots: u32,
    /// Tokens per block of block tables: a power of two to 65536; 0: row x is id x.
    pub page: u32,
    /// Request states: the most requests that are resident at a time.
    pub states: usize,
    /// The indexer of each layer, from 0; NULL: one for all.
    pub layer_indexer: *const u32,
    /// Elements of `layer_indexer`: the pool's layers, or 0 with NULL.
    pub layer_indexers: usize,
    /// Cores, 1 to 1024; 0: one for each thread of `workers`, or all.
    pub cores: u32,
    /// 1: `slot` of a plan counts over all states, `miss_slot` does not (Part 3).
    pub global_slots: i32,
    /// Added to such indices; 0 or more.
    pub slot_base: i32,
    /// The most transfers that are under way (Part 2): 1 to 64; 0: 4.
    pub under_way: u32,
    /// NULL, or the threads of "cpu" (Part 3).
    pub workers: *const avsg_workers,
    /// NULL, or the options of an Ascend device (Part 3).
    pub ascend: *const avsg_ascend,
    /// NULL, or how the engine works (Part 3).
    pub tuning: *const avsg_tuning,
    /// NULL, or the memory of the slots (Part 3).
    pub buffer: *const avsg_caller_buffer,
    /// NULL, or that of the engine and its plans (Part 3).
    pub allocator: *const avsg_allocator,
}

pub(crate) enum Device {
    Cpu(Option<WorkerPool>),
    Ascend(AscendDevice),
}

/// Returns the device that a configuration names.
///
/// # Safety
/// `device` is NULL or a NUL-terminated string, and `ascend` is as [`ascend_device`] demands.
unsafe fn device(config: &avsg_engine_config, one_launch: Option<bool>) -> Result<Device> {
    let cpu = || {
        let workers = config.workers;
        let workers = (!workers.is_null()).then(|| handle::shared::<WorkerPool>(workers));
        Ok(Device::Cpu(workers.transpose()?.map(|workers| workers.clone())))
    };
    if config.device.is_null() {
        return cpu();
    }
    let name = contract!(CStr::from_ptr(config.device));
    let refuse = |status, reason, remedy| {
        let name: String = name.to_string_lossy().chars().take(32).collect();
        Err(Failure::new(status, format!("device is \"{name}\", but {reason}; {remedy}")))
    };
    let simulator = match name.to_bytes() {
        b"cpu" => return cpu(),
        b"ascend" => None,
        #[cfg(feature = "sim")]
        b"ascend-sim" => Some(avsg::ascend::simulated::source()),
        #[cfg(not(feature = "sim"))]
        b"ascend-sim" => {
            let reason = "this libavsg was built without its simulator";
            let remedy = "build avsg-capi-so with --features sim, or pass \"cpu\" or \"ascend\"";
            return refuse(crate::status::avsg_status::AVSG_UNSUPPORTED, reason, remedy);
        }
        _ => {
            let remedy = "pass NULL or a name of avsg_devices";
            return refuse(AVSG_INVALID, "libavsg has no such device", remedy);
        }
    };
    Ok(Device::Ascend(contract!(ascend_device(config.ascend, simulator, one_launch))?))
}

/// Reads the configuration of an engine on a pool of `layers` layers of rows of this format, and its
/// device. Arrays whose lengths do not fit the pool are not read.
///
/// # Safety
/// `config` is NULL or valid for reads of the number of bytes in its `size`, and so are the structs that
/// it points to; its strings are NULL or NUL-terminated, and its arrays are NULL or valid for reads of
/// their lengths.
pub(crate) unsafe fn engine_config(
    config: *const avsg_engine_config,
    layers: usize,
    format: &RowFormat,
) -> Result<(Config, Device)> {
    let config = contract!(boundary::read(config))?;
    let tuning = contract!(boundary::read_or_defaults(config.tuning))?;
    let device = contract!(device(&config, tuning.one_launch()?))?;
    let cores = match (config.cores, &device) {
        (0, Device::Cpu(Some(workers))) => workers.threads(),
        (0, Device::Cpu(None)) => allowed_cpu_count(),
        // The device limits the number to its own cores.
        (0, Device::Ascend(_)) => MAX_CORES,
        (n, _) => n as usize,
    };
    let slot_base = choice("global_slots", config.global_slots, &[None, Some(config.slot_base)])?;
    let on_vector_core = matches!(device, Device::Ascend(_));
    let params = tuning.params([config.k, config.tokens, config.slots], on_vector_core)?;
    let own = Config {
        params: Params { page: config.page, ..params },
        states: config.states,
        cores,
        machine: tuning.machine()?,
        copier: tuning.copier()?,
        indexers: contract!(indexers(config.layer_indexer, config.layer_indexers, layers))?,
        buffer: contract!(caller_buffer(config.buffer, layers, format))?,
        slot_base,
        under_way: config.under_way as usize,
        allocator: contract!(allocator(config.allocator))?,
    };
    Ok((own, device))
}

/// The operator on one device: the slots and the tables of every state.
pub struct avsg_engine;

/// Creates an engine on a pool, and starts its cores. The first engine of a process measures what `tuning`
/// leaves open, for tens of milliseconds. AVSG_UNSUPPORTED: the machine or the library lacks the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_create(
    config: *const avsg_engine_config,
    pool: *const avsg_pool,
    engine: *mut *mut avsg_engine,
) -> avsg_status {
    let make = || {
        let pool = handle::shared::<Pool>(pool)?;
        let (layers, format) = (pool.host.layers(), pool.host.format());
        let (config, device) = contract!(engine_config(config, layers, format)?);
        let host = Arc::clone(&pool.host);
        match device {
            Device::Cpu(None) => Ok(Engine::new(config, host)?),
            Device::Cpu(Some(workers)) => Ok(Engine::with_workers(config, host, &workers)?),
            Device::Ascend(device) => create_on_ascend(config, &pool, device),
        }
    };
    contract!(handle::give(engine, make))
}

fn create_on_ascend(config: Config, pool: &Pool, device: AscendDevice) -> Result<Engine> {
    let AscendDevice { source, kernels, id, timeout_ms, one_launch } = device;
    let acl = Arc::new(Acl::open(&source)?);
    let simulated = acl.simulated();
    let same = |c: &Context| c.device() == id && c.acl().simulated() == simulated;
    let pool = pool.registered(same, || Context::for_device(acl, id))?;
    let context = Arc::clone(pool.context());
    let options = AscendOptions { context, kernels, timeout_ms, one_launch };
    Ok(Engine::on_ascend(config, pool, &options)?)
}

/// Destroys an engine; its plans stay readable on the host. After AVSG_DEVICE the handle is invalid, too.
#[unsafe(no_mangle)]
pub extern "C" fn avsg_engine_destroy(engine: *mut avsg_engine) -> avsg_status {
    enter(|| handle::destroy::<Engine>(engine))
}
