//! A host pool's life.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

use crate::handle::{self, Object};
use crate::pool_config::{avsg_pool_config, avsg_pool_info, pool_config, pool_info};
use crate::sized::{self, Out, Room};
use crate::status::avsg_status::{AVSG_BUSY, AVSG_INVALID, AVSG_NULL};
use crate::status::{Fail, avsg_status, enter};
use avsg::ascend::acl::owned::Context;
use avsg::ascend::{RegisteredPool, WeakRegisteredPool};
use avsg::pool::{Chunk, HostPool};

/// A host pool: every row of every layer, in memory that processes can share. Its handle may be
/// destroyed while engines use it: the memory stays until the last of them is gone.
///
/// Threads: any number may be inside calls on one pool, except for destroy and demote. Rows are written
/// by one thread at a time; a row must not be written while an engine copies it.
pub struct avsg_pool {
    _opaque: [u8; 0],
}

/// What a pool's handle owns; engines have a share of it.
pub(crate) struct Pool(pub Arc<HostPool>, Mutex<Vec<WeakRegisteredPool>>);

impl Object for Pool {
    type C = avsg_pool;
    const KIND: u64 = 1;
    const NAME: &'static str = "pool";
}

impl Pool {
    /// The pool as a device sees it. Engines on one device share that.
    pub fn registered(
        &self,
        is_it: impl Fn(&Context) -> bool,
        open: impl FnOnce() -> avsg::Result<Arc<Context>>,
    ) -> avsg::Result<RegisteredPool> {
        let mut all = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(WeakRegisteredPool::is_alive);
        let mut known = all.iter().filter_map(|known| known.upgrade(&self.0));
        if let Some(known) = known.find(|known| known.context().is_some_and(|c| is_it(c))) {
            return Ok(known);
        }
        let new = RegisteredPool::new(&open()?, Arc::clone(&self.0))?;
        all.push(new.downgrade());
        Ok(new)
    }

    pub fn handle(pool: HostPool) -> Result<*mut avsg_pool, Fail> {
        handle::create(Self(Arc::new(pool), Mutex::default()))
    }
}

/// One contiguous range of rows of one layer and segment.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_chunk {
    /// Where it begins.
    pub data: *mut c_void,
    /// Its bytes.
    pub bytes: usize,
}

/// Bytes that `avsg_pool_create` takes at most, without taking them.
///
/// # Safety
/// `config` as its type says; `bytes` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_pool_bytes(
    config: *const avsg_pool_config,
    bytes: *mut usize,
) -> avsg_status {
    enter(|| {
        // SAFETY: the contract.
        let (config, out) = unsafe { (pool_config(config)?, Out::new("bytes", bytes, 0)?) };
        out.set(HostPool::plan_bytes(&config)?);
        Ok(())
    })
}

/// Takes a pool's memory, zeroed and present, and makes this process its writer. More than the machine
/// can give is refused (AVSG_NO_MEMORY) with nothing taken.
///
/// # Safety
/// `config` as its type says; `pool` may be written. It is NULL after a failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_pool_create(
    config: *const avsg_pool_config,
    pool: *mut *mut avsg_pool,
) -> avsg_status {
    enter(|| {
        // SAFETY: the contract.
        let out = unsafe { Out::new("pool", pool, core::ptr::null_mut())? };
        // SAFETY: the contract.
        let config = unsafe { pool_config(config)? };
        out.set(Pool::handle(HostPool::new(&config)?)?);
        Ok(())
    })
}

/// The bytes of each chunk of a pool over the caller's memory, layer by layer and segment by segment.
/// `count` gets the number of chunks. Call it with `capacity` 0 to learn that number; otherwise the
/// lengths are written to `bytes`, and too small a `capacity` is AVSG_INVALID.
///
/// # Safety
/// `config` as its type says; `bytes` has room for `capacity` numbers; `count` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_pool_chunk_bytes(
    config: *const avsg_pool_config,
    bytes: *mut usize,
    capacity: usize,
    count: *mut usize,
) -> avsg_status {
    enter(|| {
        // SAFETY: the contract.
        let out = unsafe { Out::new("count", count, 0)? };
        // SAFETY: the contract.
        let config = unsafe { pool_config(config)? };
        let count = config.chunk_count()?;
        out.set(count);
        if capacity != 0 {
            room_for(count, capacity, "chunks")?;
            // SAFETY: the contract, and `count` is not above `capacity`.
            let to = unsafe { sized::array_mut("bytes", bytes, count)? };
            to.copy_from_slice(&config.chunk_lens()?);
        }
        Ok(())
    })
}

/// A pool over memory of the caller, for example what a device's own allocator gave: one chunk for each
/// length of `avsg_pool_chunk_bytes`, at least as long. It cannot be exported. The memory must stay
/// until the pool and every engine on it are destroyed.
///
/// # Safety
/// `config` as its type says; `chunks` has `count` elements that are valid for reads and writes and do
/// not overlap; `pool` may be written. It is NULL after a failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_pool_from_memory(
    config: *const avsg_pool_config,
    chunks: *const avsg_chunk,
    count: usize,
    pool: *mut *mut avsg_pool,
) -> avsg_status {
    enter(|| {
        // SAFETY: the contract.
        let out = unsafe { Out::new("pool", pool, core::ptr::null_mut())? };
        // SAFETY: the contract.
        let config = unsafe { pool_config(config)? };
        let need = config.chunk_count()?;
        if count != need {
            let text = format!(
                "count is {count}, but this geometry has {need} chunks; pass one for each length of \
                 avsg_pool_chunk_bytes"
            );
            return Err(Fail::new(AVSG_INVALID, text));
        }
        // SAFETY: the contract.
        let given = unsafe { sized::array("chunks", chunks, count)? };
        let null = || {
            let text = "chunks[].data is NULL, but a chunk needs memory; pass its address";
            Fail::new(AVSG_NULL, text.into())
        };
        let chunks = given.iter().map(|c| Chunk::new(c.data.cast(), c.bytes).ok_or_else(null));
        let chunks: Box<[Chunk]> = chunks.collect::<Result<_, _>>()?;
        // SAFETY: the contract: valid memory without overlaps until pool and engines are gone, and
        // accesses in the order that `avsg_pool` demands.
        out.set(Pool::handle(unsafe { HostPool::from_caller(&config, &chunks)? })?);
        Ok(())
    })
}

/// What a pool is and has got.
///
/// # Safety
/// `info` has as many bytes as its `size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_pool_get_info(
    pool: *const avsg_pool,
    info: *mut avsg_pool_info,
) -> avsg_status {
    enter(|| {
        // SAFETY: the contract.
        let room = unsafe { Room::new(info)? };
        room.fill(pool_info(&handle::shared::<Pool>(pool)?.0));
        Ok(())
    })
}

/// Every chunk of a pool, layer by layer and segment by segment: what a device registers. `count` gets
/// their number; the rest is as for `avsg_pool_chunk_bytes`. The memory is valid until the pool and every
/// engine on it are destroyed, and read-only for a reader.
///
/// # Safety
/// `chunks` has room for `capacity` elements; `count` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_pool_chunks(
    pool: *const avsg_pool,
    chunks: *mut avsg_chunk,
    capacity: usize,
    count: *mut usize,
) -> avsg_status {
    enter(|| {
        // SAFETY: the contract.
        let out = unsafe { Out::new("count", count, 0)? };
        let pool = handle::shared::<Pool>(pool)?;
        let all = pool.0.chunks();
        let count = all.len();
        out.set(count);
        if capacity != 0 {
            room_for(count, capacity, "chunks")?;
            // SAFETY: the contract, and `count` is not above `capacity`.
            let to = unsafe { sized::array_mut("chunks", chunks, count)? };
            for (to, chunk) in to.iter_mut().zip(all) {
                *to = avsg_chunk { data: chunk.ptr().cast(), bytes: chunk.len() };
            }
        }
        Ok(())
    })
}

/// Lets go of the right to write, so that another process may take it: this process is a reader from now
/// on. AVSG_BUSY while engines use the pool; destroy them first.
#[unsafe(no_mangle)]
pub extern "C" fn avsg_pool_demote(pool: *mut avsg_pool) -> avsg_status {
    enter(|| {
        let mut pool = handle::alone::<Pool>(pool)?;
        let Some(only) = Arc::get_mut(&mut pool.0) else {
            let text = "pool is in use by an engine, but demote makes its memory read-only; destroy \
                        the pool's engines first";
            return Err(Fail::new(AVSG_BUSY, text.into()));
        };
        only.demote()?;
        Ok(())
    })
}

/// Ends a handle. The memory is unmapped when no engine uses it any more. NULL does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn avsg_pool_destroy(pool: *mut avsg_pool) -> avsg_status {
    enter(|| handle::destroy::<Pool>(pool))
}

/// Refuses an array that is too short for the results.
pub(crate) fn room_for(count: usize, capacity: usize, what: &str) -> Result<(), Fail> {
    if capacity >= count {
        return Ok(());
    }
    let text = format!(
        "capacity is {capacity}, but there are {count} {what}; call with capacity 0 to learn the number"
    );
    Err(Fail::new(AVSG_INVALID, text))
}
