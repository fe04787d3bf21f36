//! Creation and destruction of engines.

use std::sync::Arc;

use crate::ascend::AscendDevice;
use crate::config::{Device, avsg_engine_config, engine_config};
use crate::handle;
use crate::pool::{Pool, avsg_pool};
use crate::status::{Result, avsg_status};
use avsg::ascend::AscendOptions;
use avsg::ascend::acl::{Acl, Context};
use avsg::engine::{Config, Engine};

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
