//! Hashes: sums of two products.

use super::basic::call;
use super::words::AND_WORD;
use crate::ascend::aiv::{
    Act, Argument, BARRIER, Call, Expr, Function, FunctionCall, Length, Operation, Outcome, Tensor,
    Use, ub, v, word,
};
use avsg_device::hash::MULTIPLIERS;

/// The masks of the factors of the two products: the low 16 bits of a word, and the next 6 bits.
pub const WORDS: [u32; 2] = [0xFFFF, 0x3F];

/// Computes a sum of two products from the parts of a word.
pub static SUM_OF_PRODUCTS: Function = Function::inner(
    "SumOfProducts",
    include_str!("sum_of_products.h.in"),
    &[Use::Function(&AND_WORD)],
);

/// Splits a word and computes the sum of two products of its parts.
pub static MIX: Function = Function {
    name: "Mix",
    text: include_str!("mix.h.in"),
    uses: &[Use::Function(&AND_WORD), Use::Function(&SUM_OF_PRODUCTS)],
    acts,
    in_place: false,
};

/// Calls `to = (x mod 2^16 - 2^15) * p + (x div 2^16 mod 2^6) * q`. `x` has at most `bits` bits, 22
/// or 32, and `high` is scratch memory.
pub fn mix(to: Tensor, x: Tensor, bits: i32, [p, q]: [i32; 2], high: Tensor) -> Call {
    let [p, q] = multipliers([p, q]).map(Argument::from);
    let args = vec![to.into(), x.into(), Expr::from(bits).into(), p, q, high.into()];
    let mut call = call(&MIX, args, Outcome::None);
    if let Operation::Function(call) = &mut call.operation {
        call.args.push(Argument::Length(Length::Lanes));
        call.words = WORDS.into();
    }
    call
}

/// The names, values and comments of the constants that hold the multipliers of the two hashes.
pub const CONSTANTS: [(&str, i32, &str); 4] = [
    ("MIX_P", MULTIPLIERS[0].0, "multiplies the low 16 bits of an id"),
    ("MIX_Q", MULTIPLIERS[0].1, "multiplies the next 6 bits of an id"),
    ("STRIDE_P", MULTIPLIERS[1].0, "multiplies the low 16 bits of a mixed word"),
    ("STRIDE_Q", MULTIPLIERS[1].1, "multiplies the next 6 bits of a mixed word"),
];

/// Returns two multipliers as operands: the constants that hold them, or else numbers.
pub fn multipliers([p, q]: [i32; 2]) -> [Expr; 2] {
    let known = CONSTANTS.chunks(2).find(|two| two[0].1 == p && two[1].1 == q);
    known.map_or([p.into(), q.into()], |two| [0, 1].map(|n: usize| Expr::Constant(two[n].0)))
}

fn acts(call: &FunctionCall) -> Vec<Act> {
    let [to, from, high_bits] = [0, 1, 5].map(|n| call.place(n));
    let [low, high] = WORDS.map(|bits| ub(&word(bits)));
    let mut acts = vec![v(&[&from, &low], &[&to]), v(&[&from], &[&high_bits])];
    acts.extend([BARRIER, v(&[&to], &[&to])]);
    if call.args[2] != Argument::from(Expr::from(22)) {
        acts.push(v(&[&high_bits, &high], &[&high_bits]));
    }
    acts.extend([BARRIER, v(&[&to], &[&to]), v(&[&high_bits], &[&high_bits])]);
    acts.extend([BARRIER, v(&[&to, &high_bits], &[&to])]);
    acts
}
