//! Appends to lists: the lanes of a vector under a mask.

use crate::ascend::aiv::Type::{I32, U16};
use crate::ascend::aiv::{Call, Expr, Function, Scalar, Set, TILE, Tensor, args, lanes};

function! {
    /// Returns the number of set bits among the first `lanes` of a mask; lanes <= TILE.
    COUNT = Count(mask: mask, lanes: number), |f| {
        let iota = Tensor::placed("iota", I32, TILE);
        f.compact(Tensor::placed("packed", I32, TILE), &iota, &mask, lanes);
        let kept = f.kept();
        f.give(kept);
    }
}

function! {
    /// packed = the words of the list's last, partly filled block, then the lanes of value under a mask.
    /// The words and their own bits lie one repeat before the lanes; lanes <= TILE. The columns of a list
    /// are appended in order under one mask: the first one extends the mask by those bits, and the next
    /// columns reuse it.
    COMPACT_AFTER_TAIL = CompactAfterTail(
        packed: words, list: words, len: number, value: words, mask: mask, lanes: number, first: condition
    ), |f| {
        let joined = Tensor::local("joined", "lane_scratch", I32, TILE + 256);
        let bits = Tensor::local("joinedMask", "mask_scratch", U16, TILE / 16 + 16);
        f.when(first.expr(), |f| {
            let ones = Expr::power_of_two(len % 8) - 1;
            f.duplicate(&bits, Scalar::new(ones, U16), 1);
            f.or(bits.at(16), &mask, &mask, TILE / 16);
        });
        f.adds(&joined, list.at(len / 8 * 8), 0, 8);
        f.adds(joined.at(256), &value, 0, lanes);
        f.compact(&packed, &joined, &bits, lanes + 256);
    }
}

function! {
    /// Appends the lanes of value under a mask to one column of a list of len words, and returns their
    /// number for the last column. GatherMask writes from the start of a block, so the words of a partly
    /// filled last block are compacted again with the lanes. lanes <= TILE unless len is a multiple of 8.
    APPEND = Append(
        list: words, len: number, value: words, mask: mask, lanes: number, first: condition, last: condition
    ), |f| {
        let packed = Tensor::local("packed", "packed", I32, TILE + 256);
        f.choose(
            len.is_multiple_of(8),
            |f| f.compact(list.at(len), &value, &mask, lanes),
            |f| {
                f.call(&COMPACT_AFTER_TAIL, args![packed, list, len, value, mask, lanes, first]);
                let kept = f.kept();
                f.adds(list.at(len / 8 * 8), &packed, 0, kept);
            },
        );
        f.when(last.expr(), |f| {
            let kept = f.kept();
            f.give(kept - len % 8);
        });
        f.give(0);
    }
}

function! {
    /// Appends as Append does, where value lies in the same memory as the list and not before its end;
    /// lanes <= TILE.
    APPEND_IN_PLACE = AppendInPlace(
        list: words, len: number, value: words, mask: mask, lanes: number, first: condition, last: condition
    ), |f| {
        let _ = last;
        let packed = Tensor::local("packed", "packed", I32, TILE + 256);
        f.choose(
            len.is_multiple_of(8),
            |f| f.compact(&packed, &value, &mask, lanes),
            |f| f.call(&COMPACT_AFTER_TAIL, args![packed, list, len, value, mask, lanes, first]),
        );
        let kept = f.kept();
        f.adds(list.at(len / 8 * 8), &packed, 0, kept);
        f.give(kept - len % 8);
    }
}

/// Adds the number of lanes under a mask to the length of a list that has no columns.
pub fn count(len: String, mask: Tensor) -> Call {
    Call::of(&COUNT, args![mask, lanes()]).sets_to(Set::Increase, len)
}

/// Appends the lanes of `value` under `mask` to a column of a list whose length is the variable
/// `len`, with [`APPEND`] or [`APPEND_IN_PLACE`]. `first` is set for the first column of the list,
/// and `last` for the last one, whose call increases `len`.
pub fn append(
    function: &'static Function,
    (column, len): (String, String),
    [value, mask]: [Tensor; 2],
    first: bool,
    last: bool,
) -> Call {
    let args = args![column, Expr::name(&len), value, mask, lanes(), first, last];
    let call = Call::of(function, args);
    if last { call.sets_to(Set::Increase, len) } else { call }
}
