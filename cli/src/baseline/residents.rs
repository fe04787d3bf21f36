//! Who is where: the bookkeeping that policies without a table of their own share.
//!
//! A direct id -> slot array. It is exact and as fast as it gets, and it grows with the largest id:
//! right for a comparison, wrong for the operator.

/// No slot.
const NONE: u32 = u32::MAX;

/// Both directions of the binding between ids and slots.
#[derive(Debug)]
pub(super) struct Residents {
    slot_of: Vec<u32>,
    id_at: Vec<i32>,
}

impl Residents {
    pub(super) fn new(slots: usize) -> Self {
        Self { slot_of: Vec::new(), id_at: vec![-1; slots] }
    }

    pub(super) fn slots(&self) -> usize {
        self.id_at.len()
    }

    /// The slot of an id; `None` for padding.
    pub(super) fn find(&self, id: i32) -> Option<usize> {
        let slot = *self.slot_of.get(usize::try_from(id).ok()?)?;
        (slot != NONE).then_some(slot as usize)
    }

    /// Whether nothing is in the slot yet.
    pub(super) fn is_empty(&self, slot: usize) -> bool {
        self.id_at[slot] < 0
    }

    /// Puts `id` (not padding, not resident) into `slot`; who was there is gone.
    pub(super) fn bind(&mut self, id: i32, slot: usize) {
        let old = std::mem::replace(&mut self.id_at[slot], id);
        if old >= 0 {
            self.slot_of[old as usize] = NONE;
        }
        let at = id as usize;
        if at >= self.slot_of.len() {
            self.slot_of.resize(at + 1, NONE);
        }
        self.slot_of[at] = slot as u32;
    }
}
