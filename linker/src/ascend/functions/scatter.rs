//! Writes at computed indices. The scalar unit makes them lane by lane, because a 910B has no
//! scatter.

use crate::ascend::aiv::Element::Word;
use crate::ascend::aiv::{Argument, Call, Expr, Length, Loop, Outcome, TILE, Tensor, Type, args};

function! {
    /// column[index[i] - first] = value[i] for n lanes, in ascending order. The scalar unit writes, because
    /// a 910B has no scatter. One 64-bit access reads the words of two lanes.
    pub static SCATTER_ALL = "ScatterAll", |f| {
        let [column, index, value] = f.tensors(Word, ["column", "index", "value"]);
        let [first, n] = f.numbers(["first", "n"]);
        f.repeat(Loop::over("i", n / 2), |f, i| {
            let to = f.read(("to", Type::U64), &index, i);
            let words = f.read(("words", Type::U64), &value, i);
            for lane in 0..2 {
                f.write(&column, to.lane(lane) - first, words.lane(lane));
            }
        });
        f.when(n.is_multiple_of(2).opposite(), |f| {
            let to = f.read(("to", Type::I32), &index, n - 1);
            let word = f.read(("word", Type::I32), &value, n - 1);
            f.write(&column, to - first, word);
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
        f.call(&SCATTER_ALL, args![column, at, words, Expr::from(0), kept]);
    }
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
    Call::of(&SCATTER_ALL, with_lanes(args), Outcome::None)
}

/// Adds the number of lanes to the arguments.
fn with_lanes(mut args: Vec<Argument>) -> Vec<Argument> {
    args.push(Argument::Length(Length::Lanes));
    args
}
