//! The searches over links, link by link.

use super::Lane;
use crate::tape::OpCode;
use avsg_device::hash::fingerprint_of;

/// The planes of a table as a search reads them. The length of each is a power of two.
pub(super) struct Planes {
    pub link: Vec<Lane>,
    pub id: Vec<Lane>,
}

impl Planes {
    /// Returns the result of `search` for one entry: that of the first link that matches, or -1 if
    /// none does. Returns `None` if it depends on poison or overflows.
    pub(super) fn first(&self, search: OpCode, sequence: i32, word: i32) -> Lane {
        let low = |n: usize| i32::try_from(n - 1).unwrap_or(i32::MAX);
        let (last, slots) = (low(self.link.len()), low(self.id.len()));
        let (position, stride) = (sequence & last, sequence >> self.link.len().ilog2());
        let (OpCode::Find(retries) | OpCode::FindFree(retries)) = search else { return None };
        for r in 0..=retries.cast_signed() {
            let at = r.checked_mul(stride)?.checked_add(position)? & last;
            let link = self.link[at.cast_unsigned() as usize]?;
            let slot = link & slots;
            let held = self.id[slot.cast_unsigned() as usize]?;
            let bits = self.id.len().ilog2();
            match search {
                OpCode::Find(_) if held == word => return Some(slot),
                OpCode::FindFree(_) if link >> bits != fingerprint_of(bits, held) => {
                    return Some(at);
                }
                _ => {}
            }
        }
        Some(-1)
    }
}
