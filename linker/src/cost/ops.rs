//! How much work an op of the tape is once it is AscendC.

use super::{Unit, Work};
use crate::tape::{Code, Op};

/// How lifetimes are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// A column of their own, halfs in UB: 128 to a repeat, compared as they are.
    Narrow,
    /// The top byte of the 32-bit words that the links are: no comparison but EQ, so a count takes a
    /// subtraction, a sign shift and a compare; a write must read the word first.
    Packed,
}

/// Slots that one pass over the lifetimes takes.
const PASS: usize = 2048;

/// One execution of an op: on so many lanes, so many of them under its mask.
pub fn work(op: &Op, lanes: usize, active: usize, life: Life) -> Work {
    let vector = |ops| Work::vector(ops, lanes);
    let gathers = |n| Work::gathers(n, lanes);
    let sync = Work::of(Unit::Syncs, 1.0);
    let each = |accesses: usize| Work::of(Unit::Scalars, (accesses * active) as f64) + sync + sync;
    // A write of a lifetime: the slot read, the byte written; packed, the word read in between.
    let write = each(if life == Life::Packed { 3 } else { 2 });
    let passes = lanes.div_ceil(PASS);
    let over = |halfs: usize, words: usize, once: usize| match life {
        Life::Narrow => Work::vector(halfs, lanes / 2) + Work::vector(once * passes, 1),
        Life::Packed => Work::vector(words, lanes) + Work::vector(once * passes, 1),
    };
    let counted = sync * passes as f64;
    // One DMA; what it brings is waited for, what it takes is not.
    let dma = |words: usize, waits: f64| {
        Work::of(Unit::Dmas, 1.0)
            + Work::of(Unit::Bytes, 4.0 * words as f64)
            + Work::of(Unit::Waits, waits)
            + sync
    };
    match op.code {
        Code::Neg => vector(2),
        Code::MaskAnd | Code::MaskOr | Code::MaskNot => Work::vector(1, lanes.div_ceil(32)),
        Code::Gather => vector(1) + gathers(1),
        // Offsets, and from half or byte to word.
        Code::LifeAt => vector(2) + gathers(1),
        // Index and value compacted; each pair read at once, one write.
        Code::Scatter => vector(2) + each(2),
        Code::SetLife(_) => vector(1) + write,
        // The next lifetime is looked up in the rule before both are compacted.
        Code::StepLife(_) => vector(6) + gathers(2) + write,
        // A counter: only the count of a GatherMask.
        Code::Append if op.args.len() == 2 => vector(1) + sync,
        // Per column: GatherMask behind what does not fill a block yet, and both copied out.
        Code::Append => (vector(3) + Work::vector(1, 8)) * (op.args.len() - 2) as f64 + sync,
        Code::Take => vector(2),
        Code::Age { settle } => over(2 + 3 * usize::from(settle), 2 + 3 * usize::from(settle), 0),
        Code::CountLe => over(2, 4, 1) + counted,
        Code::AppendLt | Code::AppendEq => over(3, 5, 2) + counted,
        Code::Get | Code::Peek | Code::Put | Code::Sweep => Work::of(Unit::Scalars, 1.0),
        Code::Fetch => dma(lanes, 1.0),
        Code::Publish | Code::PublishList(_) => dma(lanes, 0.0),
        Code::Lookup => {
            let lane = dma(1, 0.0) + Work::of(Unit::Scalars, 2.0);
            vector(2) + lane * active as f64 + Work::of(Unit::Waits, 1.0)
        }
        _ if op.code.on_lanes() && !matches!(op.code, Code::Load | Code::Item(_)) => {
            vector(usize::from(!matches!(op.code, Code::Splat(_))))
        }
        _ => Work::default(),
    }
}
