//! Hashes: sums of two products.

use crate::ascend::aiv::{Call, Expr, Tensor, args, lanes};
use avsg_device::hash::MULTIPLIERS;

/// The masks of the factors of the two products: the low 16 bits of a word, and the next 8 bits.
pub const WORDS: [u32; 2] = [0xFFFF, 0xFF];

function! {
    /// dst = (dst - 2^15) * p + (high mod 2^8) * q for `lanes` lanes. dst is in 0..2^16-1; high is
    /// overwritten, and is below 2^8 if bits <= 24.
    SUM_OF_PRODUCTS = SumOfProducts(
        dst: words, high: words, bits: number, p: number, q: number, lanes: number
    ), |f| {
        f.adds(&dst, &dst, -32768, lanes);
        f.when(bits.above(24), |f| {
            f.and_word(&high, &high, Tensor::word(WORDS[1]), lanes);
        });
        f.muls(&dst, &dst, p, lanes);
        f.muls(&high, &high, q, lanes);
        f.add(&dst, &dst, &high, lanes);
    }
}

function! {
    /// dst = (x mod 2^16 - 2^15) * p + (x div 2^16 mod 2^8) * q for `lanes` lanes: the hash of an id, or
    /// of an earlier hash. x has no bits above `bits`, which is 24 or 32; `high` is scratch memory of as
    /// many lanes. p and q are below 2^15, so no product overflows.
    MIX = Mix(
        dst: words, x: words, bits: number, p: number, q: number, high: words, lanes: number
    ), |f| {
        f.and_word(&dst, &x, Tensor::word(WORDS[0]), lanes);
        f.shift_right(&high, &x, 16, lanes);
        f.call(&SUM_OF_PRODUCTS, args![dst, high, bits, p, q, lanes]);
    }
}

/// Calls `to = (x mod 2^16 - 2^15) * p + (x div 2^16 mod 2^8) * q`. `x` has at most `bits` bits, 24
/// or 32, and `high` is scratch memory.
pub fn mix(to: Tensor, x: Tensor, bits: i32, pq: [i32; 2], high: Tensor) -> Call {
    let [p, q] = multipliers(pq);
    Call::of(&MIX, args![to, x, Expr::from(bits), p, q, high, lanes()])
}

/// The names, values and comments of the constants that hold the multipliers of the two hashes.
pub const CONSTANTS: [(&str, i32, &str); 4] = [
    ("MIX_P", MULTIPLIERS[0].0, "multiplies the low 16 bits of an id"),
    ("MIX_Q", MULTIPLIERS[0].1, "multiplies the next 8 bits of an id"),
    ("STRIDE_P", MULTIPLIERS[1].0, "multiplies the low 16 bits of a mixed word"),
    ("STRIDE_Q", MULTIPLIERS[1].1, "multiplies the next 8 bits of a mixed word"),
];

/// Returns two multipliers as operands: the constants that hold them, or else numbers.
pub fn multipliers([p, q]: [i32; 2]) -> [Expr; 2] {
    let known = CONSTANTS.chunks(2).find(|two| two[0].1 == p && two[1].1 == q);
    known.map_or([p.into(), q.into()], |two| [0, 1].map(|n: usize| Expr::Constant(two[n].0)))
}
