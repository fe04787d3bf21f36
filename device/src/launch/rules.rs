//! The lifetimes after a hit as half-precision numbers, which device kernels gather.

use crate::table::learned::AFTER_HIT;
use crate::table::params::Lifetime;

/// Returns the rule of a hit as a device takes it, if it is no constant: 256 halves, of which entry
/// life + 128 is the lifetime after a hit of a slot with the lifetime `life`.
pub fn rules(lifetime: &Lifetime) -> Option<[u16; 256]> {
    match lifetime {
        Lifetime::Constant(_) => None,
        Lifetime::Learned => Some(AFTER_HIT.map(half)),
    }
}

/// Returns the bits of a small number as a half. Every byte is represented exactly.
fn half(n: i8) -> u16 {
    let magnitude = u16::from(n.unsigned_abs());
    if magnitude == 0 {
        return 0;
    }
    let exponent = magnitude.ilog2();
    let sign = if n < 0 { 1 << 15 } else { 0 };
    sign | ((exponent as u16 + 15) << 10) | ((magnitude << (10 - exponent)) & 0x3FF)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the value of a half by the definition of the format.
    fn value(bits: u16) -> f64 {
        let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
        let exponent = i32::from(bits >> 10 & 31);
        let fraction = f64::from(bits & 0x3FF) / 1024.0;
        if exponent == 0 {
            return sign * fraction * power(-14);
        }
        sign * (1.0 + fraction) * power(exponent - 15)
    }

    /// Returns 2^n.
    fn power(n: i32) -> f64 {
        f64::from_bits(((n + 1023) as u64) << 52)
    }

    #[test]
    fn rules_are_indexed_from_the_lowest_lifetime() {
        let table = rules(&Lifetime::Learned).expect("a rule with a table");
        for (half, next) in table.into_iter().zip(AFTER_HIT) {
            assert!((value(half) - f64::from(next)).abs() < f64::EPSILON, "{next}");
        }
    }
}
