//! The geometry and the rules of a table: constants when a kernel is recorded.

use core::fmt;

use super::state::{FINGERPRINT_AND_SLOT_BITS, NEW};
use crate::machine::links::bits_below;

/// The limit of ids: they are below 2^24, because the hash takes no higher bits ([`crate::hash`]).
pub const ID_LIMIT: i32 = 1 << 24;
/// The largest N_q, the number of tokens per request and step.
pub const MAX_TOKENS: u32 = 16;
/// The smallest S, and the least length of a column of K words. Every S is a multiple of it, because CPUs
/// compare 64 lifetimes at once.
pub const MIN_SLOTS: u32 = 64;
/// The largest S: a fingerprint needs the bits that a slot leaves.
pub const MAX_SLOTS: u32 = 1 << 16;
/// The largest S of `paper`, because its hash multiplies m bits by m bits.
pub const MAX_PAPER_SLOTS: u32 = 1 << 15;
/// The largest R, the number of retries.
pub const MAX_RETRIES: u32 = 15;
/// The `stable_len` of a step without invalidation. No id reaches it.
pub const NO_STABLE_LEN: i32 = ID_LIMIT;

/// The kind of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// The paper's table, bit for bit: one link per slot at (a1·x) mod S with the stride (a2·x mod
    /// S)|1. The victims are the dead slots with the lowest indices, and a miss whose link is
    /// overwritten by a later miss has no link.
    Paper {
        /// The multiplier of the first link. The paper does not give its value.
        a1: u32,
        /// The multiplier of the stride. The paper does not give its value.
        a2: u32,
    },
    /// A table with more links than slots. The victims are the oldest slots, and a miss whose link
    /// is overwritten searches for a link once more.
    Wide,
}

impl Table {
    /// The multipliers that agree best with the paper's figures: those of Knuth and of xxHash.
    pub const KNUTH_XXHASH: Self = Self::Paper { a1: 2_654_435_761, a2: 2_246_822_519 };
}

/// The rule of lifetimes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// A hit sets the lifetime to the constant L, and each step subtracts one; the lifetimes then order
    /// slots by their last use.
    Constant(i8),
    /// Age and use count in one byte, of which each request learns the value, see [`crate::learned`]. For
    /// `wide`.
    Learned,
}

impl fmt::Display for Lifetime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(l) => write!(f, "constant:{l}"),
            Self::Learned => f.write_str("learned"),
        }
    }
}

/// The geometry and the rules of one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// The kind of the table.
    pub table: Table,
    /// The rule of lifetimes.
    pub lifetime: Lifetime,
    /// K, the largest number of ids per token.
    pub k: u32,
    /// N_q, the largest number of tokens per request and step.
    pub tokens: u32,
    /// S, the number of slots: a multiple of 64, and a power of two for `paper`.
    pub slots: u32,
    /// The number of links per slot: 1, 2 or 4. The number of links is then rounded up to a power of two.
    pub spread: u32,
    /// R, the number of links examined after the first.
    pub retries: u32,
    /// The number of rows per block of the block table, a power of two; 0 without a block table,
    /// when the row of an id is the id.
    pub page: u32,
}

/// The rule that a geometry breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// K is 0 or above S.
    K,
    /// N_q is 0 or above [`MAX_TOKENS`].
    Tokens,
    /// S is not a multiple of [`MIN_SLOTS`] in `MIN_SLOTS..=`[`MAX_SLOTS`], or for `paper` not a power of two
    /// in `MIN_SLOTS..=`[`MAX_PAPER_SLOTS`].
    Slots,
    /// N_q · K > S: a request could evict a slot that it has returned.
    StepAboveSlots,
    /// The spread is not 1, 2 or 4, or it is not 1 for `paper`.
    Spread,
    /// R is above [`MAX_RETRIES`].
    Retries,
    /// L is not in 0..=127 (`wide`) or 1..=127 (`paper`), or `paper` has learned lifetimes.
    Lifetime,
    /// A multiplier of the paper's hash is even, so the highest bit of the id would have no effect.
    EvenMultiplier,
    /// The rows per block are not 0 or a power of two in 1..=65536.
    Page,
}

impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { table, lifetime, k, tokens, slots, spread, retries, page } = self;
        write!(
            f,
            "{table:?} table, K {k}, N_q {tokens}, S {slots}, spread {spread}, R {retries}, "
        )?;
        match lifetime {
            Lifetime::Constant(l) => write!(f, "constant lifetime {l}")?,
            Lifetime::Learned => write!(f, "learned lifetimes")?,
        }
        write!(f, ", page {page}")
    }
}

impl Params {
    /// Returns the default geometry: `wide`, spread 4, R = 3, and learned lifetimes if S is at least
    /// 2·K. In a smaller buffer most slots that a step does not use were used by the last steps, and what
    /// was learned loses up to 1.5 points there (`docs/limits.md`).
    pub fn wide(k: u32, tokens: u32, slots: u32) -> Self {
        let lifetime = if slots / 2 >= k { Lifetime::Learned } else { Lifetime::Constant(127) };
        Self { table: Table::Wide, lifetime, k, tokens, slots, spread: 4, retries: 3, page: 0 }
    }

    /// Returns the default geometry of devices with little fast memory, such as vector cores: two links per
    /// slot, R = 7, and learned lifetimes only below S = 4·K. In a larger buffer few rows miss, so that
    /// learning saves few copies.
    pub fn compact(k: u32, tokens: u32, slots: u32) -> Self {
        let wide = Self::wide(k, tokens, slots);
        let lifetime = if slots / 4 >= k { Lifetime::Constant(127) } else { wide.lifetime };
        Self { lifetime, spread: 2, retries: 7, ..wide }
    }

    /// Returns the paper's geometry: spread 1, R = 3, L = 16.
    pub fn paper(k: u32, tokens: u32, slots: u32) -> Self {
        Self {
            table: Table::KNUTH_XXHASH,
            lifetime: Lifetime::Constant(16),
            spread: 1,
            ..Self::wide(k, tokens, slots)
        }
    }

    /// Checks every rule that kernels rely on.
    ///
    /// # Errors
    /// Returns the first rule that is broken.
    pub fn check(&self) -> Result<(), Fault> {
        let paper = matches!(self.table, Table::Paper { .. });
        let slots = if paper {
            self.slots.is_power_of_two() && (MIN_SLOTS..=MAX_PAPER_SLOTS).contains(&self.slots)
        } else {
            self.slots.is_multiple_of(MIN_SLOTS) && (MIN_SLOTS..=MAX_SLOTS).contains(&self.slots)
        };
        let lifetime = match self.lifetime {
            Lifetime::Constant(l) => l >= i8::from(paper),
            Lifetime::Learned => !paper,
        };
        let primes = match self.table {
            Table::Paper { a1, a2 } => a1 & a2 & 1 == 1,
            Table::Wide => true,
        };
        let page = self.page == 0 || (self.page.is_power_of_two() && self.page <= 65536);
        let rules = [
            (slots, Fault::Slots),
            (self.k >= 1 && self.k <= self.slots, Fault::K),
            ((1..=MAX_TOKENS).contains(&self.tokens), Fault::Tokens),
            (
                u64::from(self.k) * u64::from(self.tokens) <= u64::from(self.slots),
                Fault::StepAboveSlots,
            ),
            (matches!(self.spread, 1 | 2 | 4) && (!paper || self.spread == 1), Fault::Spread),
            (self.retries <= MAX_RETRIES, Fault::Retries),
            (lifetime, Fault::Lifetime),
            (primes, Fault::EvenMultiplier),
            (page, Fault::Page),
        ];
        rules.into_iter().find(|(kept, _)| !kept).map_or(Ok(()), |(_, fault)| Err(fault))
    }

    /// Returns m, the number of bits of a slot.
    #[inline(always)]
    pub fn slot_bits(&self) -> u32 {
        bits_below(self.slots)
    }

    /// Returns 2^m, the least power of two that is not below S: a table in memory has as many places for the
    /// ids and the lifetimes of slots, so that no word of m bits is an index out of range. Places from S on
    /// are never used.
    #[inline(always)]
    pub fn slot_places(&self) -> u32 {
        1 << self.slot_bits()
    }

    /// Returns t, the number of bits of a link's position.
    #[inline(always)]
    pub fn link_bits(&self) -> u32 {
        bits_below(self.slots * self.spread)
    }

    /// Returns T, the number of links: a power of two.
    #[inline(always)]
    pub fn links(&self) -> u32 {
        1 << self.link_bits()
    }

    /// Returns the number of bits of a fingerprint.
    #[inline(always)]
    pub fn fingerprint_bits(&self) -> u32 {
        FINGERPRINT_AND_SLOT_BITS - self.slot_bits()
    }

    /// Returns the lifetime of a slot that was just filled.
    #[inline(always)]
    pub fn new_life(&self) -> i8 {
        match self.lifetime {
            Lifetime::Constant(l) => l,
            Lifetime::Learned => NEW,
        }
    }

    /// Returns the lifetime of an empty slot.
    #[inline(always)]
    pub fn empty_life(&self) -> i8 {
        if matches!(self.table, Table::Paper { .. }) { -1 } else { i8::MIN }
    }
}
