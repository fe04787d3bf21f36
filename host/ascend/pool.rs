//! A host pool whose chunks are registered, so that kernels read and write them.

use std::mem;
use std::sync::Arc;

use super::acl::{Context, Registration, sys};
use crate::pool::{DeviceStart, HostPool, Pages, PoolConfig, Start};
use crate::system::reserve;
use crate::{Error, Result, invalid};

/// A pool with every chunk registered. On drop, the chunks are unregistered before they are
/// unmapped.
///
/// Engines share it, because a range can be registered only once.
#[derive(Debug)]
pub struct RegisteredPool {
    // Dropped before the pool, whose drop unmaps the chunks.
    chunks: Vec<Registration>,
    context: Arc<Context>,
    pool: Arc<HostPool>,
}

impl RegisteredPool {
    /// Registers every chunk of a pool. If one is refused, those before it are unregistered.
    ///
    /// # Errors
    /// If the pool is in a file, or the runtime or the driver refuses a chunk.
    pub fn new(context: &Arc<Context>, pool: impl Into<Arc<HostPool>>) -> Result<Arc<Self>> {
        let pool = pool.into();
        pool.geometry.check_addresses()?;
        let mut chunks = reserve::with_capacity("registrations", pool.chunks().len())?;
        for chunk in pool.chunks() {
            // SAFETY: a chunk is mapped as long as the pool, and the registrations are dropped before the
            // reference to the pool: here, or as fields of `RegisteredPool`.
            chunks.push(unsafe { Registration::new(context, chunk.ptr(), chunk.len())? });
        }
        Ok(Arc::new(Self { chunks, context: Arc::clone(context), pool }))
    }

    /// Returns the context that the chunks are registered in.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Allocates a pool with the best kind of pages, from `config.pages` down, that the device
    /// accepts. Whether a driver registers a kind of pages is known only by trying.
    ///
    /// # Errors
    /// If the pool would be in a file, the device accepts no kind of pages, or too little memory is
    /// available.
    pub fn create(context: &Arc<Context>, config: &PoolConfig) -> Result<Arc<Self>> {
        config.geometry()?.check_addresses()?;
        let mut config = config.clone();
        loop {
            let pool = HostPool::new(&config)?;
            let got = pool.pages();
            match Self::new(context, pool) {
                Ok(registered) => return Ok(registered),
                // The device refused the memory.
                Err(error @ Error::Acl { call: "aclrtHostRegister", .. }) => {
                    let from_got = Pages::OF_SYSTEM.into_iter().skip_while(|&pages| pages != got);
                    config.pages = { from_got }.nth(1).ok_or(error)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the device address of each chunk of [`HostPool::chunks`].
    pub fn addresses(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.chunks.iter().map(Registration::address)
    }

    /// Returns the device addresses of the pool's chunks of rows, in the order of the chunk table.
    pub(super) fn starts(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.pool.starts.iter().map(|start| self.address(start))
    }

    /// Returns the device address of the first row of a chunk.
    pub(super) fn address(&self, start: &Start) -> u64 {
        match start.device {
            DeviceStart::Registered(chunk, at) => self.chunks[chunk].address() + at as u64,
            DeviceStart::Address(address) => address,
        }
    }

    /// Returns the pool.
    pub fn pool(&self) -> &Arc<HostPool> {
        &self.pool
    }
}

/// The use of a pool by an engine. All queued work that has the pool's addresses, in any stream,
/// was queued by an engine or captured from one. So the drop of an engine waits for every stream of
/// its context. Counting uses per stream would not be enough, because the engine is not told about
/// replays of a captured graph.
pub(super) struct PoolUse {
    pub pool: Arc<RegisteredPool>,
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
                invalid!("host pool" is format!("{} bytes", self.pool.pool().bytes()), but
                    "work that does not end may use it, so it stays registered and mapped";
                    "end the process, or reset the device with force"),
            );
            mem::forget(Arc::clone(&self.pool));
        }
    }
}
