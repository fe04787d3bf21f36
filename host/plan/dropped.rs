//! Plans that were dropped before a layer had their rows. Each leaves itself in a place that was made with it, which
//! takes neither a lock nor an allocation, and its engine discards it in its next call.

use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::Plan;
use crate::{Error, Result, reserve};

/// What a plan leaves, once: itself, in a vector of one.
type Left = OnceLock<Vec<Plan>>;

/// The places of all plans of an engine.
#[derive(Debug, Default)]
pub(crate) struct DroppedPlans {
    /// A place has one owner when its plan is dropped, and is empty if the plan left nothing.
    places: Mutex<Vec<Arc<Left>>>,
    /// Number of plans in `places`.
    count: Arc<AtomicUsize>,
}

/// Where a plan leaves itself.
#[derive(Debug)]
pub(crate) struct Place {
    room: Vec<Plan>,
    left: Arc<Left>,
    count: Arc<AtomicUsize>,
}

impl Place {
    /// Leaves a plan to its engine. Without an engine this drops it.
    pub fn leave(self, plan: Plan) {
        let Self { mut room, left, count } = self;
        // `place` has reserved the room, and the place is empty.
        room.push(plan);
        drop(left.set(room));
        drop(left);
        count.fetch_add(1, Ordering::Release);
    }
}

impl DroppedPlans {
    /// Makes a place for a new plan.
    pub fn place(&self) -> Result<Place> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.retain_mut(|place| {
            Arc::get_mut(place).is_none_or(|left| left.get().is_some_and(|plan| !plan.is_empty()))
        });
        let (what, bytes) = ("plan", size_of::<Arc<Left>>());
        places.try_reserve(1).map_err(|_| Error::OutOfMemory { what, bytes })?;
        let room = reserve::with_capacity(what, 1)?;
        let place = Place { room, left: Arc::default(), count: Arc::clone(&self.count) };
        places.push(Arc::clone(&place.left));
        Ok(place)
    }

    /// Returns the plans that were dropped. While there are none it reads one word.
    pub fn iter(&mut self) -> impl Iterator<Item = &Plan> + Clone {
        let any = self.count.load(Ordering::Acquire) > 0;
        let places = self.places.get_mut().unwrap_or_else(PoisonError::into_inner);
        places[..if any { places.len() } else { 0 }].iter().filter_map(|place| place.get()?.first())
    }

    /// Calls `discard` with each plan that was dropped, until it changes none of them, and forgets those
    /// that hold no batch then.
    pub fn discard_each(
        &mut self,
        mut discard: impl FnMut(&mut Plan) -> Result<bool>,
    ) -> Result<()> {
        let mut changed = self.count.load(Ordering::Acquire) > 0;
        let places = self.places.get_mut().unwrap_or_else(PoisonError::into_inner);
        while mem::take(&mut changed) {
            for place in &mut *places {
                let Some(left) = Arc::get_mut(place) else { continue };
                let Some(plan) = left.get_mut().and_then(|left| left.first_mut()) else { continue };
                changed |= discard(plan)?;
                if plan.number == 0 {
                    left.take();
                    self.count.fetch_sub(1, Ordering::Relaxed);
                }
            }
        }
        Ok(())
    }
}
