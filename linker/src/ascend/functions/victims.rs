//! The slots with the smallest lifetimes.

use super::life::LIFE_TILE;
use crate::ascend::aiv::Element::{Bits, Half, Mask, Short};
use crate::ascend::aiv::{
    Argument, Call, Comparison, Element, Expr, Loop, Outcome, Relation, Rounding, SLOTS, Scalar,
    Step, TILE, Tensor, Type, View, args, half,
};

/// The constant with the number of slots that are numbered at once.
const SLOT_TILE: Expr = Expr::Constant("SLOT_TILE");

function! {
    /// Returns the number of slots with life <= t, for t in -128..127. `life` has SLOTS elements.
    pub static COUNT_LE = "CountLe", |f| {
        let ([life], t) = (f.tensors(Half, ["life"]), f.number("t"));
        let mask = Tensor::local("mask", "life_mask", Mask, LIFE_TILE / 8);
        let below = Tensor::placed("scratch", Half, LIFE_TILE);
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
    pub static FIND_THRESHOLD = "FindThreshold", |f| {
        let ([life], [hint, need]) = (f.tensors(Half, ["life"]), f.numbers(["hint", "need"]));
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
            f.when(Expr::test(Relation::Equals, round, 0), |f| {
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
    pub static APPEND_SLOTS = "AppendSlots", |f| {
        let (list, len) = (f.words("list"), f.number("len"));
        let ([life], mode) = (f.tensors(Half, ["life"]), f.comparison("mode"));
        let [t, limit] = f.numbers(["t", "limit"]);
        let number = Tensor::local("number", "slot_numbers", Short, SLOT_TILE + 256);
        let packed = Tensor::local("packed", "packed_slots", Short, SLOT_TILE + 256);
        let mask = Tensor::local("mask", "mask_scratch", Bits, SLOT_TILE / 16 + 16);
        let tail_number = packed.clone().viewed_as(View::I32);
        let iota = Tensor::placed("iota", Element::Word, TILE);
        f.cast(number.at(256), iota, Rounding::Exact, TILE);
        f.repeat(Loop::over("n", SLOT_TILE).from(TILE).step(Step::Double), |f, n| {
            f.adds(number.at(n + 256), number.at(256), Scalar::new(n, Type::I16), n);
        });
        let size = f.variable("size", len);
        let tiles = Loop::over("base", SLOTS).step(Step::By(SLOT_TILE));
        f.repeat(tiles.only(limit.above(size)), |f, base| {
            let tail = f.set("tail", size % 8);
            let last = list.at(size - tail);
            let floats = last.clone().viewed_as(View::F32);
            let ones = Expr::power_of_two(tail.into()) - 1;
            f.duplicate(&mask, Scalar::new(ones, Type::U16), 1);
            let bits = mask.at(16).viewed_as(View::U8);
            f.compares(bits, life.at(base), (mode, half(t)), SLOT_TILE);
            f.adds(&tail_number, &last, base.expr().negative(), tail);
            f.cast(&number, &tail_number, Rounding::Exact, tail);
            f.compact(&packed, &number, &mask, SLOT_TILE + 256);
            let kept = f.kept();
            let n = f.set("n", Expr::min(kept, tail + limit - size));
            f.cast(&floats, &packed, Rounding::Exact, n);
            f.cast(&last, &floats, Rounding::Nearest, n);
            f.adds(&last, &last, base, n);
            f.assign(size, size + n - tail);
        });
        f.give(size);
    }
}

/// Defines the variable `name`: the smallest threshold that the lifetimes of `need` slots do not
/// exceed. The search starts at `hint`.
pub fn find_threshold(name: String, life: String, hint: Expr, need: Expr) -> Call {
    let args = vec![Tensor::named(life).into(), hint.into(), need.into()];
    Call::of(&FIND_THRESHOLD, args, Outcome::Let(name))
}

/// Appends the slots whose lifetime compares by `how` with `t` to a list, until the list has
/// `limit` slots.
pub fn append_slots(
    (list, len): (String, String),
    life: String,
    how: Comparison,
    [t, limit]: [Expr; 2],
) -> Call {
    let args = vec![
        Tensor::named(list).into(),
        Expr::name(&len).into(),
        Tensor::named(life).into(),
        Argument::Comparison(how),
        t.into(),
        limit.into(),
    ];
    Call::of(&APPEND_SLOTS, args, Outcome::Assign(len))
}
