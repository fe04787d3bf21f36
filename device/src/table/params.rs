//! The geometry of a table and the rules that it lives by: constants when a kernel is recorded.

use core::fmt;

use super::state::FINGERPRINT_AND_SLOT_BITS;

/// Ids are below 2^22: larger ones would overflow the hash ([`crate::hash`]).
pub const ID_LIMIT: i32 = 1 << 22;
/// Most tokens per request and step: N_q.
pub const MAX_TOKENS: u32 = 8;
/// Smallest S, and smallest K's column.
pub const MIN_SLOTS: u32 = 64;
/// Largest S: the paper's hash multiplies m bits by m bits.
pub const MAX_SLOTS: u32 = 1 << 15;
/// Largest R.
pub const MAX_RETRIES: u32 = 15;
/// `stable_len` of a step without invalidation: no id reaches it.
pub const NO_STABLE_LEN: i32 = ID_LIMIT;

/// Which table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// The paper's, bit for bit: one link per slot, (a1·x) mod S with stride (a2·x mod S)|1, the
    /// lowest dead slots as victims, race losers lose their mapping.
    Paper {
        /// Multiplier of the first link. The paper does not give its value.
        a1: u32,
        /// Multiplier of the stride.
        a2: u32,
    },
    /// More links than slots, the oldest slots as victims, race losers look once more.
    Wide,
}

impl Table {
    /// The multipliers that fit the paper's figures best: Knuth's and xxHash's.
    pub const KNUTH_XXHASH: Self = Self::Paper { a1: 2_654_435_761, a2: 2_246_822_519 };
}

/// What a hit makes of a slot's lifetime.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Lifetime {
    /// L, always: least recently used.
    Constant(i8),
    /// The logarithm of an exponentially decaying count of uses, see [`Frequency`].
    Frequency(Frequency),
}

impl Lifetime {
    /// Frequency lifetimes at the decay factor that is best over the shared traces: at S = 2·K 1.9
    /// points above exact LRU, and at worst 0.23 below it (MTP-3, S = 4·K; with 0.9, 2.2 and 0.54).
    pub fn frequency() -> Self {
        Frequency::new(0.87).map_or(Self::Constant(127), Self::Frequency)
    }
}

/// Frequency lifetimes: a lifetime that falls by one each step *is* a decaying score in the log
/// domain, so let the score be one that counts.
///
/// With u = ln(1/lambda) a slot's score is e^(u·s); a hit adds 1 to it: s <- round(ln(1 + e^(u·s))/u),
/// at most `top`, where the sum of lambda^i converges. A new slot has s = 0. A byte holds
/// s - top - 1, so that every slot at rest is negative, and s - top + 127 while the running request
/// uses the slot, so that every slot in use is not: no second column is needed, a second hit changes
/// nothing, and the next step settles all of it in one pass over the column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frequency {
    /// The byte after a hit, by the byte before it (as unsigned).
    pub hit: [i8; 256],
    /// The byte of a slot that was just filled.
    pub new: i8,
}

impl Frequency {
    /// Least decay factor.
    pub const MIN_LAMBDA: f64 = 0.5;
    /// Largest one: above it, less than 32 steps of age remain in the byte.
    pub const MAX_LAMBDA: f64 = 0.965;

    /// The rule of a decay factor per step; `None` outside `MIN_LAMBDA..=MAX_LAMBDA`.
    pub fn new(lambda: f64) -> Option<Self> {
        if !(Self::MIN_LAMBDA..=Self::MAX_LAMBDA).contains(&lambda) {
            return None;
        }
        let u = -libm::log(lambda);
        let top = libm::round(-libm::log(1.0 - lambda) / u) as i32;
        let mut hit = [0i8; 256];
        for byte in -128i32..=127 {
            let next = if byte >= 0 {
                byte
            } else {
                let s = f64::from(byte + top + 1);
                let stepped = libm::round(libm::log(1.0 + libm::exp(u * s)) / u) as i32;
                stepped.min(top) - top + 127
            };
            hit[(byte as i8) as u8 as usize] = next as i8;
        }
        Some(Self { hit, new: (127 - top) as i8 })
    }
}

/// Geometry and rules of one table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Which table.
    pub table: Table,
    /// What a hit does.
    pub lifetime: Lifetime,
    /// K: ids per token, at most.
    pub k: u32,
    /// N_q: tokens per request and step, at most.
    pub tokens: u32,
    /// S: slots.
    pub slots: u32,
    /// Links per slot: 1, 2 or 4.
    pub spread: u32,
    /// R: links examined after the first.
    pub retries: u32,
    /// Rows per block of the host's block table, a power of two; 0: a token's row is its id.
    pub page: u32,
}

/// Which rule a geometry breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// K is 0 or above S.
    K,
    /// N_q is 0 or above [`MAX_TOKENS`].
    Tokens,
    /// S is no power of two in [`MIN_SLOTS`]`..=`[`MAX_SLOTS`].
    Slots,
    /// N_q · K > S: a request could evict what it returned.
    StepAboveSlots,
    /// The spread is not 1, 2 or 4; the paper's is 1.
    Spread,
    /// R is above [`MAX_RETRIES`].
    Retries,
    /// L is not in 0..=127 (`wide`) or 1..=127 (`paper`), or `paper` has frequency lifetimes.
    Lifetime,
    /// A multiplier of the paper's hash is even: it would lose the id's high bit.
    EvenMultiplier,
    /// The host's page is not 0 or a power of two in 1..=65536.
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
            Lifetime::Frequency(rule) => write!(f, "frequency lifetimes from {}", rule.new)?,
        }
        write!(f, ", page {page}")
    }
}

impl Params {
    /// The default geometry: `wide`, spread 4, R = 3, and the lifetimes that pay at this size. Between
    /// K and 4·K slots those are [`Lifetime::frequency`]: they save more copying than their refresh
    /// costs. Elsewhere the two hit alike and constant ones are matched a quarter faster.
    pub fn wide(k: u32, tokens: u32, slots: u32) -> Self {
        let counts = slots > k && slots / 4 < k;
        let lifetime = if counts { Lifetime::frequency() } else { Lifetime::Constant(127) };
        Self { table: Table::Wide, lifetime, k, tokens, slots, spread: 4, retries: 3, page: 0 }
    }

    /// The paper's: spread 1, R = 3, L = 16.
    pub fn paper(k: u32, tokens: u32, slots: u32) -> Self {
        Self {
            table: Table::KNUTH_XXHASH,
            lifetime: Lifetime::Constant(16),
            spread: 1,
            ..Self::wide(k, tokens, slots)
        }
    }

    /// Checks every rule; kernels rely on them.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(&self) -> Result<(), Fault> {
        let paper = matches!(self.table, Table::Paper { .. });
        let slots = self.slots.is_power_of_two() && (MIN_SLOTS..=MAX_SLOTS).contains(&self.slots);
        let lifetime = match self.lifetime {
            Lifetime::Constant(l) => l >= i8::from(paper),
            Lifetime::Frequency(_) => !paper,
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

    /// m: bits of a slot.
    #[inline(always)]
    pub fn slot_bits(&self) -> u32 {
        self.slots.ilog2()
    }

    /// t: bits of a link's position.
    #[inline(always)]
    pub fn link_bits(&self) -> u32 {
        self.links().ilog2()
    }

    /// T: links.
    #[inline(always)]
    pub fn links(&self) -> u32 {
        self.slots * self.spread
    }

    /// Bits of a print.
    #[inline(always)]
    pub fn fingerprint_bits(&self) -> u32 {
        FINGERPRINT_AND_SLOT_BITS - self.slot_bits()
    }

    /// The lifetime of a slot that was just filled.
    #[inline(always)]
    pub fn new_life(&self) -> i8 {
        match self.lifetime {
            Lifetime::Constant(l) => l,
            Lifetime::Frequency(f) => f.new,
        }
    }

    /// The lifetime of an empty slot.
    #[inline(always)]
    pub fn empty_life(&self) -> i8 {
        if matches!(self.table, Table::Paper { .. }) { -1 } else { i8::MIN }
    }
}
