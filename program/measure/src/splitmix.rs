//! splitmix64, the pseudo-random generator of all tests. Its output is the same on every machine.

/// Increment of the state per output: 2^64 divided by the golden ratio, made odd.
pub const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// Returns the output of a state. The function is a bijection of 64 bits and also serves as a hash.
#[inline(always)]
pub const fn mix(state: u64) -> u64 {
    let z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The generator. Its first output for seed 0 is 0xE220A8397B1DCDAF.
#[derive(Debug, Clone)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// Returns a generator that starts at `seed`. Adjacent seeds give unrelated sequences.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next 64 bits.
    #[inline]
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        mix(self.0)
    }

    /// Returns a number below `bound`, or 0 if `bound` is 0. It is the high half of a product
    /// without rejection; the bias is below bound / 2^64.
    #[inline]
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.word()) * bound as u128) >> 64) as usize
    }

    /// Returns a number in (0, 1], whose logarithm is finite.
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
