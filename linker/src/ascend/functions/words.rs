//! The numbers of lanes.

use crate::ascend::aiv::{Call, Expr, Loop, Step, TILE, Tensor, Type, args, lanes};

function! {
    /// Writes 0..TILE-1 to iota. The scalar unit writes the first block, and each pass doubles the number of
    /// words. (CreateVecIndex takes an event from a TPipe, which these kernels do not have.)
    WRITE_IOTA = WriteIota(), |f| {
        let iota = Tensor::local("iota", "iota", Type::I32, TILE);
        f.repeat(Loop::over("i", 8), |f, i| f.write(&iota, i, i));
        f.repeat(Loop::over("done", TILE).from(8).step(Step::Double), |f, done| {
            f.adds(iota.at(done), &iota, done, Expr::min(done, TILE - done));
        });
    }
}

function! {
    /// dst[i] = base + i for n lanes. The first TILE lanes are computed from iota, and each later pass
    /// doubles their number.
    INDICES = Indices(dst: words, base: number, n: number), |f| {
        let iota = Tensor::placed("iota", Type::I32, TILE);
        f.adds(&dst, iota, base, Expr::min(n, TILE));
        f.repeat(Loop::over("done", n).from(TILE).step(Step::Double), |f, done| {
            f.adds(dst.at(done), &dst, done, Expr::min(done, n - done));
        });
    }
}

/// Calls `to[i] = base + i` for the lanes of a tile of any width.
pub fn indices(to: Tensor, base: Expr) -> Call {
    Call::of(&INDICES, args![to, base, lanes()])
}
