//! The handles that the threads of a random run share, and what the run knows of their objects.

use std::collections::BTreeMap;
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use avsg::disk::PoolFile;
use avsg_capi_testkit::allocator::Counting;
use avsg_testkit::scratch::{Scratch, adapted};

use super::models::{EngineModel, PoolModel};

/// Handles of each kind that a run uses at a time; some of them are stale.
const HANDLES: [usize; 4] = [4, 4, 16, 4];

/// State that the threads of a run share.
pub struct Shared {
    /// The handles as addresses, by [`Kind`].
    pub handles: [Vec<AtomicUsize>; 4],
    /// Calls made so far.
    pub calls: AtomicUsize,
    /// Calls after which every thread stops.
    pub limit: usize,
    /// The caller's allocator, which some pools and engines have.
    pub allocator: Counting,
    /// The folder of the pools' files, and whether these are read through the page cache.
    pub folder: Scratch,
    pub buffered: bool,
    known: Mutex<Known>,
}

/// What is known of the objects, by the bits of their handles. An object is added before its handle
/// is shared and removed after it was destroyed, so that its memory outlives it.
#[derive(Default)]
pub struct Known {
    pub pools: BTreeMap<usize, Arc<PoolModel>>,
    pub engines: BTreeMap<usize, Arc<EngineModel>>,
    /// The engine of each plan.
    pub plans: BTreeMap<usize, usize>,
}

impl Shared {
    /// Begins a run of `limit` calls without handles.
    pub fn new(limit: usize) -> Self {
        let handles = HANDLES.map(|n| (0..n).map(|_| AtomicUsize::new(0)).collect());
        let (calls, allocator) = (AtomicUsize::new(0), Counting::on(c"cpu"));
        let folder = Scratch::new();
        let buffered = adapted(PoolFile::new(folder.path())).buffered;
        Self { handles, calls, limit, allocator, folder, buffered, known: Mutex::default() }
    }

    /// Returns what is known of the objects.
    pub fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes the name of a file.
pub fn remove(path: &CStr) {
    std::fs::remove_file(OsStr::from_bytes(path.to_bytes())).unwrap();
}

#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Pool,
    Engine,
    Plan,
    Workers,
}

pub const KINDS: [Kind; 4] = [Kind::Pool, Kind::Engine, Kind::Plan, Kind::Workers];
