//! A host pool that a device's kernels read and write.

use std::mem;
use std::sync::{Arc, Weak};

use super::acl::owned::{Context, Registration};
use super::acl::sys;
use crate::pool::{HostPool, Pages, PoolConfig};
use crate::{Error, Result};

/// A pool with every chunk registered. Dropped, it unregisters before it unmaps.
///
/// Clones share the registrations: a range can be registered once only.
#[derive(Clone, Debug)]
pub struct RegisteredPool {
    // Before the pool, whose drop unmaps what these refer to.
    pub(super) registrations: Arc<[Registration]>,
    pub(super) pool: Arc<HostPool>,
}

impl RegisteredPool {
    /// Takes a pool over, or a share of it. If a chunk is refused, those before it are unregistered again.
    ///
    /// # Errors
    /// The refusal, with what may help.
    pub fn new(context: &Arc<Context>, pool: impl Into<Arc<HostPool>>) -> Result<Self> {
        let pool = pool.into();
        Ok(Self { registrations: register(context, &pool)?, pool })
    }

    /// The same registrations for a later engine, while some engine still has them.
    pub fn downgrade(&self) -> WeakRegisteredPool {
        WeakRegisteredPool(Arc::downgrade(&self.registrations))
    }

    /// The device that sees it; none for a pool without chunks.
    pub fn context(&self) -> Option<&Arc<Context>> {
        self.registrations.first().map(Registration::context)
    }

    /// Takes the memory by the best rung of the hugepage ladder, from the configuration's down, that
    /// the device accepts: which pages a driver registers is known only by trying.
    ///
    /// # Errors
    /// If the device accepts none, or there is too little memory.
    pub fn create(context: &Arc<Context>, config: &PoolConfig) -> Result<Self> {
        let mut config = config.clone();
        loop {
            let pool = HostPool::new(&config)?;
            let got = pool.pages();
            match Self::new(context, pool) {
                Ok(registered) => return Ok(registered),
                Err(error) => match below(got).filter(|_| refused(&error)) {
                    Some(next) => config.pages = next,
                    None => return Err(error),
                },
            }
        }
    }

    /// Where kernels see each chunk.
    pub fn addresses(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.registrations.iter().map(Registration::address)
    }

    /// The pool.
    pub fn pool(&self) -> &HostPool {
        &self.pool
    }
}

/// A [`RegisteredPool`] that keeps nothing registered.
#[derive(Clone, Debug)]
pub struct WeakRegisteredPool(Weak<[Registration]>);

impl WeakRegisteredPool {
    /// The registrations of this pool again, if somebody still has them.
    pub fn upgrade(&self, pool: &Arc<HostPool>) -> Option<RegisteredPool> {
        let registrations = self.0.upgrade()?;
        Some(RegisteredPool { registrations, pool: Arc::clone(pool) })
    }

    /// Whether somebody still has them.
    pub fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }
}

/// An engine's use of a pool. Whatever is queued with the pool's addresses, in whosever stream, and
/// whatever replays it, is queued by an engine or recorded from one; so an engine's end waits for every
/// stream of its context, and one wait stands for a lease per stream. A captured graph could not carry
/// any other: nobody is told of its replays.
pub(super) struct Lease {
    pool: RegisteredPool,
    /// Milliseconds to wait once more: the first wait failed.
    doubt: Option<i32>,
}

impl Lease {
    pub fn new(pool: RegisteredPool) -> Self {
        Self { pool, doubt: None }
    }

    /// Work may still be under way.
    pub fn doubt(&mut self, timeout_ms: i32) {
        self.doubt = Some(timeout_ms);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let (Some(timeout), Some(context)) = (self.doubt, self.pool.context()) else { return };
        // Work that failed is no longer there; only what does not end uses the pool still. Then its
        // memory stays what it is for ever: a kernel must not find it unmapped.
        if let Err(Error::Acl { code: sys::ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, .. }) =
            context.settle(timeout)
        {
            let value = format!("{} bytes", self.pool.pool.bytes());
            let limit = "work that does not end may use it, so it stays registered and mapped";
            let remedy = "end the process, or reset the device with force";
            context.record(Error::invalid("host pool", value, limit, remedy));
            mem::forget(self.pool.clone());
        }
    }
}

/// Whether the device said no to this memory, rather than this process made a mistake.
fn refused(error: &Error) -> bool {
    matches!(error, Error::Acl { call: "aclrtHostRegister", .. })
}

fn below(pages: Pages) -> Option<Pages> {
    match pages {
        Pages::Huge1G => Some(Pages::Huge2M),
        Pages::Huge2M => Some(Pages::Thp),
        Pages::Thp => Some(Pages::Plain),
        Pages::Plain | Pages::Caller => None,
    }
}

fn register(context: &Arc<Context>, pool: &HostPool) -> Result<Arc<[Registration]>> {
    let mut all = Vec::with_capacity(pool.chunks().len());
    for chunk in pool.chunks() {
        // SAFETY: the caller keeps the pool at least as long as the registrations, in that order.
        match unsafe { Registration::new(context, chunk.ptr(), chunk.len()) } {
            Ok(registration) => all.push(registration),
            Err(error) => {
                // Backwards, the last first.
                while all.pop().is_some() {}
                return Err(error);
            }
        }
    }
    Ok(all.into())
}
