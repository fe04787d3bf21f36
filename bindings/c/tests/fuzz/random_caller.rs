//! A thread that makes random calls through the C ABI.

use std::ptr::{null, null_mut, without_provenance_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use avsg_capi::avsg_status::*;
use avsg_capi::*;
use avsg_testkit::splitmix::SplitMix64;

use avsg_capi_testkit::*;

use super::models::{EngineModel, PoolModel};
use super::session_files::SessionFile;
use super::shared_handles::{KINDS, Kind, Shared};

/// A thread that makes random calls, and what it has counted.
pub struct RandomCaller<'a> {
    /// State shared with the other threads.
    pub shared: &'a Shared,
    /// The source of every choice.
    pub random: SplitMix64,
    /// Compare the rows of each step without a mistake, and demand that it succeeds. Only a single
    /// thread may: others would change the slots.
    pub verify: bool,
    /// Part of every generation. It is raised after a call with a mistake that succeeded, so that
    /// every state starts cold.
    pub epoch: i32,
    /// Mistakes made in the arguments of the calls in progress.
    pub mistakes: usize,
    /// Rows compared.
    pub checked: usize,
    /// Plans that needed a row of a file that was never written, by what was done then.
    pub recovered: [usize; 3],
    /// Plans that were given up: discarded, destroyed, or overwritten; and transfers that were waited for.
    pub given_up: [usize; 4],
    /// Calls by status.
    pub seen: [usize; 13],
    /// The file of this thread with sessions.
    pub(super) sessions: Option<SessionFile>,
}

impl<'a> RandomCaller<'a> {
    /// Returns a thread of a run. The seed decides its calls.
    pub fn new(shared: &'a Shared, seed: u64, verify: bool) -> Self {
        let (random, seen) = (SplitMix64::new(seed), [0; 13]);
        Self {
            shared,
            random,
            verify,
            epoch: 1,
            mistakes: 0,
            checked: 0,
            recovered: [0; 3],
            given_up: [0; 4],
            seen,
            sessions: None,
        }
    }

    pub(super) fn word(&mut self) -> u64 {
        self.random.word()
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        (self.word() % n as u64) as usize
    }

    /// Returns true once in `n` times on average.
    pub(super) fn rarely(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// Returns true once in `n` times on average, and then counts a mistake. It is not inlined, because
    /// rustc 1.95.0 then loses the count: if a constant is compared with, and the caller branches on the
    /// result, its pass `SimplifyComparisonIntegral` removes the comparison that the sum still reads.
    #[inline(never)]
    pub(super) fn mistake(&mut self, n: usize) -> bool {
        let make = self.rarely(n);
        self.mistakes += usize::from(make);
        make
    }

    /// Returns an index that is usually below `count`.
    pub(super) fn index(&mut self, count: usize) -> usize {
        if !self.mistake(24) {
            return self.below(count);
        }
        [count, usize::MAX, self.word() as usize][self.below(3)]
    }

    /// Returns a length or size that is usually `right`.
    pub(super) fn mostly(&mut self, right: usize) -> usize {
        if !self.mistake(30) {
            return right;
        }
        let less = self.below(right.max(1));
        [0, right.wrapping_sub(1), usize::MAX, usize::MAX / 4, less][self.below(5)]
    }

    /// Returns one of the shared handles of a kind.
    pub(super) fn shared_handle(&mut self, kind: Kind) -> &'a AtomicUsize {
        let handles = &self.shared.handles[kind as usize];
        &handles[self.below(handles.len())]
    }

    /// Returns a handle that is usually one of a kind, and at times NULL, of another kind or a
    /// random number.
    pub(super) fn handle<C>(&mut self, kind: Kind) -> *mut C {
        let kind = match if self.mistake(40) { self.below(5) } else { 5 } {
            0 => return null_mut(),
            1 => return without_provenance_mut(self.word() as usize),
            2 => return without_provenance_mut((self.word() as usize % (1 << 47)) | 1),
            3 | 4 => KINDS[self.below(4)],
            _ => kind,
        };
        without_provenance_mut(self.shared_handle(kind).load(Ordering::Relaxed))
    }

    /// Returns whether no mistake was made, and the results of calls are certain.
    pub(super) fn exact(&self) -> bool {
        self.verify && self.mistakes == 0
    }

    /// Returns what is known of a pool, or `None` if the handle is not that of a live pool.
    pub(super) fn pool_model(&self, pool: *const avsg_pool) -> Option<Arc<PoolModel>> {
        self.shared.known().pools.get(&pool.addr()).cloned()
    }

    /// Returns what is known of an engine; None if the handle is not that of a live engine.
    pub(super) fn engine_model(&self, engine: *mut avsg_engine) -> Option<Arc<EngineModel>> {
        self.shared.known().engines.get(&engine.addr()).cloned()
    }

    /// Returns a plan that is usually one of an engine, for which it creates one if there is none.
    pub(super) fn plan_of(&mut self, engine: *mut avsg_engine) -> *mut avsg_plan {
        if self.mistake(40) {
            return self.handle(Kind::Plan);
        }
        let handles = &self.shared.handles[Kind::Plan as usize];
        let first = self.below(handles.len());
        let known = self.shared.known();
        let mut candidates = handles[first..].iter().chain(&handles[..first]);
        let found = candidates.find_map(|handle| {
            let bits = handle.load(Ordering::Relaxed);
            (known.plans.get(&bits) == Some(&engine.addr())).then_some(bits)
        });
        drop(known);
        match found {
            Some(bits) => without_provenance_mut(bits),
            None => self.create_plan(engine),
        }
    }

    /// Overwrites the `size` of a struct now and then.
    pub(super) fn corrupt_size<T>(&mut self, value: &mut T) {
        if self.mistake(100) {
            let size = match self.below(4) {
                0 => 0,
                1 => usize::MAX,
                2 => self.word() as usize | 1 << 20,
                _ => self.below(size_of::<T>()),
            };
            // SAFETY: `T` is a struct of the header and begins with its `size`.
            unsafe { (&raw mut *value).cast::<usize>().write(size) };
        }
    }

    /// Returns a pointer to `value`, or NULL now and then.
    pub(super) fn pointer<T>(&mut self, value: &mut T) -> *mut T {
        if self.mistake(150) { null_mut() } else { value }
    }

    /// Returns the caller's allocator, or NULL. It may have a mistake, or refuse one of the next
    /// allocations. `place` is where its struct is.
    pub(super) fn lent_allocator(&mut self, place: &mut avsg_allocator) -> *const avsg_allocator {
        if self.rarely(2) {
            return null();
        }
        *place = self.shared.allocator.c();
        if self.mistake(40) {
            place.allocate = None;
        }
        if self.mistake(40) {
            place.release = None;
        }
        if self.mistake(12) {
            self.shared.allocator.state().until_null = 1 + self.below(12);
        }
        self.corrupt_size(place);
        place
    }

    /// Counts a call and returns whether it succeeded. A failure must have a message and not be
    /// AVSG_INTERNAL.
    pub(super) fn record(&mut self, status: avsg_status) -> bool {
        self.shared.calls.fetch_add(1, Ordering::Relaxed);
        self.seen[status as usize] += 1;
        if status == AVSG_OK {
            return true;
        }
        assert_ne!(status, AVSG_INTERNAL, "{}", last_error());
        if self.seen[status as usize] % 64 == 1 {
            let text = last_error();
            assert!(text.contains("; ") && text.len() > 20, "{status:?}: {text}");
        }
        false
    }

    /// Asserts that a call without a mistake succeeded.
    pub(super) fn expect(&mut self, status: avsg_status) {
        assert!(self.record(status), "a correct call: {}", last_error());
    }

    /// Returns the struct that a correct call fills.
    pub(super) fn filled<T>(&mut self, call: impl FnOnce(&mut T) -> avsg_status) -> T {
        let mut value = sized();
        let status = call(&mut value);
        self.expect(status);
        value
    }

    /// Puts a handle in the place of a shared one, and destroys that one.
    pub(super) fn keep(&mut self, kind: Kind, bits: usize) {
        let old = self.shared_handle(kind).swap(bits, Ordering::Relaxed);
        // Nobody else destroys the object when another thread's call is done.
        while self.destroy(kind, old) == AVSG_BUSY {
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    /// Destroys a handle, which may be stale, and forgets its object.
    pub fn destroy(&mut self, kind: Kind, bits: usize) -> avsg_status {
        let status = match kind {
            Kind::Pool => avsg_pool_destroy(without_provenance_mut(bits)),
            Kind::Engine => avsg_engine_destroy(without_provenance_mut(bits)),
            Kind::Plan => avsg_plan_destroy(without_provenance_mut(bits)),
            Kind::Workers => avsg_workers_destroy(without_provenance_mut(bits)),
        };
        if self.record(status) {
            let mut known = self.shared.known();
            // A handle has its kind in its bits.
            drop((known.pools.remove(&bits), known.engines.remove(&bits)));
            known.plans.remove(&bits);
        }
        status
    }

    /// Creates a pool, an engine, a plan or workers, at times with a mistake, and keeps its handle.
    fn create(&mut self) {
        self.mistakes = 0;
        match self.below(4) {
            0 => self.create_pool(),
            1 => self.create_engine(),
            2 => self.create_workers(),
            _ => {
                let engine = self.handle(Kind::Engine);
                self.create_plan(engine);
            }
        }
    }

    /// Makes calls until the run's limit is reached.
    pub fn run(&mut self) {
        // The calls below need handles that exist.
        (0..40).for_each(|_| self.create());
        while self.shared.calls.load(Ordering::Relaxed) < self.shared.limit {
            if self.rarely(100) {
                self.create();
            }
            if self.rarely(3000) {
                let kind = KINDS[self.below(4)];
                let bits = self.handle::<()>(kind).addr();
                self.destroy(kind, bits);
            }
            self.mistakes = 0;
            match self.below(1000) {
                0..500 => self.step(),
                500..560 => self.append(),
                560..590 => self.load(),
                590..620 => self.fork(),
                620..640 => self.rewrite(),
                640..720 => self.give_up(),
                720..800 => self.session(),
                800..830 => self.range(),
                _ => self.query(),
            }
        }
        self.end_sessions();
    }
}
