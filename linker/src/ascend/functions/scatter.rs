//! Writes at computed indices. The scalar unit makes them lane by lane, because a 910B has no
//! scatter.

use crate::ascend::aiv::Element::{Short, Word};
use crate::ascend::aiv::{
    Argument, Buffer, Call, Expr, Length, Loop, Operation, Outcome, Rounding, TILE, Tensor, Type,
    Var, View, args,
};

/// Returns the first word behind n words that starts a block.
fn behind(n: Var) -> Expr {
    (n + 7) / 8 * 8
}

/// Returns the condition that a buffer of `room` words has room for n words and for n 16-bit words behind
/// them.
fn has_room(n: Var, room: Var) -> Expr {
    room.above(n + n / 2 + 15)
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
    /// lanes that PackIndices has written with the same room. Without room there are none.
    pub static SCATTER_ALL = "ScatterAll", |f| {
        let [column, index, value] = f.tensors(Word, ["column", "index", "value"]);
        let [first, n, room] = f.numbers(["first", "n", "room"]);
        let done = f.variable("done", 0);
        f.choose(
            has_room(n, room),
            |f| {
                f.repeat(Loop::over("i", n / 4), |f, i| {
                    let to = f.read(("to", Type::U64), &index, behind(n) / 2 + i);
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
    /// column[index[i]] = value[i] for the lanes under a mask, in ascending order; lanes <= TILE.
    pub static SCATTER_MASKED = "ScatterMasked", |f| {
        let [column, index, value] = f.tensors(Word, ["column", "index", "value"]);
        let (mask, lanes) = (f.mask("mask"), f.number("lanes"));
        let at = Tensor::local("at", "packed", Word, TILE);
        let words = Tensor::local("words", "lane_scratch", Word, TILE);
        f.compact(&at, &index, &mask, lanes);
        f.compact(&words, &value, &mask, lanes);
        let kept = f.kept();
        f.call(&SCATTER_ALL, args![column, at, words, Expr::from(0), kept, Expr::from(0)]);
    }
}

/// Adds the number of lanes to the arguments.
fn with_lanes(mut tensors: Vec<Argument>) -> Vec<Argument> {
    tensors.push(Argument::Length(Length::Lanes));
    tensors
}

/// Calls `column[index] = value`, under a mask or for all lanes.
pub fn scatter(column: String, index: Tensor, value: Tensor, mask: Option<Tensor>) -> Call {
    let Some(mask) = mask else { return from_first(column, index, 0.into(), value) };
    let args = vec![Tensor::named(column).into(), index.into(), value.into(), mask.into()];
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
    let (n, room) = (Argument::from(n.clone()), Argument::from(Expr::from(room(name)?)));
    let pack = vec![index.clone().into(), n.clone(), room.clone()];
    let args = vec![column.clone().into(), index.into(), value.into(), first.clone(), n, room];
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
