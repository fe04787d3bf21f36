//! Handles: the values that C holds in place of pointers.
//!
//! A handle has the type of a pointer, but it is a number: an index into a static table, the kind
//! of the object, and a generation that changes at each use of the table's entry. It is looked up
//! and never dereferenced, so that a stale, foreign or mistyped handle is detected whatever became
//! of its memory. The entry's word counts the calls that use the object. Acquiring an object is one
//! compare-and-swap, and a call that conflicts is refused at once. What never changes in an object, and its
//! counters, are stored beside it, so that a call may read them while another one changes the object.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::thread::{panicking, yield_now};

use avsg::Error;
use avsg::system::fork::Birth;

use crate::boundary::{OutPtr, enter};
use crate::status::{
    Failure, Result, avsg_status,
    avsg_status::{AVSG_BUSY, AVSG_HANDLE, AVSG_INTERNAL, AVSG_NULL},
};

const _: () = assert!(usize::BITS == 64, "a handle needs 47 bits");

/// Handles that may exist at a time.
const MAX_HANDLES: usize = 1 << INDEX_BITS;
const INDEX_BITS: u32 = 16;
const KIND_BITS: u32 = 3;
const GENERATION_BITS: u32 = 27;

// The word of an entry has the handle's tag in its low bits, and above it the calls that read what is beside
// the object, whether the object ends, and the calls that use it.
const ONE_READER: u64 = 1 << 32;
/// The bit that is set when the object ends, after which no reader comes.
const ENDING: u64 = 1 << 46;
const ONE_USER: u64 = 1 << 47;
const EXCLUSIVE: u64 = 1 << 62;
/// The bit that is set when a panic unwinds through a call on the object.
const BROKEN: u64 = 1 << 63;
const READERS: u64 = ENDING - ONE_READER;
const USERS: u64 = EXCLUSIVE - ONE_USER;
const TAG: u64 = ONE_READER - 1;

/// A type that C holds handles of.
pub(crate) trait Object: Sized + Send + Sync {
    /// The opaque type in C.
    type C;
    /// The kind in the handle: 1 to 7, different for each type.
    const KIND: u64;
    /// The name of the type in messages.
    const NAME: &'static str;
    /// What never changes in an object, or only by atomic writes.
    type Fixed: Send + Sync;

    /// Returns what never changes in the object.
    fn fixed(&self) -> Self::Fixed;

    /// Ends the object, and returns the first error of its releases.
    fn end(self) -> Result<()> {
        drop(self);
        Ok(())
    }
}

/// An object, and what never changes in it.
struct Stored<T: Object> {
    object: T,
    fixed: T::Fixed,
}

struct HandleEntry {
    word: AtomicU64,
    /// A [`Stored`] object.
    object: AtomicPtr<()>,
    /// The process that the object was made in, as a number of [`Birth`].
    birth: AtomicU64,
    /// The handles that the entry has had; only the owner of the entry changes it. It begins at 0, so
    /// that the table takes no bytes of the library's file.
    used: AtomicU64,
}

impl HandleEntry {
    fn next_generation(&self) -> u64 {
        self.used.load(Ordering::Relaxed) + 1
    }
}

/// The word of an entry that is being filled. No tag has these bits.
const TAKEN: u64 = EXCLUSIVE;

static TABLE: [HandleEntry; MAX_HANDLES] = [const {
    HandleEntry {
        word: AtomicU64::new(0),
        object: AtomicPtr::new(ptr::null_mut()),
        birth: AtomicU64::new(0),
        used: AtomicU64::new(0),
    }
}; MAX_HANDLES];

/// Where the search for a free entry begins: behind the last one that was taken, so that an entry
/// is not used again soon. There is no lock, which a forked child could find locked for ever.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Takes a free entry; None if there is none.
fn take() -> Option<usize> {
    let first = NEXT.load(Ordering::Relaxed);
    let index = (first..first + MAX_HANDLES).map(|index| index % MAX_HANDLES).find(|&index| {
        let entry = &TABLE[index];
        // An entry whose next generation does not fit stays empty.
        let fits = entry.next_generation() >> GENERATION_BITS == 0;
        let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
        fits && entry.word.compare_exchange(0, TAKEN, success, failure).is_ok()
    })?;
    NEXT.store((index + 1) % MAX_HANDLES, Ordering::Relaxed);
    Some(index)
}

/// Returns the index and tag of a handle, or None if no handle has these bits. The lowest bit of a
/// handle is 1, unlike that of a pointer to an aligned object.
fn index_and_tag<C>(handle: *const C) -> Option<(usize, u64)> {
    let bits = handle.addr() as u64;
    let (index, tag) = ((bits >> 1) as usize & (MAX_HANDLES - 1), bits >> (1 + INDEX_BITS));
    (bits & 1 == 1 && tag <= TAG).then_some((index, tag))
}

/// Makes a handle that owns `object`.
fn create<T: Object>(object: T) -> Result<*mut T::C> {
    let fixed = object.fixed();
    // A vector of one is a box whose allocation can fail.
    let mut memory = Vec::new();
    if memory.try_reserve_exact(1).is_err() {
        return Err(Error::OutOfMemory { what: T::NAME, bytes: size_of::<Stored<T>>() }.into());
    }
    memory.push(Stored { object, fixed });
    let Some(index) = take() else {
        return Failure::refuse(format!(
            "{} is a handle too many, but {MAX_HANDLES} may exist at a time; destroy some",
            T::NAME
        ));
    };
    let entry = &TABLE[index];
    // The part of a handle that its entry stores. It is never 0.
    let tag = entry.next_generation() << KIND_BITS | T::KIND;
    entry.object.store(Box::into_raw(memory.into_boxed_slice()).cast(), Ordering::Relaxed);
    entry.birth.store(Birth::now().number(), Ordering::Relaxed);
    entry.word.store(tag, Ordering::Release);
    let bits = tag << (1 + INDEX_BITS) | (index as u64) << 1 | 1;
    Ok(ptr::without_provenance_mut(bits as usize))
}

/// Runs the body of an exported function that makes an object, and gives its handle; NULL if it fails.
///
/// # Safety
/// `to` is NULL or valid for writes.
pub(crate) unsafe fn give<T: Object>(
    to: *mut *mut T::C,
    make: impl FnOnce() -> Result<T>,
) -> avsg_status {
    enter(|| {
        let out = contract!(OutPtr::new(T::NAME, to, ptr::null_mut()))?;
        out.write(create(make()?)?);
        Ok(())
    })
}

/// A way to use an object.
struct Use {
    /// The amount that the entry's word is raised by.
    adds: u64,
    /// The bits of the word that count such uses. No other one begins while all are set.
    counts: u64,
    /// The bits of the word of uses that must not overlap this one.
    conflicts: u64,
    /// Whether an object is used after a panic.
    broken: bool,
}

impl Use {
    const fn new(adds: u64, counts: u64, conflicts: u64) -> Self {
        Self { adds, counts, conflicts, broken: false }
    }

    /// To read what never changes, beside every use but [`Self::END`].
    const FIXED: Self = Self::new(ONE_READER, READERS, ENDING);
    /// To use the object together with other calls.
    const SHARED: Self = Self::new(ONE_USER, USERS, EXCLUSIVE);
    /// To use the object for one call.
    const EXCLUSIVE: Self = Self::new(EXCLUSIVE, EXCLUSIVE, USERS);
    /// To end the object, when its readers are done.
    const END: Self = Self { broken: true, ..Self::new(EXCLUSIVE | ENDING, EXCLUSIVE, USERS) };
}

/// The right to use an object, given back on drop. If a panic drops it, the object becomes
/// unusable.
struct Guard {
    entry: &'static HandleEntry,
    /// The amount that the entry's word was raised by.
    added: u64,
    /// Whether the thread was panicking when it acquired the object.
    panicking: bool,
}

impl Guard {
    /// Acquires an object.
    fn new<T: Object>(handle: *const T::C, how: &Use) -> Result<Self> {
        let name = T::NAME;
        if handle.is_null() {
            let text = format!("{name} is NULL, but a handle is needed; create one");
            return Err(Failure::new(AVSG_NULL, text));
        }
        let invalid = |reason| {
            let text = format!(
                "{name} is {handle:p}, but {reason}; pass a handle from its create function until it is destroyed"
            );
            Failure::new(AVSG_HANDLE, text)
        };
        let (index, tag) = index_and_tag(handle).ok_or_else(|| invalid("that is no handle"))?;
        if tag % (1 << KIND_BITS) != T::KIND {
            return Err(invalid("that is a handle of another kind"));
        }
        let entry = &TABLE[index];
        let mut word = entry.word.load(Ordering::Acquire);
        loop {
            if word & TAG != tag {
                return Err(invalid("it was destroyed"));
            }
            // Before anything else, because calls of the parent's threads never end in a child.
            if entry.birth.load(Ordering::Relaxed) != Birth::now().number() {
                return Err(Error::Forked { what: name }.into());
            }
            if word & BROKEN != 0 && !how.broken {
                let text = format!(
                    "{name} is {handle:p}, but an earlier call on it failed with AVSG_INTERNAL; destroy it"
                );
                return Err(Failure::new(AVSG_INTERNAL, text));
            }
            if word & how.conflicts != 0 || word & how.counts == how.counts {
                let text = format!(
                    "{name} is in use by another thread's call, but these calls must not overlap; call \
                     again when that has returned"
                );
                return Err(Failure::new(AVSG_BUSY, text));
            }
            let (success, failure) = (Ordering::Acquire, Ordering::Acquire);
            match entry.word.compare_exchange_weak(word, word + how.adds, success, failure) {
                Ok(_) => return Ok(Self { entry, added: how.adds, panicking: panicking() }),
                Err(now) => word = now,
            }
        }
    }

    /// Returns the address of the object that the guard was made for.
    fn stored<T: Object>(&self) -> *mut Stored<T> {
        self.entry.object.load(Ordering::Relaxed).cast()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if panicking() && !self.panicking {
            self.entry.word.fetch_or(BROKEN, Ordering::Relaxed);
        }
        self.entry.word.fetch_sub(self.added, Ordering::Release);
    }
}

/// An object in use by a call, together with other calls or by this one only.
pub(crate) struct InUse<T, const EXCLUSIVE: bool> {
    guard: Guard,
    object: PhantomData<T>,
}

/// Acquires an object together with other calls.
pub(crate) fn shared<T: Object>(handle: *const T::C) -> Result<InUse<T, false>> {
    Guard::new::<T>(handle, &Use::SHARED).map(|guard| InUse { guard, object: PhantomData })
}

/// Acquires an object for one call.
pub(crate) fn exclusive<T: Object>(handle: *mut T::C) -> Result<InUse<T, true>> {
    Guard::new::<T>(handle, &Use::EXCLUSIVE).map(|guard| InUse { guard, object: PhantomData })
}

/// Reads what never changes in an object, also while another call has it for itself.
pub(crate) fn fixed<T: Object, R>(
    handle: *const T::C,
    read: impl FnOnce(&T::Fixed) -> Result<R>,
) -> Result<R> {
    let guard = Guard::new::<T>(handle, &Use::FIXED)?;
    // SAFETY: `create` stored a `Stored<T>` in an entry whose tag has T's kind. The guard keeps it
    // allocated (`destroy` waits for it), and nothing writes to its `fixed` but to atomics in it.
    read(unsafe { &(*guard.stored::<T>()).fixed })
}

impl<T: Object, const EXCLUSIVE: bool> Deref for InUse<T, EXCLUSIVE> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: `create` stored a `Stored<T>` in an entry whose tag has T's kind, and the guard keeps
        // it allocated (`destroy` needs a guard that excludes this one) and its object unchanged (only an
        // exclusive use gives a `&mut`).
        unsafe { &(*self.guard.stored::<T>()).object }
    }
}

impl<T: Object> DerefMut for InUse<T, true> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the object is an allocated T as in `deref`, and an exclusive guard admits no other
        // reference to it.
        unsafe { &mut (*self.guard.stored::<T>()).object }
    }
}

/// Invalidates a handle and drops its object, after the calls that read what is beside it, of which none waits.
/// NULL is accepted, as `free` does.
pub(crate) fn destroy<T: Object>(handle: *mut T::C) -> Result<()> {
    if handle.is_null() {
        return Ok(());
    }
    let guard = Guard::new::<T>(handle, &Use::END)?;
    let entry = guard.entry;
    while entry.word.load(Ordering::Acquire) & READERS != 0 {
        yield_now();
    }
    let stored = entry.object.swap(ptr::null_mut(), Ordering::Relaxed).cast::<Stored<T>>();
    // The store below replaces the word that the guard's drop would change.
    core::mem::forget(guard);
    entry.used.fetch_add(1, Ordering::Relaxed);
    entry.word.store(0, Ordering::Release);
    // SAFETY: `create` made the pointer from a box of one `Stored<T>`, and the guard, which excludes
    // every other one but of readers that are done, and the swap gave it to this call only. A box of an array of one is the same
    // allocation.
    let [Stored { object, .. }] = *unsafe { Box::from_raw(stored.cast::<[Stored<T>; 1]>()) };
    object.end()
}

#[cfg(test)]
mod tests;
