//! The slots with the smallest lifetimes.

use super::life::LIFE_TILE;
use crate::ascend::aiv::Type::{F16, F32, I16, I32, U8, U16};
use crate::ascend::aiv::{
    Call, Comparison, Expr, Loop, Operator, SLOTS, Scalar, Set, Step, TILE, Tensor, args, half,
};

/// The constant with the number of slots that are numbered at once.
const SLOT_TILE: Expr = Expr::Constant("SLOT_TILE");

function! {
    /// Returns the number of slots with life <= t, for t in -128..127. `life` has SLOTS elements.
    COUNT_LE = CountLe(life: halves, t: number), |f| {
        let mask = Tensor::local("mask", "life_mask", U8, LIFE_TILE / 8);
        let below = Tensor::placed("scratch", F16, LIFE_TILE);
        let n = f.variable("n", 0);
        f.repeat(Loop::over("base", SLOTS).step(Step::By(LIFE_TILE)), |f, base| {
            let at_most = (Comparison::LessOrEqual, half(t));
            f.compares(&mask, life.at(base), at_most, LIFE_TILE);
            f.compact(&below, life.at(base), &mask, LIFE_TILE);
            let kept = f.kept();
            f.assign(n, n + kept);
        });
        f.give(n);
    }
}

function! {
    /// Returns the smallest t in -128..127 with CountLe(life, t) >= need, or 127 if there is none: a
    /// bisection that tries `hint` and its neighbour first.
    FIND_THRESHOLD = FindThreshold(life: halves, hint: number, need: number), |f| {
        let (low, high) = (f.variable("low", -128), f.variable("high", 127));
        f.when(need.above(0).opposite(), |f| f.assign(high, -128));
        let t = f.variable("t", Expr::max(Expr::min(hint, 126), -128));
        f.repeat(Loop::over("round", 256).only(high.above(low)), |f, round| {
            let n = f.result("n", &COUNT_LE, args![life, t]);
            let too_few = || need.above(n);
            f.choose(too_few(), |f| f.assign(low, t + 1), |f| f.assign(high, t));
            f.assign(t, low + (high - low) / 2);
            // The second try is the neighbour of the hint in the half that remains.
            let (least, most) = (low.expr(), Expr::max(high - 1, low));
            f.when(Expr::binary(Operator::Equals, round, 0), |f| {
                f.choose(too_few(), |f| f.assign(t, least), |f| f.assign(t, most));
            });
        });
        f.give(low);
    }
}

function! {
    /// Appends the slots whose lifetime compares by `mode` with t to a list of len words, in ascending
    /// order, until the list has `limit` words; returns the new length. The slots of an iteration have
    /// 16-bit numbers, relative to its first slot, because GatherMask processes twice as many of them
    /// per repeat. The words of the list's last block take part as in CompactAfterTail.
    APPEND_SLOTS = AppendSlots(
        list: words, len: number, life: halves, mode: comparison, t: number, limit: number
    ), |f| {
        let number = Tensor::local("number", "slot_numbers", I16, SLOT_TILE + 256);
        let packed = Tensor::local("packed", "packed_slots", I16, SLOT_TILE + 256);
        let mask = Tensor::local("mask", "mask_scratch", U16, SLOT_TILE / 16 + 16);
        let tail_number = packed.clone().viewed_as(I32);
        let iota = Tensor::placed("iota", I32, TILE);
        f.cast_exactly(number.at(256), iota, TILE);
        f.repeat(Loop::over("n", SLOT_TILE).from(TILE).step(Step::Double), |f, n| {
            f.adds(number.at(n + 256), number.at(256), Scalar::new(n, I16), n);
        });
        let size = f.variable("size", len);
        let tiles = Loop::over("base", SLOTS).step(Step::By(SLOT_TILE));
        f.repeat(tiles.only(limit.above(size)), |f, base| {
            let tail = f.set("tail", size % 8);
            let last = list.at(size - tail);
            let floats = last.clone().viewed_as(F32);
            let ones = Expr::power_of_two(tail.into()) - 1;
            f.duplicate(&mask, Scalar::new(ones, U16), 1);
            let bits = mask.at(16).viewed_as(U8);
            f.compares(bits, life.at(base), (mode, half(t)), SLOT_TILE);
            f.adds(&tail_number, &last, base.expr().negative(), tail);
            f.cast_exactly(&number, &tail_number, tail);
            f.compact(&packed, &number, &mask, SLOT_TILE + 256);
            let kept = f.kept();
            let n = f.set("n", Expr::min(kept, tail + limit - size));
            f.cast_exactly(&floats, &packed, n);
            f.cast_to_nearest(&last, &floats, n);
            f.adds(&last, &last, base, n);
            f.assign(size, size + n - tail);
        });
        f.give(size);
    }
}

/// Defines the variable `name`: the smallest threshold that the lifetimes of `need` slots do not
/// exceed. The search starts at `hint`.
pub fn find_threshold(name: String, life: String, hint: Expr, need: Expr) -> Call {
    Call::of(&FIND_THRESHOLD, args![life, hint, need]).sets_to(Set::Let, name)
}

/// Appends the slots whose lifetime compares by `how` with `t` to a list, until the list has
/// `limit` slots.
pub fn append_slots(
    (list, len): (String, String),
    life: String,
    how: Comparison,
    [t, limit]: [Expr; 2],
) -> Call {
    let args = args![list, Expr::name(&len), life, how, t, limit];
    Call::of(&APPEND_SLOTS, args).sets_to(Set::Assign, len)
}
