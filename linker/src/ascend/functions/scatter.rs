//! Writes at computed indices. The scalar unit makes them lane by lane, because a 910B has no
//! scatter.

use crate::ascend::aiv::Type::{I32, U64};
use crate::ascend::aiv::{Call, Expr, Loop, TILE, Tensor, args, lanes};

function! {
    /// column[index[i] - first] = value[i] for n lanes, in ascending order. The scalar unit writes, because
    /// a 910B has no scatter. One 64-bit access reads the words of two lanes.
    SCATTER_ALL = ScatterAll(column: words, index: words, value: words, first: number, n: number), |f| {
        f.repeat(Loop::over("i", n / 2), |f, i| {
            let to = f.read(("to", U64), &index, i);
            let words = f.read(("words", U64), &value, i);
            for lane in 0..2 {
                f.write(&column, to.lane(lane) - first, words.lane(lane));
            }
        });
        f.when(n.is_multiple_of(2).opposite(), |f| {
            let to = f.read(("to", I32), &index, n - 1);
            let word = f.read(("word", I32), &value, n - 1);
            f.write(&column, to - first, word);
        });
    }
}

function! {
    /// column[index[i]] = value[i] for the lanes under a mask, in ascending order; lanes <= TILE.
    SCATTER_MASKED = ScatterMasked(
        column: words, index: words, value: words, mask: mask, lanes: number
    ), |f| {
        let at = Tensor::local("at", "packed", I32, TILE);
        let words = Tensor::local("words", "lane_scratch", I32, TILE);
        f.compact(&at, &index, &mask, lanes);
        f.compact(&words, &value, &mask, lanes);
        let kept = f.kept();
        f.call(&SCATTER_ALL, args![column, at, words, Expr::from(0), kept]);
    }
}

/// Calls `column[index] = value`, under a mask or for all lanes.
pub fn scatter(column: String, index: Tensor, value: Tensor, mask: Option<Tensor>) -> Call {
    let Some(mask) = mask else { return from_first(column, index, 0.into(), value) };
    Call::of(&SCATTER_MASKED, args![column, index, value, mask, lanes()])
}

/// Calls `column[index - first] = value` for all lanes.
pub fn from_first(column: String, index: Tensor, first: Expr, value: Tensor) -> Call {
    Call::of(&SCATTER_ALL, args![column, index, value, first, lanes()])
}
