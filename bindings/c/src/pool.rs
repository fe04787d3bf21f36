//! The handle of a host pool.

use std::sync::{Arc, Mutex, PoisonError};

use crate::handle::Object;
use avsg::ascend::acl::Context;
use avsg::ascend::{RegisteredPool, WeakRegisteredPool};
use avsg::pool::HostPool;

/// A host pool: every row of every layer.
pub struct avsg_pool;

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
