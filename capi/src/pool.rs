//! Creation and destruction of host pools.

use std::sync::{Arc, Mutex, PoisonError};

use crate::contract::contract;
use crate::handle::{self, Object};
use crate::layout::pool_from_layout;
use crate::pool_config::{avsg_pool_config, pool_config};
use crate::status::avsg_status;
use avsg::ascend::acl::Context;
use avsg::ascend::{RegisteredPool, WeakRegisteredPool};
use avsg::pool::HostPool;

/// A host pool: every row of every layer.
pub struct avsg_pool {
    _opaque: [u8; 0],
}

/// The object of a pool's handle.
pub(crate) struct Pool {
    /// The pool, which its engines share.
    pub host: Arc<HostPool>,
    /// The pool's registrations with devices, which its engines share per device.
    registrations: Mutex<Vec<WeakRegisteredPool>>,
}

impl Object for Pool {
    type C = avsg_pool;
    const KIND: u64 = 1;
    const NAME: &'static str = "pool";
    type Fixed = ();

    fn fixed(&self) {}
}

impl Pool {
    /// Returns the pool registered with a device. `same_device` recognises an existing
    /// registration, and `open` opens the device for a new one.
    pub fn registered(
        &self,
        same_device: impl Fn(&Context) -> bool,
        open: impl FnOnce() -> avsg::Result<Arc<Context>>,
    ) -> avsg::Result<RegisteredPool> {
        let mut all = self.registrations.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(WeakRegisteredPool::is_alive);
        let mut known = all.iter().filter_map(|known| known.upgrade(&self.host));
        if let Some(known) = known.find(|known| same_device(known.context())) {
            return Ok(known);
        }
        let new = RegisteredPool::new(&open()?, Arc::clone(&self.host))?;
        all.push(new.downgrade());
        Ok(new)
    }

    pub fn new(pool: HostPool) -> Self {
        Self { host: Arc::new(pool), registrations: Mutex::default() }
    }
}

/// Creates a pool of which this process is the writer: in zeroed memory, by a layout, or in a file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_pool_create(
    config: *const avsg_pool_config,
    pool: *mut *mut avsg_pool,
) -> avsg_status {
    let make = || {
        let (config, layout) = contract!(pool_config(config))?;
        let host = match layout.is_null() {
            true => HostPool::new(&config)?,
            false => contract!(pool_from_layout(&config, layout))?,
        };
        Ok(Pool::new(host))
    };
    contract!(handle::give(pool, make))
}
