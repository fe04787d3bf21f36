//! Reads of words in global memory at computed indices.

use super::basic::call;
use crate::ascend::aiv::{
    Act, Argument, BARRIER, Call, Expr, FROM_S, Function, FunctionCall, Global, Length, Outcome,
    Pipe, SELECT_SCRATCH, Sync, TO_S, Tensor, Use, s, ub, v,
};
use crate::ascend::cost::setting::{Load, dma, scalars};
use crate::ascend::cost::{Unit, Work};

/// Reads one word per lane, each by a DMA of its own.
pub static LOOKUP: Function = Function {
    name: "Lookup",
    text: include_str!("lookup.h.in"),
    uses: &[
        Use::Buffer("packed"),
        Use::Buffer("lane_scratch"),
        Use::Buffer("entry_blocks"),
        Use::Buffer("iota"),
    ],
    acts,
    in_place: false,
};

/// Calls `to = from[at + index]` for the lanes under a mask whose index is in `0..n`; the others
/// get -1.
pub fn lookup(to: Tensor, from: String, [at, n]: [Expr; 2], [index, mask]: [Tensor; 2]) -> Call {
    let args = vec![
        to.into(),
        Argument::Global(Global::array(from)),
        at.into(),
        n.into(),
        index.into(),
        mask.into(),
        Argument::Length(Length::Lanes),
    ];
    call(&LOOKUP, args, Outcome::None)
}

fn acts(call: &FunctionCall) -> Vec<Act> {
    let [to, gm, index, mask] = [0, 1, 4, 5].map(|n| call.place(n));
    let [entries, offset, blocks] = ["packed", "lane_scratch", "entry_blocks"].map(ub);
    let read = Act::Use { pipe: Pipe::Mte2, reads: vec![gm], writes: vec![blocks.clone()] };
    let mut acts = vec![v(&[], &[&entries]), v(&[&ub("iota")], &[&offset])];
    acts.extend([BARRIER, v(&[&index, &mask, &entries], &[&entries, &ub(SELECT_SCRATCH)])]);
    for _ in 0..2 {
        acts.extend([BARRIER, v(&[], &[&blocks])]);
        acts.extend([TO_S, s(&[&entries], &[]), read.clone()]);
        acts.push(Act::Sync(Sync::Flag(Pipe::Mte2, Pipe::V)));
        acts.push(v(&[&blocks, &offset], &[&to]));
    }
    acts.push(FROM_S);
    acts
}

/// Returns the work that depends on the number of lanes under the mask.
pub fn work(load: &Load) -> Work {
    let wait = Work::of(Unit::Waits, load.lanes.div_ceil(64) as f64);
    scalars(load.lanes as f64) + dma(1, 0.0) * load.active as f64 + wait
}
