//! Handles: what C holds in place of pointers.
//!
//! A handle is a number that looks like a pointer: place in a static table, kind, and how often the
//! place had been used before. It is never dereferenced, so that one that was destroyed, comes from
//! elsewhere or was mistyped is found out, whatever became of the memory. A place's word says who is
//! inside: an entry is one compare-and-swap, and a second thread is refused, not kept waiting.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::panicking;

use crate::status::avsg_status::{AVSG_BUSY, AVSG_HANDLE, AVSG_INTERNAL, AVSG_INVALID, AVSG_NULL};
use crate::status::{Fail, Result};

const _: () = assert!(usize::BITS == 64, "a handle needs 47 bits");

/// Handles that may be alive at a time.
const PLACES: usize = 1 << PLACE_BITS;
const PLACE_BITS: u32 = 16;
const KIND_BITS: u32 = 2;
const GENERATION_BITS: u32 = 28;

// A place's word: the handle without its place number in the low bits, and above it who is inside.
const ONE_USER: u64 = 1 << 40;
const EXCLUSIVE: u64 = 1 << 62;
/// A panic went through a call on this object.
const BROKEN: u64 = 1 << 63;
const USERS: u64 = (EXCLUSIVE - 1) & !(ONE_USER - 1);
const NAME: u64 = ONE_USER - 1;

/// What has handles.
pub(crate) trait Object: Sized + Send + Sync {
    /// The opaque type in C.
    type C;
    /// 1 to 3, different for each.
    const KIND: u64;
    /// For messages.
    const NAME: &'static str;
}

struct Place {
    word: AtomicU64,
    object: AtomicPtr<()>,
}

static TABLE: [Place; PLACES] =
    [const { Place { word: AtomicU64::new(0), object: AtomicPtr::new(ptr::null_mut()) } }; PLACES];

/// Places that are free again, oldest first, with their next generation; and the first one never used.
static FREE: Mutex<(VecDeque<(usize, u64)>, usize)> = Mutex::new((VecDeque::new(), 0));

/// The part of a handle that its place remembers: generation and kind. Never 0.
fn name<T: Object>(generation: u64) -> u64 {
    generation << KIND_BITS | T::KIND
}

/// A handle's place and name, if it can be one: odd, so no pointer to anything of this library's.
fn parts<C>(handle: *const C) -> Option<(usize, u64)> {
    let bits = handle.addr() as u64;
    let inside = bits >> (1 + PLACE_BITS + KIND_BITS + GENERATION_BITS) == 0;
    (bits & 1 == 1 && inside)
        .then_some(((bits >> 1) as usize & (PLACES - 1), bits >> (1 + PLACE_BITS)))
}

/// Makes a handle that owns `object`.
pub(crate) fn create<T: Object>(object: T) -> Result<*mut T::C> {
    let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
    let (at, generation) = match free.0.pop_front() {
        Some(used) => used,
        None if free.1 < PLACES => {
            free.1 += 1;
            (free.1 - 1, 1)
        }
        None => {
            let text =
                format!("{} is handle {PLACES}, but no more may be alive; destroy some", T::NAME);
            return Err(Fail::new(AVSG_INVALID, text));
        }
    };
    drop(free);
    let name = name::<T>(generation);
    TABLE[at].object.store(Box::into_raw(Box::new(object)).cast(), Ordering::Relaxed);
    TABLE[at].word.store(name, Ordering::Release);
    let bits = name << (1 + PLACE_BITS) | (at as u64) << 1 | 1;
    Ok(ptr::without_provenance_mut(bits as usize))
}

/// An entry into an object. It ends when this is dropped; by a panic, the object is unusable.
struct Entry {
    place: &'static Place,
    /// What to take off the word at the end.
    mark: u64,
    panicking: bool,
}

impl Entry {
    /// Enters alone, or with others that do not enter alone.
    fn new<T: Object>(handle: *const T::C, alone: bool, broken_too: bool) -> Result<Self> {
        if handle.is_null() {
            let text = format!("{} is NULL, but a handle is needed; create one", T::NAME);
            return Err(Fail::new(AVSG_NULL, text));
        }
        let stale = |why| {
            let text = format!(
                "{} is {handle:p}, but {why}; pass what its create function gave, before destroy",
                T::NAME
            );
            Fail::new(AVSG_HANDLE, text)
        };
        let (at, name) = parts(handle).ok_or_else(|| stale("that is no handle"))?;
        if name % (1 << KIND_BITS) != T::KIND {
            return Err(stale("that is a handle of another kind"));
        }
        let place = &TABLE[at];
        let mark = if alone { EXCLUSIVE } else { ONE_USER };
        let mut word = place.word.load(Ordering::Relaxed);
        loop {
            if word & NAME != name {
                return Err(stale("it was destroyed"));
            }
            if word & BROKEN != 0 && !broken_too {
                let text = format!("{} broke down in an earlier call; destroy it", T::NAME);
                return Err(Fail::new(AVSG_INTERNAL, text));
            }
            if word & EXCLUSIVE != 0 || (alone && word & USERS != 0) || word & USERS == USERS {
                let text = format!(
                    "{} is in use by another thread's call, but one at a time may be inside; call \
                     again when that has returned",
                    T::NAME
                );
                return Err(Fail::new(AVSG_BUSY, text));
            }
            let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
            match place.word.compare_exchange_weak(word, word + mark, success, failure) {
                Ok(_) => return Ok(Self { place, mark, panicking: panicking() }),
                Err(now) => word = now,
            }
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if panicking() && !self.panicking {
            self.place.word.fetch_or(BROKEN, Ordering::Relaxed);
        }
        self.place.word.fetch_sub(self.mark, Ordering::Release);
    }
}

/// Use of an object that others may use meanwhile.
pub(crate) struct Shared<T> {
    entry: Entry,
    object: PhantomData<T>,
}

/// Use of an object by nobody else.
pub(crate) struct Alone<T> {
    inside: Shared<T>,
}

/// Enters with others.
pub(crate) fn shared<T: Object>(handle: *const T::C) -> Result<Shared<T>> {
    Entry::new::<T>(handle, false, false).map(|entry| Shared { entry, object: PhantomData })
}

/// Enters alone.
pub(crate) fn alone<T: Object>(handle: *mut T::C) -> Result<Alone<T>> {
    let entry = Entry::new::<T>(handle, true, false)?;
    Ok(Alone { inside: Shared { entry, object: PhantomData } })
}

impl<T> Deref for Shared<T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the entry keeps the object alive (`destroy` enters alone) and unchanged (only `Alone`
        // gives a `&mut`), and a place whose name has T's kind holds a T (`create`).
        unsafe { &*self.entry.place.object.load(Ordering::Relaxed).cast() }
    }
}

impl<T> Deref for Alone<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.inside
    }
}

impl<T> DerefMut for Alone<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as for `Shared`, and nobody else is inside.
        unsafe { &mut *self.inside.entry.place.object.load(Ordering::Relaxed).cast() }
    }
}

/// Ends a handle and drops its object. NULL is no handle and no error, as for `free`.
pub(crate) fn destroy<T: Object>(handle: *mut T::C) -> Result<()> {
    if handle.is_null() {
        return Ok(());
    }
    let entry = Entry::new::<T>(handle, true, true)?;
    let Some((at, name)) = parts(handle) else { return Ok(()) };
    let object = entry.place.object.swap(ptr::null_mut(), Ordering::Relaxed).cast::<T>();
    // The entry is the object's last: its place is to be nobody's, not to be left.
    core::mem::forget(entry);
    TABLE[at].word.store(0, Ordering::Release);
    let generation = (name >> KIND_BITS) + 1;
    // A generation that would not fit is never used: the place stays empty.
    if generation >> GENERATION_BITS == 0 {
        FREE.lock().unwrap_or_else(PoisonError::into_inner).0.push_back((at, generation));
    }
    // SAFETY: `create` made it from a box of T (the name has T's kind), and whoever enters alone and
    // takes it off the table is its owner.
    drop(unsafe { Box::from_raw(object) });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::{avsg_status::AVSG_OK, enter};

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
    fn a_handle_is_good_until_destroyed_and_never_again() {
        let old = create(Thing { n: 7 }).unwrap();
        assert_eq!(shared::<Thing>(old).unwrap().n, 7);
        alone::<Thing>(old).unwrap().n = 8;
        assert_eq!(status(shared::<Other>(old)), AVSG_HANDLE);
        assert_eq!(status(destroy::<Other>(old)), AVSG_HANDLE);
        assert_eq!(status(destroy::<Thing>(old)), AVSG_OK);
        assert_eq!(status(destroy::<Thing>(old)), AVSG_HANDLE);
        // Its place is taken by others, under another name.
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
            assert_eq!(status(alone::<Thing>(junk)), AVSG_HANDLE);
            assert_eq!(status(destroy::<Thing>(junk)), AVSG_HANDLE);
        }
    }

    #[test]
    fn who_is_inside_alone_keeps_others_out() {
        let handle = create(Thing { n: 1 }).unwrap();
        let (a, b) = (shared::<Thing>(handle).unwrap(), shared::<Thing>(handle).unwrap());
        assert_eq!(status(alone::<Thing>(handle)), AVSG_BUSY);
        assert_eq!(status(destroy::<Thing>(handle)), AVSG_BUSY);
        drop(a);
        assert_eq!(status(alone::<Thing>(handle)), AVSG_BUSY);
        drop(b);
        let only = alone::<Thing>(handle).unwrap();
        assert_eq!(status(shared::<Thing>(handle)), AVSG_BUSY);
        assert_eq!(status(alone::<Thing>(handle)), AVSG_BUSY);
        assert_eq!(status(destroy::<Thing>(handle)), AVSG_BUSY);
        drop(only);
        destroy::<Thing>(handle).unwrap();
    }

    #[test]
    fn an_object_that_a_panic_went_through_is_refused_but_can_be_destroyed() {
        let handle = create(Thing { n: 1 }).unwrap();
        let broken = enter(|| {
            let _inside = alone::<Thing>(handle)?;
            panic!("on purpose");
        });
        assert_eq!(broken, AVSG_INTERNAL);
        assert_eq!(status(alone::<Thing>(handle)), AVSG_INTERNAL);
        assert_eq!(status(shared::<Thing>(handle)), AVSG_INTERNAL);
        assert_eq!(status(destroy::<Thing>(handle)), AVSG_OK);
        assert_eq!(status(destroy::<Thing>(handle)), AVSG_HANDLE);
    }

    #[test]
    fn many_threads_on_one_handle_see_it_whole() {
        let handle = create(Thing { n: 0 }).unwrap() as usize;
        let add = || {
            let handle = ptr::without_provenance_mut(handle);
            let mut done = 0;
            while done < 2000 {
                if let Ok(mut thing) = alone::<Thing>(handle) {
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
