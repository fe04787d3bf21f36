//! Reads of words in global memory at computed indices.

use crate::ascend::aiv::Type::{F32, I32};
use crate::ascend::aiv::{Call, Expr, Global, Loop, Step, TILE, Tensor, args, lanes};

function! {
    /// dst[i] = from[at + index[i]] where mask[i] is set and index[i] is in 0..n-1, else -1, for `lanes`
    /// lanes; 0 < lanes <= TILE. Each lane's word is copied by a DMA of its own into a block of its own.
    LOOKUP = Lookup(
        dst: words, from: global, at: number, n: number, index: words, mask: mask, lanes: number
    ), |f| {
        let entries = Tensor::local("entries", "packed", I32, TILE);
        let offset = Tensor::local("offset", "lane_scratch", I32, 64);
        let blocks = Tensor::local("blocks", "entry_blocks", I32, 64 * 8);
        let floats = |t: &Tensor| t.clone().viewed_as(F32);
        f.duplicate(&entries, (-1).into(), lanes);
        f.shift_left(&offset, Tensor::placed("iota", I32, 64), 5, 64);
        f.select(floats(&entries), &mask, floats(&index), floats(&entries), lanes);
        let groups = Loop::over("base", lanes).step(Step::By(64.into()));
        f.repeat(Loop { always: true, ..groups }, |f, base| {
            let count = f.set("count", Expr::min(lanes - base, 64));
            f.duplicate(&blocks, (-1).into(), 64 * 8);
            f.repeat(Loop::over("i", count), |f, i| {
                let entry = f.read(("entry", I32), &entries, base + i);
                f.when(entry.above(-1), |f| {
                    f.when(n.above(entry), |f| {
                        let word = Global { at: Some(at + entry), ..from };
                        f.copy(false, blocks.of_round(i * 8), word, 1);
                    });
                });
            });
            f.gather(dst.at(base), &blocks, &offset, count);
        });
    }
}

/// Calls `to = from[at + index]` for the lanes under a mask whose index is in `0..n`; the others
/// get -1.
pub fn lookup(to: Tensor, from: String, [at, n]: [Expr; 2], [index, mask]: [Tensor; 2]) -> Call {
    Call::of(&LOOKUP, args![to, Global::array(&from), at, n, index, mask, lanes()])
}
