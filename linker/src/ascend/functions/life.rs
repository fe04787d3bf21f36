//! Lifetimes of slots: writes, refreshes by a rule, and decay.

use super::on_lanes;
use crate::ascend::aiv::Type::{F16, I16, I32, U8, U64};
use crate::ascend::aiv::{
    Argument, Call, Comparison, Expr, Loop, SLOTS, Scalar, Step, TILE, Tensor, args, half,
};

/// The constant with the number of lifetimes that one instruction processes.
pub const LIFE_TILE: Expr = Expr::Constant("LIFE_TILE");
/// The constant with the number of lifetimes that one Gather replaces.
const MAP_TILE: Expr = Expr::Constant("MAP_TILE");
/// The constants with the numbers of elements that the sources of two Gathers are declared with.
const MAP_ENTRIES: Expr = Expr::Constant("MAP_ENTRIES");
const RULE_ENTRIES: Expr = Expr::Constant("RULE_ENTRIES");

function! {
    /// life[slot[i]] = value for n lanes. One 64-bit access reads two slots.
    SET_LIFETIME_ALL = SetLifetimeAll(life: halves, slot: words, value: half, n: number), |f| {
        f.repeat(Loop::over("i", n / 2), |f, i| {
            let to = f.read(("to", U64), &slot, i);
            for lane in 0..2 {
                f.write(&life, to.lane(lane), value);
            }
        });
        f.when(n.is_multiple_of(2).opposite(), |f| {
            let to = f.read(("to", I32), &slot, n - 1);
            f.write(&life, to, value);
        });
    }
}

function! {
    /// life[slot[i]] = value for the lanes under a mask; lanes <= TILE.
    SET_LIFETIME_MASKED = SetLifetimeMasked(
        life: halves, slot: words, value: half, mask: mask, lanes: number
    ), |f| {
        let at = Tensor::local("at", "packed", I32, TILE);
        f.compact(&at, &slot, &mask, lanes);
        let kept = f.kept();
        f.call(&SET_LIFETIME_ALL, args![life, at, value, kept]);
    }
}

function! {
    /// life[slot[i]] = rule[life[slot[i]] + 128] for n lanes, n <= TILE: each slot is used once more.
    /// `rule` has 256 halfs, one for each lifetime from -128 on.
    REFRESH_LIFETIME_ALL = RefreshLifetimeAll(life: halves, slot: words, n: number), |f| {
        let offset = Tensor::local("offset", "lane_scratch", I32, TILE);
        let lifetimes = Tensor::local("lifetimes", "lifetimes", F16, TILE);
        f.shift_left(&offset, &slot, 1, n);
        f.gather(&lifetimes, &life, &offset, n);
        f.cast_to_nearest(&offset, &lifetimes, n);
        f.adds(&offset, &offset, 128, n);
        f.shift_left(&offset, &offset, 1, n);
        f.gather(&lifetimes, &Tensor::placed("rule", F16, RULE_ENTRIES), &offset, n);
        f.repeat(Loop::over("i", n), |f, i| {
            let to = f.read(("to", I32), &slot, i);
            let next = f.read(("next", F16), &lifetimes, i);
            f.write(&life, to, next);
        });
    }
}

function! {
    /// life[slot[i]] = rule[life[slot[i]] + 128] for the lanes under a mask; lanes <= TILE.
    REFRESH_LIFETIME_MASKED = RefreshLifetimeMasked(
        life: halves, slot: words, mask: mask, lanes: number
    ), |f| {
        let at = Tensor::local("at", "packed", I32, TILE);
        f.compact(&at, &slot, &mask, lanes);
        let kept = f.kept();
        f.call(&REFRESH_LIFETIME_ALL, args![life, at, kept]);
    }
}

function! {
    /// life = max(life - by, -128) for all SLOTS slots.
    DECAY_LIFETIMES = DecayLifetimes(life: halves, by: number), |f| {
        f.adds(&life, &life, half(by.expr().negative()), SLOTS);
        f.maxs(&life, &life, half(-128), SLOTS);
    }
}

function! {
    /// life = life >= from ? max(life - by, -128) : life for all SLOTS slots.
    DECAY_LIFETIMES_FROM = DecayLifetimesFrom(life: halves, by: number, from: number), |f| {
        let aged = Tensor::local("aged", "scratch", F16, LIFE_TILE);
        let old = Tensor::local("old", "life_mask", U8, LIFE_TILE / 8);
        f.repeat(Loop::over("base", SLOTS).step(Step::By(LIFE_TILE)), |f, base| {
            let tile = life.at(base);
            f.compares(&old, &tile, (Comparison::GreaterOrEqual, half(from)), LIFE_TILE);
            f.adds(&aged, &tile, half(by.expr().negative()), LIFE_TILE);
            f.maxs(&aged, &aged, half(-128), LIFE_TILE);
            f.select(&tile, &old, &aged, &tile, LIFE_TILE);
        });
    }
}

function! {
    /// to[i] = table[life[i] + 128] - 128 for all SLOTS slots. `table` has 256 words in 0..255. Each word is
    /// two 16-bit numbers, of which the first one is its value.
    MAP_LIFETIMES = MapLifetimes(to: halves, life: halves, table: words), |f| {
        let entries = Tensor::local("entries", "map_entries", F16, MAP_ENTRIES);
        let offset = Tensor::local("offset", "map_offsets", I32, MAP_TILE);
        f.cast_exactly(&entries, table.viewed_as(I16), 512);
        f.adds(&entries, &entries, half(-128), 512);
        f.repeat(Loop::over("base", SLOTS).step(Step::By(MAP_TILE)), |f, base| {
            f.cast_to_nearest(&offset, life.at(base), MAP_TILE);
            f.adds(&offset, &offset, 128, MAP_TILE);
            f.shift_left(&offset, &offset, 2, MAP_TILE);
            f.gather(to.at(base), &entries, &offset, MAP_TILE);
        });
    }
}

/// Returns a lifetime as a scalar operand.
pub fn lifetime(n: i8) -> Scalar {
    half(i32::from(n))
}

/// Calls `life[slot] = value`, under a mask or for all lanes.
pub fn set(life: String, slot: Tensor, value: i8, mask: Option<Tensor>) -> Call {
    let args = args![life, slot, lifetime(value)];
    on_lanes([&SET_LIFETIME_ALL, &SET_LIFETIME_MASKED], args, mask)
}

/// Calls `life[slot] = rule[life[slot]]`, under a mask or for all lanes.
pub fn refresh(life: String, slot: Tensor, mask: Option<Tensor>) -> Call {
    on_lanes([&REFRESH_LIFETIME_ALL, &REFRESH_LIFETIME_MASKED], args![life, slot], mask)
}

/// Decreases the lifetimes from `from` on by `by`, to -128 at the lowest; all lifetimes without `from`.
pub fn decay(life: String, by: Expr, from: Option<Expr>) -> Call {
    let function = if from.is_some() { &DECAY_LIFETIMES_FROM } else { &DECAY_LIFETIMES };
    let mut args = args![life, by];
    args.extend(from.map(Argument::from));
    Call::of(function, args)
}

/// Calls `to = table[life + 128] - 128`.
pub fn map([to, life, table]: [String; 3]) -> Call {
    Call::of(&MAP_LIFETIMES, args![to, life, table])
}
