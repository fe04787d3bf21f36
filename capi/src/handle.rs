//! Handles: the values that C holds in place of pointers.
//!
//! A handle has the type of a pointer, but it is a number: an index into a static table, the kind
//! of the object, and a generation that changes at each use of the table's entry. It is looked up
//! and never dereferenced, so that a stale, foreign or mistyped handle is detected whatever became
//! of its memory. The entry's word counts the calls that use the object. Acquiring an object is one
//! compare-and-swap, and a call that conflicts is refused at once.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::thread::panicking;

use avsg::Error;
use avsg::fork::Birth;

use crate::contract::contract;
use crate::sized::OutPtr;
use crate::status::avsg_status::{AVSG_BUSY, AVSG_HANDLE, AVSG_INTERNAL, AVSG_NULL};
use crate::status::{Failure, Result, avsg_status, enter};

const _: () = assert!(usize::BITS == 64, "a handle needs 47 bits");

/// Handles that may exist at a time.
const MAX_HANDLES: usize = 1 << INDEX_BITS;
const INDEX_BITS: u32 = 16;
const KIND_BITS: u32 = 3;
const GENERATION_BITS: u32 = 27;

// The word of an entry has the handle's tag in its low bits, and above it the calls that use the
// object.
const ONE_USER: u64 = 1 << 40;
const EXCLUSIVE: u64 = 1 << 62;
/// The bit that is set when a panic unwinds through a call on the object.
const BROKEN: u64 = 1 << 63;
const USERS: u64 = (EXCLUSIVE - 1) & !(ONE_USER - 1);
const TAG: u64 = ONE_USER - 1;

/// A type that C holds handles of.
pub(crate) trait Object: Sized + Send + Sync {
    /// The opaque type in C.
    type C;
    /// The kind in the handle: 1 to 7, different for each type.
    const KIND: u64;
    /// The name of the type in messages.
    const NAME: &'static str;

    /// Ends the object, and returns the first error of its releases.
    fn end(self) -> Result<()> {
        drop(self);
        Ok(())
    }
}

struct Entry {
    word: AtomicU64,
    object: AtomicPtr<()>,
    /// The process that the object was made in, as a number of [`Birth`].
    birth: AtomicU64,
    /// The handles that the entry has had; only the owner of the entry changes it. It begins at 0, so
    /// that the table takes no bytes of the library's file.
    used: AtomicU64,
}

impl Entry {
    fn next_generation(&self) -> u64 {
        self.used.load(Ordering::Relaxed) + 1
    }
}

/// The word of an entry that is being filled. No tag has these bits.
const TAKEN: u64 = EXCLUSIVE;

static TABLE: [Entry; MAX_HANDLES] = [const {
    Entry {
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

/// Returns the part of a handle that its entry stores: generation and kind. It is never 0.
fn tag<T: Object>(generation: u64) -> u64 {
    generation << KIND_BITS | T::KIND
}

/// Returns the index and tag of a handle, or None if no handle has these bits. The lowest bit of a
/// handle is 1, unlike that of a pointer to an aligned object.
fn index_and_tag<C>(handle: *const C) -> Option<(usize, u64)> {
    let bits = handle.addr() as u64;
    let fits = bits >> (1 + INDEX_BITS + KIND_BITS + GENERATION_BITS) == 0;
    (bits & 1 == 1 && fits)
        .then_some(((bits >> 1) as usize & (MAX_HANDLES - 1), bits >> (1 + INDEX_BITS)))
}

/// Makes a handle that owns `object`.
fn create<T: Object>(object: T) -> Result<*mut T::C> {
    // A vector of one is a box whose allocation can fail.
    let mut memory = Vec::new();
    if memory.try_reserve_exact(1).is_err() {
        return Err(Error::OutOfMemory { what: T::NAME, bytes: size_of::<T>() }.into());
    }
    memory.push(object);
    let Some(index) = take() else {
        let text = format!(
            "{} is handle {}, but {MAX_HANDLES} may exist at a time; destroy some",
            T::NAME,
            MAX_HANDLES + 1
        );
        return Failure::refuse(text);
    };
    let entry = &TABLE[index];
    let tag = tag::<T>(entry.next_generation());
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

/// The right to use an object, given back on drop. If a panic drops it, the object becomes
/// unusable.
struct Guard {
    entry: &'static Entry,
    /// The amount that the entry's word was raised by.
    increment: u64,
    /// Whether the thread was panicking when it acquired the object.
    panicking: bool,
}

impl Guard {
    /// Acquires an object for one call, or together with other calls that are not exclusive.
    fn new<T: Object>(handle: *const T::C, exclusive: bool, allow_broken: bool) -> Result<Self> {
        if handle.is_null() {
            let text = format!("{} is NULL, but a handle is needed; create one", T::NAME);
            return Err(Failure::new(AVSG_NULL, text));
        }
        let invalid = |reason| {
            let text = format!(
                "{} is {handle:p}, but {reason}; pass a handle from its create function until it is destroyed",
                T::NAME
            );
            Failure::new(AVSG_HANDLE, text)
        };
        let (index, tag) = index_and_tag(handle).ok_or_else(|| invalid("that is no handle"))?;
        if tag % (1 << KIND_BITS) != T::KIND {
            return Err(invalid("that is a handle of another kind"));
        }
        let entry = &TABLE[index];
        let increment = if exclusive { EXCLUSIVE } else { ONE_USER };
        let mut word = entry.word.load(Ordering::Acquire);
        loop {
            if word & TAG != tag {
                return Err(invalid("it was destroyed"));
            }
            // Before anything else, because calls of the parent's threads never end in a child.
            if entry.birth.load(Ordering::Relaxed) != Birth::now().number() {
                return Err(Error::Forked { what: T::NAME }.into());
            }
            if word & BROKEN != 0 && !allow_broken {
                let text = format!(
                    "{} is {handle:p}, but an earlier call on it failed with AVSG_INTERNAL; destroy it",
                    T::NAME
                );
                return Err(Failure::new(AVSG_INTERNAL, text));
            }
            if word & EXCLUSIVE != 0 || (exclusive && word & USERS != 0) || word & USERS == USERS {
                let text = format!(
                    "{} is in use by another thread's call, but these calls must not overlap; call \
                     again when that has returned",
                    T::NAME
                );
                return Err(Failure::new(AVSG_BUSY, text));
            }
            let (success, failure) = (Ordering::Acquire, Ordering::Acquire);
            match entry.word.compare_exchange_weak(word, word + increment, success, failure) {
                Ok(_) => return Ok(Self { entry, increment, panicking: panicking() }),
                Err(now) => word = now,
            }
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if panicking() && !self.panicking {
            self.entry.word.fetch_or(BROKEN, Ordering::Relaxed);
        }
        self.entry.word.fetch_sub(self.increment, Ordering::Release);
    }
}

/// An object in use by a call, together with other calls or by this one only.
pub(crate) struct InUse<T, const EXCLUSIVE: bool> {
    guard: Guard,
    object: PhantomData<T>,
}

/// Acquires an object together with other calls.
pub(crate) fn shared<T: Object>(handle: *const T::C) -> Result<InUse<T, false>> {
    Guard::new::<T>(handle, false, false).map(|guard| InUse { guard, object: PhantomData })
}

/// Acquires an object for one call.
pub(crate) fn exclusive<T: Object>(handle: *mut T::C) -> Result<InUse<T, true>> {
    Guard::new::<T>(handle, true, false).map(|guard| InUse { guard, object: PhantomData })
}

impl<T, const EXCLUSIVE: bool> Deref for InUse<T, EXCLUSIVE> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: `create` stored a T in an entry whose tag has T's kind, and the guard keeps the
        // object allocated (`destroy` needs an exclusive guard) and unchanged (only an exclusive use
        // gives a `&mut`).
        unsafe { &*self.guard.entry.object.load(Ordering::Relaxed).cast() }
    }
}

impl<T> DerefMut for InUse<T, true> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the object is an allocated T as in `deref`, and an exclusive guard admits no other
        // reference.
        unsafe { &mut *self.guard.entry.object.load(Ordering::Relaxed).cast() }
    }
}

/// Invalidates a handle and drops its object. NULL is accepted, as `free` does.
pub(crate) fn destroy<T: Object>(handle: *mut T::C) -> Result<()> {
    if handle.is_null() {
        return Ok(());
    }
    let guard = Guard::new::<T>(handle, true, true)?;
    let entry = guard.entry;
    let object = entry.object.swap(ptr::null_mut(), Ordering::Relaxed).cast::<T>();
    // The store below replaces the word that the guard's drop would change.
    core::mem::forget(guard);
    entry.used.fetch_add(1, Ordering::Relaxed);
    entry.word.store(0, Ordering::Release);
    // SAFETY: `create` made the pointer from a box of one T, and the exclusive guard and the swap
    // gave it to this call only. A box of an array of one is the same allocation.
    let [object] = *unsafe { Box::from_raw(object.cast::<[T; 1]>()) };
    object.end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::avsg_status::AVSG_OK;

    struct Thing {
        n: u32,
    }
    enum Opaque {}
    impl Object for Thing {
        type C = Opaque;
        const KIND: u64 = 3;
        const NAME: &'static str = "thing";
    }
    struct Other;
    impl Object for Other {
        type C = Opaque;
        const KIND: u64 = 2;
        const NAME: &'static str = "other";
    }

    fn status<T>(result: Result<T>) -> crate::status::avsg_status {
        result.map_or_else(|fail| fail.status, |_| AVSG_OK)
    }

    #[test]
    fn a_handle_is_valid_until_it_is_destroyed_and_never_again() {
        let old = create(Thing { n: 7 }).unwrap();
        assert_eq!(shared::<Thing>(old).unwrap().n, 7);
        exclusive::<Thing>(old).unwrap().n = 8;
        assert_eq!(status(shared::<Other>(old)), AVSG_HANDLE);
        assert_eq!(status(destroy::<Other>(old)), AVSG_HANDLE);
        assert_eq!(status(destroy::<Thing>(old)), AVSG_OK);
        assert_eq!(status(destroy::<Thing>(old)), AVSG_HANDLE);
        // Another handle gets the entry with another generation.
        let new: Vec<_> = (0..200).map(|i| create(Thing { n: i }).unwrap()).collect();
        assert!(!new.contains(&old));
        assert_eq!(status(shared::<Thing>(old)), AVSG_HANDLE);
        assert!(new.iter().zip(0..).all(|(&h, i)| shared::<Thing>(h).unwrap().n == i));
        new.into_iter().for_each(|handle| destroy::<Thing>(handle).unwrap());
        assert_eq!(status(destroy::<Thing>(ptr::null_mut())), AVSG_OK);
        assert_eq!(status(shared::<Thing>(ptr::null())), AVSG_NULL);
        for junk in
            [2usize, 8, 1, 5, 0xFFFF_FFFF_FFFF_FFFF, 0x7FFF_FFFF_FFFF, (&raw const TABLE).addr()]
        {
            let junk = ptr::without_provenance_mut(junk);
            assert_eq!(status(exclusive::<Thing>(junk)), AVSG_HANDLE);
            assert_eq!(status(destroy::<Thing>(junk)), AVSG_HANDLE);
        }
    }

    #[test]
    fn a_table_without_handles_is_zero() {
        let Entry { word, object, birth, used } = &TABLE[MAX_HANDLES - 1];
        let object = object.load(Ordering::Relaxed).addr() as u64;
        let numbers = [word, birth, used].map(|number| number.load(Ordering::Relaxed));
        assert_eq!((numbers, object), ([0; 3], 0));
    }

    #[test]
    fn exclusive_use_refuses_every_other_use() {
        let handle = create(Thing { n: 1 }).unwrap();
        let (a, b) = (shared::<Thing>(handle).unwrap(), shared::<Thing>(handle).unwrap());
        assert_eq!(status(exclusive::<Thing>(handle)), AVSG_BUSY);
        assert_eq!(status(destroy::<Thing>(handle)), AVSG_BUSY);
        drop(a);
        assert_eq!(status(exclusive::<Thing>(handle)), AVSG_BUSY);
        drop(b);
        let only = exclusive::<Thing>(handle).unwrap();
        assert_eq!(status(shared::<Thing>(handle)), AVSG_BUSY);
        assert_eq!(status(exclusive::<Thing>(handle)), AVSG_BUSY);
        assert_eq!(status(destroy::<Thing>(handle)), AVSG_BUSY);
        drop(only);
        destroy::<Thing>(handle).unwrap();
    }

    #[test]
    fn an_object_is_refused_after_a_panic_but_can_be_destroyed() {
        let handle = create(Thing { n: 1 }).unwrap();
        let broken = enter(|| {
            let _thing = exclusive::<Thing>(handle)?;
            panic!("on purpose");
        });
        assert_eq!(broken, AVSG_INTERNAL);
        assert_eq!(status(exclusive::<Thing>(handle)), AVSG_INTERNAL);
        assert_eq!(status(shared::<Thing>(handle)), AVSG_INTERNAL);
        assert_eq!(status(destroy::<Thing>(handle)), AVSG_OK);
        assert_eq!(status(destroy::<Thing>(handle)), AVSG_HANDLE);
    }

    #[test]
    fn exclusive_uses_by_many_threads_do_not_overlap() {
        let handle = create(Thing { n: 0 }).unwrap() as usize;
        let add = || {
            let handle = ptr::without_provenance_mut(handle);
            let mut done = 0;
            while done < 2000 {
                if let Ok(mut thing) = exclusive::<Thing>(handle) {
                    thing.n += 1;
                    done += 1;
                }
            }
        };
        std::thread::scope(|s| (0..4).for_each(|_| drop(s.spawn(add))));
        let handle = ptr::without_provenance_mut(handle);
        assert_eq!(shared::<Thing>(handle).unwrap().n, 8000);
        destroy::<Thing>(handle).unwrap();
    }
}
