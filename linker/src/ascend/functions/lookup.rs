//! Reads of words in global memory at computed indices.

use crate::ascend::aiv::Element::Word;
use crate::ascend::aiv::{
    Argument, Call, Expr, Global, Length, Loop, Outcome, Step, TILE, Tensor, Type, View,
};

function! {
    /// dst[i] = from[at + index[i]] where mask[i] is set and index[i] is in 0..n-1, else -1, for `lanes`
    /// lanes; 0 < lanes <= TILE. Each lane's word is copied by a DMA of its own into a block of its own.
    pub static LOOKUP = "Lookup", |f| {
        let (dst, from) = (f.words("dst"), f.global("from"));
        let [at, n] = f.numbers(["at", "n"]);
        let (index, mask, lanes) = (f.words("index"), f.mask("mask"), f.number("lanes"));
        let entries = Tensor::local("entries", "packed", Word, TILE);
        let offset = Tensor::local("offset", "lane_scratch", Word, 64);
        let blocks = Tensor::local("blocks", "entry_blocks", Word, 64 * 8);
        let floats = |t: &Tensor| t.clone().viewed_as(View::F32);
        f.duplicate(&entries, (-1).into(), lanes);
        f.shift_left(&offset, Tensor::placed("iota", Word, 64), 5, 64);
        f.select(floats(&entries), &mask, [&index, &entries].map(floats), lanes);
        let groups = Loop::over("base", lanes).step(Step::By(64.into()));
        f.repeat(Loop { always: true, ..groups }, |f, base| {
            let count = f.set("count", Expr::min(lanes - base, 64));
            f.duplicate(&blocks, (-1).into(), 64 * 8);
            f.repeat(Loop::over("i", count), |f, i| {
                let entry = f.read(("entry", Type::I32), &entries, base + i);
                f.when(entry.above(-1), |f| {
                    f.when(n.above(entry), |f| {
                        f.copy_in(blocks.of_round(i * 8), &from, at + entry, 1);
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
    let args = vec![
        to.into(),
        Argument::Global(Global::array(&from)),
        at.into(),
        n.into(),
        index.into(),
        mask.into(),
        Argument::Length(Length::Lanes),
    ];
    Call::of(&LOOKUP, args, Outcome::None)
}
