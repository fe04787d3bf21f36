//! The schedule's type, and its own working columns.

use crate::machine::Machine;
use crate::machine::declare::Columns;
use crate::step::schedule::sequences;
use crate::table::hash;
use crate::table::params::{Params, Table};

/// The schedule that examines all links of an id at once and defers refreshes.
#[derive(Clone, Copy, Debug)]
pub struct VectorCore;

impl VectorCore {
    /// Returns whether this schedule serves a table: `wide`, with probe sequences that fit a word.
    pub fn serves(p: &Params) -> bool {
        p.table == Table::Wide && hash::sequence_fits(p)
    }
}

/// The word that is sought in place of padding. No slot holds it.
pub const PADDING: i32 = -2;

/// The number of columns in [`Extra`].
pub const COLUMNS: usize = 5;

/// The working columns that only [`VectorCore`] uses.
pub struct Extra<'a, M: Machine> {
    /// The probe sequences of the ids in this core's share of a token.
    pub share_sequence: M::Column<'a>,
    /// The ids of a token, with other words in place of those that are not valid.
    pub sought: M::Column<'a>,
    /// The hashes of these ids.
    pub hash: M::Column<'a>,
    /// The slots that the links of a pass name.
    pub candidate: M::Column<'a>,
    /// The probe sequences of the misses that search for a link a second time.
    pub second_sequence: M::Column<'a>,
}

impl<'a, M: Machine> Extra<'a, M> {
    /// Declares the columns.
    #[inline(always)]
    pub fn declare(p: &Params, c: &mut impl Columns<'a, M>) -> Self {
        Self {
            share_sequence: c.column("share_sequence", p.k, sequences(p)),
            sought: c.column("sought", p.k, PADDING..=i32::MAX),
            hash: c.column("hash", p.k, i32::MIN..=i32::MAX),
            candidate: c.column("candidate", p.k, 0..=p.slots as i32 - 1),
            second_sequence: c.column("second_sequence", p.k, sequences(p)),
        }
    }
}
