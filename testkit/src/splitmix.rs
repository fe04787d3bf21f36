//! splitmix64: the one source of pseudo-random numbers here, the same on every machine.

/// What the state grows by for each output (2^64 divided by the golden ratio, odd).
pub const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// The output function: a bijection of 64 bits, so also a good hash of one word.
#[inline(always)]
pub const fn mix(state: u64) -> u64 {
    let z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The generator. Seed 0 gives 0xE220A8397B1DCDAF first.
#[derive(Debug, Clone)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// A generator that starts at `seed`; near seeds give unrelated streams.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    #[inline]
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        mix(self.0)
    }

    /// A number below `bound` (0 for a bound of 0). The high half of a product: its bias is below
    /// bound / 2^64, nothing for the sizes used here, and there is no rejection loop.
    #[inline]
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.word()) * bound as u128) >> 64) as usize
    }

    /// A number in (0, 1]: never 0, so its logarithm is finite.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        ((self.word() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Permutes `items` (Fisher-Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}
