//! A host pool whose chunks are registered, so that kernels read and write them.

use std::mem;
use std::sync::{Arc, Weak};

use super::acl::{Context, Registration, sys};
use crate::pool::{DeviceStart, HostPool, Pages, PoolConfig, Start};
use crate::system::reserve;
use crate::{Error, Result, invalid};

/// A pool with every chunk registered. On drop, the chunks are unregistered before they are
/// unmapped.
///
/// Clones share the registrations, because a range can be registered only once.
#[derive(Clone, Debug)]
pub struct RegisteredPool {
    // Dropped before the pool, whose drop unmaps the chunks.
    registered: Arc<Registered>,
    pub(super) pool: Arc<HostPool>,
}

/// The registrations of a pool's chunks with one device.
#[derive(Debug)]
struct Registered {
    chunks: Vec<Registration>,
    context: Arc<Context>,
    /// The pool that was registered.
    pool: Weak<HostPool>,
}

impl RegisteredPool {
    /// Registers every chunk of a pool. If one is refused, those before it are unregistered.
    ///
    /// # Errors
    /// If the pool is in a file, or the runtime or the driver refuses a chunk.
    pub fn new(context: &Arc<Context>, pool: impl Into<Arc<HostPool>>) -> Result<Self> {
        let pool = pool.into();
        pool.geometry.check_addresses()?;
        let registered = Registered {
            chunks: register(context, &pool)?,
            context: Arc::clone(context),
            pool: Arc::downgrade(&pool),
        };
        Ok(Self { registered: Arc::new(registered), pool })
    }

    /// Returns a weak reference to the registrations, from which a later engine can share them.
    pub fn downgrade(&self) -> WeakRegisteredPool {
        WeakRegisteredPool(Arc::downgrade(&self.registered))
    }

    /// Returns the context that the chunks are registered in.
    pub fn context(&self) -> &Arc<Context> {
        &self.registered.context
    }

    /// Allocates a pool with the best kind of pages, from `config.pages` down, that the device
    /// accepts. Whether a driver registers a kind of pages is known only by trying.
    ///
    /// # Errors
    /// If the pool would be in a file, the device accepts no kind of pages, or too little memory is
    /// available.
    pub fn create(context: &Arc<Context>, config: &PoolConfig) -> Result<Self> {
        config.geometry()?.check_addresses()?;
        let mut config = config.clone();
        loop {
            let pool = HostPool::new(&config)?;
            let got = pool.pages();
            match Self::new(context, pool) {
                Ok(registered) => return Ok(registered),
                // The device refused the memory.
                Err(error @ Error::Acl { call: "aclrtHostRegister", .. }) => {
                    config.pages = next_pages(got).ok_or(error)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the device address of each chunk of [`HostPool::chunks`].
    pub fn addresses(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.registered.chunks.iter().map(Registration::address)
    }

    /// Returns the device addresses of the pool's chunks of rows, in the order of the chunk table.
    pub(super) fn starts(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.pool.starts.iter().map(|start| self.address(start))
    }

    /// Returns the device address of the first row of a chunk.
    pub(super) fn address(&self, start: &Start) -> u64 {
        match start.device {
            DeviceStart::Registered(chunk, at) => {
                self.registered.chunks[chunk].address() + at as u64
            }
            DeviceStart::Address(address) => address,
        }
    }

    /// Returns the pool.
    pub fn pool(&self) -> &HostPool {
        &self.pool
    }
}

/// A weak reference to the registrations of a [`RegisteredPool`].
#[derive(Clone, Debug)]
pub struct WeakRegisteredPool(Weak<Registered>);

impl WeakRegisteredPool {
    /// Returns the registered pool if `pool` is the one that was registered and its registrations
    /// still exist.
    pub fn upgrade(&self, pool: &Arc<HostPool>) -> Option<RegisteredPool> {
        let registered = self.0.upgrade()?;
        let same = registered.pool.as_ptr() == Arc::as_ptr(pool);
        same.then(|| RegisteredPool { registered, pool: Arc::clone(pool) })
    }

    /// Returns whether the registrations still exist.
    pub fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }
}

/// The use of a pool by an engine. All queued work that has the pool's addresses, in any stream,
/// was queued by an engine or captured from one. So the drop of an engine waits for every stream of
/// its context. Counting uses per stream would not be enough, because the engine is not told about
/// replays of a captured graph.
pub(super) struct PoolUse {
    pub pool: RegisteredPool,
    /// Timeout in milliseconds of a second wait on drop, because work may still run; set after the
    /// first wait failed.
    pub second_wait: Option<i32>,
}

impl Drop for PoolUse {
    fn drop(&mut self) {
        let (Some(timeout), context) = (self.second_wait, self.pool.context()) else { return };
        // Work that failed has ended; only work that does not end still uses the pool. After a
        // timeout the pool is never unmapped, because a kernel may still access it.
        if let Err(Error::Acl { code: sys::ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, .. }) =
            context.synchronize(timeout)
        {
            context.record(
                invalid!("host pool" is format!("{} bytes", self.pool.pool.bytes()), but
                    "work that does not end may use it, so it stays registered and mapped";
                    "end the process, or reset the device with force"),
            );
            mem::forget(self.pool.clone());
        }
    }
}

fn next_pages(pages: Pages) -> Option<Pages> {
    match pages {
        Pages::Huge1G => Some(Pages::Huge2M),
        Pages::Huge2M => Some(Pages::Thp),
        Pages::Thp => Some(Pages::Plain),
        Pages::Plain | Pages::Caller => None,
    }
}

fn register(context: &Arc<Context>, pool: &HostPool) -> Result<Vec<Registration>> {
    let mut all = reserve::with_capacity("registrations", pool.chunks().len())?;
    for chunk in pool.chunks() {
        // SAFETY: a chunk is mapped as long as the pool, and `RegisteredPool`, for which this is called,
        // drops its registrations before its reference to the pool.
        all.push(unsafe { Registration::new(context, chunk.ptr(), chunk.len())? });
    }
    Ok(all)
}
