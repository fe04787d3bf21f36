//! The numbers of lanes.

use crate::ascend::aiv::Element::Word;
use crate::ascend::aiv::{Argument, Call, Expr, Length, Loop, Outcome, Step, TILE, Tensor};

function! {
    /// Writes 0..TILE-1 to iota. The scalar unit writes the first block, and each pass doubles the number of
    /// words. (CreateVecIndex takes an event from a TPipe, which these kernels do not have.)
    pub static WRITE_IOTA = "WriteIota", |f| {
        let iota = Tensor::local("iota", "iota", Word, TILE);
        f.repeat(Loop::over("i", 8), |f, i| f.write(&iota, i, i));
        f.repeat(Loop::over("done", TILE).from(8).step(Step::Double), |f, done| {
            f.adds(iota.at(done), &iota, done, Expr::min(done, TILE - done));
        });
    }
}

function! {
    /// dst[i] = base + i for n lanes. The first TILE lanes are computed from iota, and each later pass
    /// doubles their number.
    pub static INDICES = "Indices", |f| {
        let dst = f.words("dst");
        let [base, n] = f.numbers(["base", "n"]);
        let iota = Tensor::placed("iota", Word, TILE);
        f.adds(&dst, iota, base, Expr::min(n, TILE));
        f.repeat(Loop::over("done", n).from(TILE).step(Step::Double), |f, done| {
            f.adds(dst.at(done), &dst, done, Expr::min(done, n - done));
        });
    }
}

/// Calls `to[i] = base + i` for the lanes of a tile of any width.
pub fn indices(to: Tensor, base: Expr) -> Call {
    let args = vec![to.into(), base.into(), Argument::Length(Length::Lanes)];
    Call::of(&INDICES, args, Outcome::None)
}
