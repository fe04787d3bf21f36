//! Plans that were dropped before a layer had their rows. Each leaves itself in a place that was made with it, which
//! takes neither a lock nor an allocation, and its engine discards it in its next call.

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

    /// Returns the places; none while no plan was dropped, for which it reads one word.
    fn all(&mut self) -> &mut [Arc<Left<T>>] {
        let any = self.count.load(Ordering::Acquire) > 0;
        let places = self.places.get_mut().unwrap_or_else(PoisonError::into_inner);
        if any { places } else { &mut [] }
    }

    /// Returns the plans that were dropped.
    pub fn iter(&mut self) -> impl Iterator<Item = &T> + Clone {
        self.all().iter().filter_map(|place| place.get()?.first())
    }

    /// Returns the number of places; 0 while no plan was dropped.
    pub fn places(&mut self) -> usize {
        self.all().len()
    }

    /// Takes the plan that was left in a place.
    pub fn take(&mut self, place: usize) -> Option<T> {
        let plan = Arc::get_mut(self.all().get_mut(place)?)?.get_mut()?.pop()?;
        self.count.fetch_sub(1, Ordering::Relaxed);
        Some(plan)
    }

    /// Leaves a plan in the place that it was taken from.
    pub fn put_back(&mut self, place: usize, plan: T) {
        self.count.fetch_add(1, Ordering::Relaxed);
        if let Some(left) = Arc::get_mut(&mut self.all()[place]).and_then(OnceLock::get_mut) {
            left.push(plan);
        }
    }
}
