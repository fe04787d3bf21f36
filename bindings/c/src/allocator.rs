//! Memory from an allocator of the caller.

use std::ffi::c_void;
use std::sync::Arc;

use crate::boundary;
use crate::status::{Failure, Result, avsg_status::AVSG_NULL};
use avsg::system::allocator::{Allocator, MemoryKind};

/// Returns the address of `bytes` bytes, at least 1, of an `avsg_memory_kind`, at a multiple of
/// `alignment`: 64, or 4096 for the chunks of a pool and for a plan's buffers of rows from a file. The
/// memory need not be zeroed. NULL, if there is none, makes the call fail with AVSG_NO_MEMORY; another
/// address that is no such multiple, with AVSG_INVALID, and is released.
pub type avsg_allocate = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        kind: i32,
        bytes: usize,
        alignment: usize,
    ) -> *mut c_void,
>;

/// Takes back an address that `avsg_allocate` returned for this kind and number of bytes. Each is
/// released once.
pub type avsg_release =
    Option<unsafe extern "C" fn(user: *mut c_void, kind: i32, address: *mut c_void, bytes: usize)>;

/// An allocator of the caller, for `avsg_pool_config.allocator` and `avsg_engine_config.allocator`.
/// The struct is copied. Its functions may be called until the last object with it is destroyed: a
/// pool until its handle and every engine on it are, an engine until its handle is, a plan until its
/// handle is, in any order. A pool with an allocator cannot be exported.
///
/// They are called on the threads that create and destroy these objects, and on an Ascend device by
/// a function of a step with host arrays that is given a larger batch than every earlier one
/// (`avsg_get_memory` says how much that takes); never by one with a stream, nor by a step on "cpu".
/// For AVSG_MEMORY_PINNED and AVSG_MEMORY_DEVICE the engine's context is the current one of the
/// thread, and at a release no work uses the memory. They must not call this library with the object
/// that they are called for, and no exception may leave them. Threads that create and destroy
/// objects at the same time call them at the same time.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_allocator {
    /// sizeof(avsg_allocator).
    pub size: usize,
    /// The first argument of both functions.
    pub user: *mut c_void,
    /// Allocates memory.
    pub allocate: avsg_allocate,
    /// Releases memory.
    pub release: avsg_release,
}

/// The caller's functions.
#[derive(Debug)]
struct CallerAllocator {
    user: *mut c_void,
    allocate: unsafe extern "C" fn(*mut c_void, i32, usize, usize) -> *mut c_void,
    release: unsafe extern "C" fn(*mut c_void, i32, *mut c_void, usize),
}

// SAFETY: the pointer is only passed to the caller's functions, which any thread may call
// (`avsg_allocator`).
unsafe impl Send for CallerAllocator {}
// SAFETY: as for Send.
unsafe impl Sync for CallerAllocator {}

// SAFETY: what `avsg_allocate` returns has so many bytes of the kind, which nothing else uses until the release
// (`avsg_allocator`), and `Allocated::new` compares its alignment.
unsafe impl Allocator for CallerAllocator {
    fn allocate(&self, kind: MemoryKind, bytes: usize, alignment: usize) -> *mut u8 {
        // SAFETY: the arguments are those that `avsg_allocate` describes.
        unsafe { (self.allocate)(self.user, kind as i32, bytes, alignment) }.cast()
    }

    unsafe fn release(&self, kind: MemoryKind, address: *mut u8, bytes: usize) {
        // SAFETY: `allocate` returned the address for this kind and length (`Allocator::release`).
        unsafe { (self.release)(self.user, kind as i32, address.cast(), bytes) };
    }
}

/// Reads an allocator; None for NULL.
///
/// # Safety
/// `allocator` is NULL or valid for reads of the number of bytes in its `size`, and its functions
/// keep the contract of `avsg_allocator`.
pub(crate) unsafe fn allocator(
    allocator: *const avsg_allocator,
) -> Result<Option<Arc<dyn Allocator>>> {
    if allocator.is_null() {
        return Ok(None);
    }
    let avsg_allocator { user, allocate, release, .. } = contract!(boundary::read(allocator)?);
    let missing = |name| {
        let text =
            format!("{name} of avsg_allocator is NULL, but both functions are needed; set it");
        Failure::new(AVSG_NULL, text)
    };
    let allocate = allocate.ok_or_else(|| missing("allocate"))?;
    let release = release.ok_or_else(|| missing("release"))?;
    Ok(Some(Arc::new(CallerAllocator { user, allocate, release })))
}
