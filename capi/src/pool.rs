//! Creation, description and destruction of host pools.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

use crate::handle::{self, Object};
use crate::pool_config::{avsg_pool_config, avsg_pool_info, pool_config, pool_info};
use crate::sized::{self, OutPtr, OutStruct};
use crate::status::avsg_status::{AVSG_BUSY, AVSG_INVALID, AVSG_NULL};
use crate::status::{Failure, avsg_status, enter};
use avsg::ascend::acl::Context;
use avsg::ascend::{RegisteredPool, WeakRegisteredPool};
use avsg::pool::{Chunk, HostPool};

/// A host pool: the rows of every layer, in memory that processes can share. The caller must not
/// write a row while another thread writes it or an engine copies it.
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

    pub fn create_handle(pool: HostPool) -> Result<*mut avsg_pool, Failure> {
        handle::create(Self { host: Arc::new(pool), registrations: Mutex::default() })
    }
}

/// A contiguous range of rows of one layer and segment.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_chunk {
    /// The first byte.
    pub data: *mut c_void,
    /// The length in bytes.
    pub bytes: usize,
}

/// Computes the largest number of bytes that `avsg_pool_create` allocates with this configuration. With
/// an allocator it is exactly what that is asked for, in AVSG_MEMORY_HOST.
///
/// # Safety
/// The pointers keep the rule Pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_pool_bytes(
    config: *const avsg_pool_config,
    bytes: *mut usize,
) -> avsg_status {
    enter(|| {
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let (config, out) = unsafe { (pool_config(config)?, OutPtr::new("bytes", bytes, 0)?) };
        out.write(HostPool::plan_bytes(&config)?);
        Ok(())
    })
}

/// Creates a pool in zeroed memory that is resident from the start, and makes this process its
/// writer. Memory of an allocator is zeroed by the calling thread.
///
/// # Safety
/// The pointers keep the rule Pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_pool_create(
    config: *const avsg_pool_config,
    pool: *mut *mut avsg_pool,
) -> avsg_status {
    enter(|| {
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let out = unsafe { OutPtr::new("pool", pool, core::ptr::null_mut())? };
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let config = unsafe { pool_config(config)? };
        out.write(Pool::create_handle(HostPool::new(&config)?)?);
        Ok(())
    })
}

/// Computes the length of each chunk of a pool over the caller's memory, layer by layer and segment
/// by segment in each. `count` receives the number of chunks, even if `capacity` is below it, which
/// is AVSG_INVALID. A `capacity` of 0 asks for `count` only.
///
/// # Safety
/// The pointers keep the rule Pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_pool_chunk_bytes(
    config: *const avsg_pool_config,
    bytes: *mut usize,
    capacity: usize,
    count: *mut usize,
) -> avsg_status {
    enter(|| {
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let out = unsafe { OutPtr::new("count", count, 0)? };
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let config = unsafe { pool_config(config)? };
        let count = config.chunk_count()?;
        out.write(count);
        if capacity != 0 {
            check_capacity(count, capacity, "chunks")?;
            // SAFETY: the caller keeps the contract of this function (`# Safety`), and `count` is
            // at most `capacity`.
            let to = unsafe { sized::array_mut("bytes", bytes, count)? };
            to.copy_from_slice(&config.chunk_lens()?);
        }
        Ok(())
    })
}

/// Creates a pool over memory of the caller, such as that of a device's own allocator. Each chunk
/// has at least the length that `avsg_pool_chunk_bytes` gives, and none overlaps another, which is
/// AVSG_INVALID. The pool cannot be exported.
///
/// # Safety
/// The chunks do not overlap, and their memory is valid for reads and writes until the pool's
/// handle and every engine on the pool are destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_pool_from_memory(
    config: *const avsg_pool_config,
    chunks: *const avsg_chunk,
    count: usize,
    pool: *mut *mut avsg_pool,
) -> avsg_status {
    enter(|| {
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let out = unsafe { OutPtr::new("pool", pool, core::ptr::null_mut())? };
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let config = unsafe { pool_config(config)? };
        let need = config.chunk_count()?;
        if count != need {
            let text = format!(
                "count is {count}, but this geometry has {need} chunks; pass one for each length of \
                 avsg_pool_chunk_bytes"
            );
            return Err(Failure::new(AVSG_INVALID, text));
        }
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let given = unsafe { sized::array("chunks", chunks, count)? };
        let null = || {
            let text = "chunks[].data is NULL, but a chunk needs memory; pass its address";
            Failure::new(AVSG_NULL, text.into())
        };
        let chunks = given.iter().map(|c| Chunk::new(c.data.cast(), c.bytes).ok_or_else(null));
        let chunks: Box<[Chunk]> = chunks.collect::<Result<_, _>>()?;
        // SAFETY: the caller keeps the contract of this function (`# Safety`), and does not write a
        // row while an engine copies it (`avsg_pool`).
        out.write(Pool::create_handle(unsafe { HostPool::from_caller(&config, &chunks)? })?);
        Ok(())
    })
}

/// Describes a pool.
///
/// # Safety
/// The pointers keep the rule Pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_pool_get_info(
    pool: *const avsg_pool,
    info: *mut avsg_pool_info,
) -> avsg_status {
    enter(|| {
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let out = unsafe { OutStruct::new(info)? };
        out.write(pool_info(&handle::shared::<Pool>(pool)?.host));
        Ok(())
    })
}

/// Gives every chunk of a pool, for registration with a device, in the order and with the
/// `capacity` and `count` of `avsg_pool_chunk_bytes`. The chunks are read-only for a reader.
///
/// # Safety
/// The pointers keep the rule Pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_pool_chunks(
    pool: *const avsg_pool,
    chunks: *mut avsg_chunk,
    capacity: usize,
    count: *mut usize,
) -> avsg_status {
    enter(|| {
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let out = unsafe { OutPtr::new("count", count, 0)? };
        let pool = handle::shared::<Pool>(pool)?;
        let all = pool.host.chunks();
        let count = all.len();
        out.write(count);
        if capacity != 0 {
            check_capacity(count, capacity, "chunks")?;
            // SAFETY: the caller keeps the contract of this function (`# Safety`), and `count` is
            // at most `capacity`.
            let to = unsafe { sized::array_mut("chunks", chunks, count)? };
            for (to, chunk) in to.iter_mut().zip(all) {
                *to = avsg_chunk { data: chunk.ptr().cast(), bytes: chunk.len() };
            }
        }
        Ok(())
    })
}

/// Makes this process a reader of the pool, so that another process can become its writer.
/// AVSG_BUSY while the pool has engines; destroy them first.
#[unsafe(no_mangle)]
pub extern "C" fn avsg_pool_demote(pool: *mut avsg_pool) -> avsg_status {
    enter(|| {
        let mut pool = handle::exclusive::<Pool>(pool)?;
        let Some(host_pool) = Arc::get_mut(&mut pool.host) else {
            let text = "pool is in use by an engine, but demote makes its memory read-only; destroy \
                        the pool's engines first";
            return Err(Failure::new(AVSG_BUSY, text.into()));
        };
        host_pool.demote()?;
        Ok(())
    })
}

/// Destroys the handle of a pool.
#[unsafe(no_mangle)]
pub extern "C" fn avsg_pool_destroy(pool: *mut avsg_pool) -> avsg_status {
    enter(|| handle::destroy::<Pool>(pool))
}

/// Refuses a capacity that is below the number of results.
pub(crate) fn check_capacity(count: usize, capacity: usize, what: &str) -> Result<(), Failure> {
    if capacity >= count {
        return Ok(());
    }
    let text = format!(
        "capacity is {capacity}, but there are {count} {what}; pass an array of {count} elements"
    );
    Err(Failure::new(AVSG_INVALID, text))
}
