//! Hashes: sums of products.

use super::basic::call;
use super::words::AND_WORD;
use crate::aiv::{
    Act, Argument, Asks, BARRIER, Call, Expr, Helper, HelperCall, Length, Operation, Outcome,
    Tensor, Use, ub, v, word,
};

/// The low bits that a product takes, and the high ones.
pub const WORDS: [u32; 2] = [0xFFFF, 0x3F];

/// The end of a sum of products.
pub static BLEND: Helper =
    Helper::inner("Blend", include_str!("blend.h.in"), &[Use::Helper(&AND_WORD)]);

/// A sum of products.
pub static MIX: Helper = Helper {
    name: "Mix",
    text: include_str!("mix.h.in"),
    uses: &[Use::Helper(&AND_WORD), Use::Helper(&BLEND)],
    acts,
    asks: Asks::Never,
    in_place: false,
};

/// `to = (x mod 2^16 - 2^15) * p + (x div 2^16 mod 2^6) * q` for an x of so many bits; `high` is scratch.
pub fn mix(to: Tensor, x: Tensor, bits: i32, [p, q]: [i32; 2], high: Tensor) -> Call {
    let number = |n: i32| Argument::from(Expr::from(n));
    let args = vec![to.into(), x.into(), number(bits), number(p), number(q), high.into()];
    let mut call = call(&MIX, args, Outcome::None);
    if let Operation::Helper(call) = &mut call.operation {
        call.args.push(Argument::Length(Length::Lanes));
        call.words = WORDS.into();
    }
    call
}

fn acts(call: &HelperCall) -> Vec<Act> {
    let [to, from, rest] = [0, 1, 5].map(|n| call.place(n));
    let [low, high] = WORDS.map(|bits| ub(&word(bits)));
    let mut acts = vec![v(&[&from, &low], &[&to]), v(&[&from], &[&rest])];
    acts.extend([BARRIER, v(&[&to], &[&to])]);
    if call.args[2] != Argument::from(Expr::from(22)) {
        acts.push(v(&[&rest, &high], &[&rest]));
    }
    acts.extend([BARRIER, v(&[&to], &[&to]), v(&[&rest], &[&rest])]);
    acts.extend([BARRIER, v(&[&to, &rest], &[&to])]);
    acts
}
