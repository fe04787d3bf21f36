//! Lifetimes of slots: writes, refreshes by a rule, and decay.

use crate::ascend::aiv::Element::{Half, Mask, Word};
use crate::ascend::aiv::{
    Argument, Call, Comparison, Expr, Length, Loop, Outcome, Rounding, SLOTS, Scalar, Step, TILE,
    Tensor, Type, View, args, half,
};

/// The constant with the number of lifetimes that one instruction processes.
pub const LIFE_TILE: Expr = Expr::Constant("LIFE_TILE");
/// The constant with the number of lifetimes that one Gather replaces.
const MAP_TILE: Expr = Expr::Constant("MAP_TILE");

function! {
    /// life[slot[i]] = value for n lanes. One 64-bit access reads two slots.
    pub static SET_LIFETIME_ALL = "SetLifetimeAll", |f| {
        let ([life], slot) = (f.tensors(Half, ["life"]), f.words("slot"));
        let (value, n) = (f.scalar("value", Type::F16), f.number("n"));
        f.repeat(Loop::over("i", n / 2), |f, i| {
            let to = f.read(("to", Type::U64), &slot, i);
            for lane in 0..2 {
                f.write(&life, to.lane(lane), value);
            }
        });
        f.when(n.is_multiple_of(2).opposite(), |f| {
            let to = f.read(("to", Type::I32), &slot, n - 1);
            f.write(&life, to, value);
        });
    }
}

function! {
    /// life[slot[i]] = value for the lanes under a mask; lanes <= TILE.
    pub static SET_LIFETIME_MASKED = "SetLifetimeMasked", |f| {
        let ([life], slot) = (f.tensors(Half, ["life"]), f.words("slot"));
        let value = f.scalar("value", Type::F16);
        let (mask, lanes) = (f.mask("mask"), f.number("lanes"));
        let at = Tensor::local("at", "packed", Word, TILE);
        f.compact(&at, &slot, &mask, lanes);
        let kept = f.kept();
        f.call(&SET_LIFETIME_ALL, args![life, at, value, kept]);
    }
}

function! {
    /// life[slot[i]] = rule[life[slot[i]] + 128] for n lanes, n <= TILE: each slot is used once more.
    /// `rule` has 256 halfs, one for each lifetime from -128 on.
    pub static REFRESH_LIFETIME_ALL = "RefreshLifetimeAll", |f| {
        let ([life], slot) = (f.tensors(Half, ["life"]), f.words("slot"));
        let n = f.number("n");
        let offset = Tensor::local("offset", "lane_scratch", Word, TILE);
        let lifetimes = Tensor::local("lifetimes", "lifetimes", Half, TILE);
        f.shift_left(&offset, &slot, 1, n);
        f.gather(&lifetimes, &life, &offset, n);
        f.cast(&offset, &lifetimes, Rounding::Nearest, n);
        f.adds(&offset, &offset, 128, n);
        f.shift_left(&offset, &offset, 1, n);
        f.gather(&lifetimes, &Tensor::placed("rule", Half, 256), &offset, n);
        f.repeat(Loop::over("i", n), |f, i| {
            let to = f.read(("to", Type::I32), &slot, i);
            let next = f.read(("next", Type::F16), &lifetimes, i);
            f.write(&life, to, next);
        });
    }
}

function! {
    /// life[slot[i]] = rule[life[slot[i]] + 128] for the lanes under a mask; lanes <= TILE.
    pub static REFRESH_LIFETIME_MASKED = "RefreshLifetimeMasked", |f| {
        let ([life], slot) = (f.tensors(Half, ["life"]), f.words("slot"));
        let (mask, lanes) = (f.mask("mask"), f.number("lanes"));
        let at = Tensor::local("at", "packed", Word, TILE);
        f.compact(&at, &slot, &mask, lanes);
        let kept = f.kept();
        f.call(&REFRESH_LIFETIME_ALL, args![life, at, kept]);
    }
}

function! {
    /// life = max(life - by, -128) for all SLOTS slots.
    pub static DECAY_LIFETIMES = "DecayLifetimes", |f| {
        let ([life], by) = (f.tensors(Half, ["life"]), f.number("by"));
        f.adds(&life, &life, half(by.expr().negative()), SLOTS);
        f.maxs(&life, &life, half(-128), SLOTS);
    }
}

function! {
    /// life = life >= from ? max(life - by, -128) : life for all SLOTS slots.
    pub static DECAY_LIFETIMES_FROM = "DecayLifetimesFrom", |f| {
        let ([life], [by, from]) = (f.tensors(Half, ["life"]), f.numbers(["by", "from"]));
        let aged = Tensor::local("aged", "scratch", Half, LIFE_TILE);
        let old = Tensor::local("old", "life_mask", Mask, LIFE_TILE / 8);
        f.repeat(Loop::over("base", SLOTS).step(Step::By(LIFE_TILE)), |f, base| {
            let tile = life.at(base);
            f.compares(&old, &tile, (Comparison::GreaterOrEqual, half(from)), LIFE_TILE);
            f.adds(&aged, &tile, half(by.expr().negative()), LIFE_TILE);
            f.maxs(&aged, &aged, half(-128), LIFE_TILE);
            f.select(&tile, &old, [aged, tile.clone()], LIFE_TILE);
        });
    }
}

function! {
    /// to[i] = table[life[i] + 128] - 128 for all SLOTS slots. `table` has 256 words in 0..255. Each word is
    /// two 16-bit numbers, of which the first one is its value.
    pub static MAP_LIFETIMES = "MapLifetimes", |f| {
        let ([to, life], table) = (f.tensors(Half, ["to", "life"]), f.words("table"));
        let entries = Tensor::local("entries", "map_entries", Half, 512);
        let offset = Tensor::local("offset", "map_offsets", Word, MAP_TILE);
        f.cast(&entries, table.viewed_as(View::I16), Rounding::Exact, 512);
        f.adds(&entries, &entries, half(-128), 512);
        f.repeat(Loop::over("base", SLOTS).step(Step::By(MAP_TILE)), |f, base| {
            f.cast(&offset, life.at(base), Rounding::Nearest, MAP_TILE);
            f.adds(&offset, &offset, 128, MAP_TILE);
            f.shift_left(&offset, &offset, 2, MAP_TILE);
            f.gather(to.at(base), &entries, &offset, MAP_TILE);
        });
    }
}

/// Returns a lifetime as a scalar operand.
pub fn lifetime(n: i8) -> Scalar {
    Scalar::new(i32::from(n), Type::F16)
}

/// Calls `life[slot] = value`, under a mask or for all lanes.
pub fn set(life: String, slot: Tensor, value: i8, mask: Option<Tensor>) -> Call {
    let function = if mask.is_some() { &SET_LIFETIME_MASKED } else { &SET_LIFETIME_ALL };
    let mut args = vec![Tensor::named(life).into(), slot.into(), Argument::Scalar(lifetime(value))];
    args.extend(mask.map(Argument::from));
    args.push(Argument::Length(Length::Lanes));
    Call::of(function, args, Outcome::None)
}

/// Calls `life[slot] = rule[life[slot]]`, under a mask or for all lanes.
pub fn refresh(life: String, slot: Tensor, mask: Option<Tensor>) -> Call {
    let function = if mask.is_some() { &REFRESH_LIFETIME_MASKED } else { &REFRESH_LIFETIME_ALL };
    let mut args = vec![Tensor::named(life).into(), slot.into()];
    args.extend(mask.map(Argument::from));
    args.push(Argument::Length(Length::Lanes));
    Call::of(function, args, Outcome::None)
}

/// Decreases the lifetimes from `from` on by `by`, to -128 at the lowest; all lifetimes without `from`.
pub fn decay(life: String, by: Expr, from: Option<Expr>) -> Call {
    let function = if from.is_some() { &DECAY_LIFETIMES_FROM } else { &DECAY_LIFETIMES };
    let mut args = vec![Tensor::named(life).into(), by.into()];
    args.extend(from.map(Argument::from));
    Call::of(function, args, Outcome::None)
}

/// Calls `to = table[life + 128] - 128`.
pub fn map(columns: [String; 3]) -> Call {
    let args = columns.map(|column| Tensor::named(column).into());
    Call::of(&MAP_LIFETIMES, args.into(), Outcome::None)
}
