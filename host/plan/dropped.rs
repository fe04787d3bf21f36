//! Plans that were dropped before a layer had their rows. Each leaves itself in a place that was made with it, which
//! takes neither a lock nor an allocation, and its engine discards it in its next call.

use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::system::reserve;
use crate::{Error, Result};

/// What a plan leaves, once: itself, in a vector of one.
type Left<T> = OnceLock<Vec<T>>;

/// The places of all plans of an engine.
#[derive(Debug, Default)]
pub(crate) struct Dropped<T> {
    /// A place has one owner when its plan is dropped, and is empty if the plan left nothing.
    places: Mutex<Vec<Arc<Left<T>>>>,
    /// Number of plans in `places`.
    count: Arc<AtomicUsize>,
}

/// Where a plan leaves itself.
#[derive(Debug)]
pub(crate) struct Place<T> {
    room: Vec<T>,
    left: Arc<Left<T>>,
    count: Arc<AtomicUsize>,
}

impl<T> Place<T> {
    /// Leaves a plan to its engine. Without an engine this drops it.
    pub fn leave(self, plan: T) {
        let Self { mut room, left, count } = self;
        // `place` has reserved the room, and the place is empty.
        room.push(plan);
        drop(left.set(room));
        drop(left);
        count.fetch_add(1, Ordering::Release);
    }
}

impl<T> Dropped<T> {
    /// Makes a place for a new plan.
    pub fn place(&self) -> Result<Place<T>> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.retain_mut(|place| {
            Arc::get_mut(place).is_none_or(|left| left.get().is_some_and(|plan| !plan.is_empty()))
        });
        let (what, bytes) = ("plan", size_of::<Arc<Left<T>>>());
        places.try_reserve(1).map_err(|_| Error::OutOfMemory { what, bytes })?;
        let room = reserve::with_capacity(what, 1)?;
        let place = Place { room, left: Arc::default(), count: Arc::clone(&self.count) };
        places.push(Arc::clone(&place.left));
        Ok(place)
    }

    /// Returns the plans that were dropped. While there are none it reads one word.
    pub fn iter(&mut self) -> impl Iterator<Item = &T> + Clone {
        let any = self.count.load(Ordering::Acquire) > 0;
        let places = self.places.get_mut().unwrap_or_else(PoisonError::into_inner);
        places[..if any { places.len() } else { 0 }].iter().filter_map(|place| place.get()?.first())
    }

    /// Calls `discard` with each plan that was dropped, until it changes none of them. It returns whether it
    /// changed anything, and whether the plan may be forgotten.
    pub fn discard_each(
        &mut self,
        mut discard: impl FnMut(&mut T) -> Result<(bool, bool)>,
    ) -> Result<()> {
        let mut changed = self.count.load(Ordering::Acquire) > 0;
        let places = self.places.get_mut().unwrap_or_else(PoisonError::into_inner);
        while mem::take(&mut changed) {
            for place in &mut *places {
                let Some(left) = Arc::get_mut(place) else { continue };
                let Some(plan) = left.get_mut().and_then(|left| left.first_mut()) else { continue };
                let (some, all) = discard(plan)?;
                changed |= some;
                if all {
                    left.take();
                    self.count.fetch_sub(1, Ordering::Relaxed);
                }
            }
        }
        Ok(())
    }
}
