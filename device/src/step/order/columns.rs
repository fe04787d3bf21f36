//! The working columns that only learned lifetimes use.

use crate::machine::Machine;
use crate::machine::declare::Columns;
use crate::table::learned::{self, LIFETIMES};
use crate::table::params::{Lifetime, Params};

/// The working columns for learned lifetimes.
pub struct Order<'a, M: Machine> {
    /// What the table has for each lifetime.
    pub learned_values: M::Column<'a>,
    /// The lifetimes + 128 of the slots of a sample.
    pub sample: M::Column<'a>,
    /// The value of each lifetime, indexed by the lifetime + 128.
    pub value_of: M::Column<'a>,
    /// The value of each slot, less 128.
    pub value: M::Life<'a>,
}

impl<'a, M: Machine> Order<'a, M> {
    /// Declares the columns, if lifetimes are learned.
    #[inline(always)]
    pub fn declare(p: &Params, c: &mut impl Columns<'a, M>) -> Option<Self> {
        let values = LIFETIMES as u32;
        (p.lifetime == Lifetime::Learned).then(|| Self {
            learned_values: c.column("learned_values", values, i32::MIN..=i32::MAX),
            sample: c.column("sample", learned::sample_slots(p) as u32, i32::MIN..=i32::MAX),
            value_of: c.column("value_of", values, 0..=i32::from(u8::MAX)),
            value: c.life("value", p.slots),
        })
    }
}
