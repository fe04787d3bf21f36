//! Writes at computed indices. The scalar unit makes them lane by lane, because a 910B has no
//! scatter.

use crate::ascend::aiv::Element::{Short, Word};
use crate::ascend::aiv::{
    Argument, Buffer, Call, Expr, Length, Loop, Operation, Outcome, Relation, Rounding, TILE,
    Tensor, Type, View, args,
};

/// Returns the first word behind n words that starts a block.
fn behind(n: impl Into<Expr>) -> Expr {
    (n.into() + 7) / 8 * 8
}

/// Returns the condition that a buffer of `room` words has room for n words and for n 16-bit words behind
/// them.
fn has_room(n: impl Into<Expr>, room: impl Into<Expr>) -> Expr {
    let n = n.into();
    Expr::test(Relation::Above, room, n.clone() + n / 2 + 15)
}

/// Returns the first of the 16-bit words that PackIndices writes, in words, or 0 if it has no room.
fn packed(n: impl Into<Expr>, room: impl Into<Expr>) -> Expr {
    let n = n.into();
    has_room(n.clone(), room) * behind(n)
}

function! {
    /// Writes n indices, which are below 2^15, behind them as 16-bit words, if there is room for them in
    /// the `room` words of their buffer.
    pub static PACK_INDICES = "PackIndices", |f| {
        let index = f.words("index");
        let [n, room] = f.numbers(["n", "room"]);
        f.when(has_room(n, room), |f| {
            f.cast(index.at(behind(n)).viewed_as(View::I16), &index, Rounding::Exact, n);
        });
    }
}

function! {
    /// column[index[i] - first] = value[i] for n lanes, in ascending order. The scalar unit writes, because
    /// a 910B has no scatter. One 64-bit access reads the words of two lanes, or the 16-bit indices of four
    /// lanes that PackIndices has written from the word `packed` on, if that is not 0.
    pub static SCATTER_ALL = "ScatterAll", |f| {
        let [column, index, value] = f.tensors(Word, ["column", "index", "value"]);
        let [first, n, packed] = f.numbers(["first", "n", "packed"]);
        let done = f.variable("done", 0);
        f.choose(
            packed.above(0),
            |f| {
                f.repeat(Loop::over("i", n / 4), |f, i| {
                    let to = f.read(("to", Type::U64), &index, packed / 2 + i);
                    for (pair, words) in [(0, "firstWords"), (1, "lastWords")] {
                        let words = f.read((words, Type::U64), &value, i * 2 + pair);
                        for (lane, n) in [(2 * pair, 0), (2 * pair + 1, 1)] {
                            let at = to.lane(16, lane.cast_unsigned()) - first;
                            f.write(&column, at, words.lane(32, n));
                        }
                    }
                });
                f.assign(done, n / 4 * 4);
            },
            |f| {
                f.repeat(Loop::over("i", n / 2), |f, i| {
                    let to = f.read(("to", Type::U64), &index, i);
                    let words = f.read(("words", Type::U64), &value, i);
                    for lane in 0..2 {
                        f.write(&column, to.lane(32, lane) - first, words.lane(32, lane));
                    }
                });
                f.assign(done, n / 2 * 2);
            },
        );
        f.repeat(Loop::over("i", n).from(done), |f, i| {
            let to = f.read(("to", Type::I32), &index, i);
            let word = f.read(("word", Type::I32), &value, i);
            f.write(&column, to - first, word);
        });
    }
}

function! {
    /// column[index[i]] = value[i] and other[place[i]] = index[i] for n lanes, in ascending order; n <=
    /// TILE. Indices and places are cast to 16 bits, so that one 64-bit access reads those of four
    /// lanes.
    pub static SCATTER_BOTH = "ScatterBoth", |f| {
        let [column, index, value] = f.tensors(Word, ["column", "index", "value"]);
        let [other, place] = f.tensors(Word, ["other", "place"]);
        let n = f.number("n");
        let indices = Tensor::local("indices", "packed", Short, TILE);
        let places = Tensor::local("places", "lane_scratch", Short, TILE);
        f.cast(&indices, &index, Rounding::Exact, n);
        f.cast(&places, &place, Rounding::Exact, n);
        f.repeat(Loop::over("i", n / 4), |f, i| {
            let at = f.read(("at", Type::U64), &indices, i);
            let to = f.read(("to", Type::U64), &places, i);
            for (pair, words) in [(0, "firstWords"), (1, "lastWords")] {
                let words = f.read((words, Type::U64), &value, i * 2 + pair);
                for (lane, n) in [(2 * pair, 0), (2 * pair + 1, 1)] {
                    let lane = lane.cast_unsigned();
                    f.write(&column, at.lane(16, lane), words.lane(32, n));
                    f.write(&other, to.lane(16, lane), at.lane(16, lane));
                }
            }
        });
        f.repeat(Loop::over("i", n).from(n / 4 * 4), |f, i| {
            let at = f.read(("at", Type::I32), &index, i);
            let to = f.read(("to", Type::I32), &place, i);
            let word = f.read(("word", Type::I32), &value, i);
            f.write(&column, at, word);
            f.write(&other, to, at);
        });
    }
}

function! {
    /// column[index[i]] = value[i] for the lanes under a mask, in ascending order; lanes <= TILE. `room` is
    /// 0 if indices may be 2^15 or above, and else that of a buffer of packed lanes.
    pub static SCATTER_MASKED = "ScatterMasked", |f| {
        let [column, index, value] = f.tensors(Word, ["column", "index", "value"]);
        let (mask, room, lanes) = (f.mask("mask"), f.number("room"), f.number("lanes"));
        let at = Tensor::local("at", "packed", Word, TILE + 256);
        let words = Tensor::local("words", "lane_scratch", Word, TILE);
        f.compact(&at, &index, &mask, lanes);
        f.compact(&words, &value, &mask, lanes);
        f.call(&PACK_INDICES, args![at, lanes, room]);
        let kept = f.kept();
        f.call(&SCATTER_ALL, args![column, at, words, Expr::from(0), kept, packed(lanes, room)]);
    }
}

/// Adds the number of lanes to the arguments.
fn with_lanes(mut tensors: Vec<Argument>) -> Vec<Argument> {
    tensors.push(Argument::Length(Length::Lanes));
    tensors
}

/// Calls `column[index] = value`, under a mask or for all lanes.
/// `short` tells whether all indices are below 2^15.
pub fn scatter(
    column: String,
    index: Tensor,
    value: Tensor,
    mask: Option<Tensor>,
    short: bool,
) -> Call {
    let Some(mask) = mask else { return from_first(column, index, 0.into(), value) };
    let room = if short { TILE + 256 } else { 0.into() };
    let mut args = vec![Tensor::named(column).into(), index.into(), value.into()];
    args.extend([mask.into(), Argument::from(room)]);
    Call::of(&SCATTER_MASKED, with_lanes(args), Outcome::None)
}

/// Calls `column[index - first] = value` for all lanes.
pub fn from_first(column: String, index: Tensor, first: Expr, value: Tensor) -> Call {
    let args = vec![Tensor::named(column).into(), index.into(), value.into(), first.into()];
    let mut call = Call::of(&SCATTER_ALL, with_lanes(args), Outcome::None);
    if let Operation::Function(call) = &mut call.operation {
        call.args.push(Expr::from(0).into());
    }
    call
}

/// Returns the calls that do what a sweep over n entries does whose body is `call`, if that is a scatter
/// of whole columns: the one that packs its indices, and the scatter. `room` returns the words of a
/// buffer.
pub fn whole(call: &Call, n: &Expr, room: impl Fn(&str) -> Option<i32>) -> Option<[Call; 2]> {
    let function = call.function().filter(|call| *call.function == SCATTER_ALL)?;
    let [Argument::Tensor(column), Argument::Tensor(index), Argument::Tensor(value), first, ..] =
        &function.args[..]
    else {
        return None;
    };
    let [index, value] = [Tensor::named(index.column()?), Tensor::named(value.column()?)];
    let Buffer::Named(name) = &index.buffer else { return None };
    let room = room(name)?;
    let pack = vec![index.clone().into(), n.clone().into(), Expr::from(room).into()];
    let mut args = vec![column.clone().into(), index.into(), value.into(), first.clone()];
    args.extend([n.clone().into(), Argument::from(packed(n.clone(), room))]);
    Some([
        Call::of(&PACK_INDICES, pack, Outcome::None),
        Call::of(&SCATTER_ALL, args, Outcome::None),
    ])
}

/// Joins `column[index] = value` with the scatter `before`, if that one's indices are the values
/// here: one loop does both.
pub fn both(before: &Call, column: &str, index: &Tensor, value: &Tensor) -> Option<Call> {
    let before = before.function().filter(|call| *call.function == SCATTER_ALL)?;
    if before.args[1] != Argument::from(value.clone()) {
        return None;
    }
    let mut args = before.args[..3].to_vec();
    args.extend([Tensor::named(column).into(), index.clone().into()]);
    Some(Call::of(&SCATTER_BOTH, with_lanes(args), Outcome::None))
}
