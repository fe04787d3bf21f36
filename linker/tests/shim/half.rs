//! binary16 by its definition, independent of the shim's conversions.

/// Returns the value of a half.
pub fn value(bits: u16) -> f64 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 0x3FF));
    match exponent {
        31 if fraction == 0.0 => sign * f64::INFINITY,
        31 => f64::NAN,
        0 => sign * fraction * 2f64.powi(-24),
        _ => sign * (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
    }
}

/// Returns the nearest half, with ties to even, by bisection over the halves that are not negative.
pub fn nearest(x: f64) -> u16 {
    let (sign, x) = if x.is_sign_negative() { (0x8000, -x) } else { (0, x) };
    // The largest half is 65504. Values from halfway to 65536 on round to infinity.
    if x >= 65520.0 {
        return sign | 0x7C00;
    }
    let (mut low, mut high) = (0u16, 0x7C00);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if value(middle) <= x { low = middle } else { high = middle }
    }
    if high == 0x7C00 {
        return sign | low;
    }
    let (below, above) = (x - value(low), value(high) - x);
    sign | if below < above || (below == above && low % 2 == 0) { low } else { high }
}

/// Packs two halves into a word.
pub fn pack(low: u16, high: u16) -> i32 {
    (u32::from(low) | u32::from(high) << 16) as i32
}

/// Returns the two halves of a word.
pub fn unpack(word: i32) -> [u16; 2] {
    [word as u16, (word as u32 >> 16) as u16]
}
