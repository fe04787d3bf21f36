//! The map between ids and slots that policies without a table of their own share.
//!
//! It is an array from id to slot, which is exact and fast but grows with the largest id. That is
//! acceptable for a comparison and not for the operator.

/// The slot of an id that is not resident.
const NONE: u32 = u32::MAX;

/// The map between ids and slots, in both directions.
#[derive(Debug)]
pub struct Residents {
    /// The slot of each id, or `NONE`.
    slot_of: Vec<u32>,
    /// The id in each slot; -1 for none.
    id_at: Vec<i32>,
}

impl Residents {
    /// Creates `slots` empty slots.
    pub fn new(slots: usize) -> Self {
        Self { slot_of: Vec::new(), id_at: vec![-1; slots] }
    }

    /// Returns the slot of an id; `None` for an id that is not resident and for padding.
    pub fn find(&self, id: i32) -> Option<usize> {
        let slot = *self.slot_of.get(usize::try_from(id).ok()?)?;
        (slot != NONE).then_some(slot as usize)
    }

    /// Returns whether the slot holds no row.
    pub fn is_empty(&self, slot: usize) -> bool {
        self.id_at[slot] < 0
    }

    /// Puts `id` (not padding, not resident) into `slot`, and returns the slot's previous id, which it evicts.
    pub fn bind(&mut self, id: i32, slot: usize) -> Option<i32> {
        let old = Some(std::mem::replace(&mut self.id_at[slot], id)).filter(|&old| old >= 0);
        if let Some(old) = old {
            self.slot_of[old as usize] = NONE;
        }
        let at = id as usize;
        if at >= self.slot_of.len() {
            self.slot_of.resize(at + 1, NONE);
        }
        self.slot_of[at] = slot as u32;
        old
    }
}
