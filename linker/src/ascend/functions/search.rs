//! Searches that examine all links of several ids at once.
//!
//! They are translations of `avsg_device::machine::search`: the tests compare what they find on the
//! shim with what these definitions find on a CPU.

use super::mix::{SUM_OF_PRODUCTS, WORDS, multipliers};
use crate::ascend::aiv::Type::{I32, U8};
use crate::ascend::aiv::{Call, Comparison, Expr, Loop, Scalar, Step, Tensor, args};
use avsg_device::machine::links::{Links, bits_below};

/// Bits of the result of a search. The priority of the link is stored above them.
const RESULT_BITS: u32 = 20;

const LINKS: Expr = Expr::Constant("LINKS");
const LINK_BITS: Expr = Expr::Constant("LINK_BITS");
const SEARCH_IDS: Expr = Expr::Constant("SEARCH_IDS");
const SEARCH_WORDS: Expr = Expr::Constant("SEARCH_WORDS");

/// Returns a column of a search: words of scratch memory.
fn column(called: &'static str, name: &'static str) -> Tensor {
    Tensor::local(called, name, I32, SEARCH_WORDS)
}

/// Returns the mask of a search: one bit for each of its links.
fn link_mask() -> Tensor {
    Tensor::local("found", "link_mask", U8, SEARCH_WORDS / 8)
}

/// Returns the block that repeats a word of the geometry.
fn word(name: &'static str) -> Tensor {
    Tensor::placed(name, I32, 8)
}

/// Returns what is added to the result of a search at link n of a probe sequence, so that the largest
/// sum is that of the first link and 0 means that there is none.
fn link_priority(n: impl Into<Expr>) -> Expr {
    (LINKS - 1 - n) * (1 << RESULT_BITS) + 1
}

/// Rounds a number of lanes up to whole repeats of a compare.
fn whole_repeats(lanes: Expr) -> Expr {
    (lanes + 127) / 128 * 128
}

function! {
    /// Gathers the LINKS links of each of `count` probe sequences into search column 1: link n of
    /// sequence i goes to lane n * lanes + i. `lanes` is count rounded up to 8; the lanes above count
    /// read link 0. Columns 0 and 2 are overwritten.
    GATHER_LINKS = GatherLinks(sequence: words, link: words, count: number, lanes: number), |f| {
        let (at, stride) = (column("at", "search0"), column("stride", "search2"));
        let position = word("position_word");
        f.duplicate(&at, 0.into(), lanes);
        f.duplicate(&stride, 0.into(), lanes);
        f.adds(&at, &sequence, 0, count);
        f.shift_right(&stride, &sequence, LINK_BITS, count);
        f.and_word(&at, &at, &position, lanes);
        f.repeat(Loop::over("n", LINKS).from(1), |f, n| {
            f.add(at.at(n * lanes), at.at((n - 1) * lanes), &stride, lanes);
        });
        f.and_word(&at, &at, &position, LINKS * lanes);
        f.shift_left(&at, &at, 2, LINKS * lanes);
        f.gather(column("links", "search1"), &link, &at, LINKS * lanes);
    }
}

function! {
    /// dst[i] = the result of sequence i at its first link under the mask of the search, or -1 if there is
    /// none, for `count` sequences. `result` has LINKS * lanes words, ordered as GatherLinks orders links,
    /// each with its priority; it is overwritten.
    SELECT_FIRST_LINK = SelectFirstLink(dst: words, result: words, count: number, lanes: number), |f| {
        f.select_or_zero(&result, &link_mask(), &result, LINKS * lanes);
        let n = f.variable("n", LINKS);
        f.repeat(Loop::over("half", LINKS).only(n.above(1)), |f, _| {
            f.max(&result, &result, result.at((n - n / 2) * lanes), n / 2 * lanes);
            f.assign(n, n - n / 2);
        });
        f.and_word(&result, &result, word("result_word"), count);
        f.adds(&dst, &result, -1, count);
    }
}

function! {
    /// slot[i] = the slot that contains sought[i], or -1 if no link of its probe sequence names such a
    /// slot, for n ids. `sequence` holds each id's first link and stride; `link` and `id` are the
    /// table's planes.
    FIND = Find(slot: words, sequence: words, sought: words, n: number, link: words, id: words), |f| {
        let (offset, held) = (column("offset", "search0"), column("held", "search2"));
        let link_slot = column("linkSlot", "search1");
        f.repeat(Loop::over("base", n).step(Step::By(SEARCH_IDS)), |f, base| {
            let count = f.set("count", Expr::min(n - base, SEARCH_IDS));
            let lanes = f.set("lanes", (count + 7) / 8 * 8);
            let all = f.set("all", LINKS * lanes);
            f.call(&GATHER_LINKS, args![sequence.at(base), link, count, lanes]);
            f.and_word(&link_slot, &link_slot, word("slot_word"), all);
            f.shift_left(&offset, &link_slot, 2, all);
            f.gather(&held, &id, &offset, all);
            f.repeat(Loop::over("nth", LINKS), |f, nth| {
                let [held, link_slot] = [&held, &link_slot].map(|t| t.of_round(nth * lanes));
                f.sub(&held, &held, sought.at(base), lanes);
                f.adds(&link_slot, &link_slot, link_priority(nth), lanes);
            });
            let equal = (Comparison::Equal, 0.into());
            f.compares(link_mask(), &held, equal, whole_repeats(all.expr()));
            f.call(&SELECT_FIRST_LINK, args![slot.at(base), link_slot, count, lanes]);
        });
    }
}

function! {
    /// at[i] = the position of the first link of probe sequence i whose fingerprint differs from the
    /// fingerprint of the id in its slot, or -1 if there is none, for n sequences. Such a link may be
    /// overwritten; a link that was never written has the fingerprint of no id. `link` and `id` are the
    /// table's planes, and p and q the multipliers that hash an id.
    FIND_FREE = FindFree(
        at: words, sequence: words, n: number, link: words, id: words, p: number, q: number
    ), |f| {
        let (mixed, held) = (column("mixed", "search0"), column("held", "search2"));
        let print = column("fingerprint", "search1");
        let position = word("position_word");
        f.repeat(Loop::over("base", n).step(Step::By(SEARCH_IDS)), |f, base| {
            let count = f.set("count", Expr::min(n - base, SEARCH_IDS));
            let lanes = f.set("lanes", (count + 7) / 8 * 8);
            let all = f.set("all", LINKS * lanes);
            let repeats = f.set("repeats", whole_repeats(all.expr()));
            f.call(&GATHER_LINKS, args![sequence.at(base), link, count, lanes]);
            f.and_word(&mixed, &print, word("slot_word"), all);
            f.shift_left(&mixed, &mixed, 2, all);
            f.shift_right(&print, &print, Expr::Constant("SLOT_BITS"), all);
            f.gather(&held, &id, &mixed, all);
            f.and_word(&mixed, &held, Tensor::word(WORDS[0]), all);
            f.shift_right(&held, &held, 16, all);
            f.call(&SUM_OF_PRODUCTS, args![mixed, held, Expr::from(32), p, q, all]);
            f.shift_right(&mixed, &mixed, Expr::Constant("FINGERPRINT_SHIFT"), all);
            f.and_word(&mixed, &mixed, word("fingerprint_word"), all);
            f.compare_equal(link_mask(), &print, &mixed, repeats);
            f.not(link_mask(), link_mask(), repeats / 16);
            f.note("The number of the first such link in its sequence.");
            f.repeat(Loop::over("nth", LINKS), |f, nth| {
                let number = Scalar::from(link_priority(nth) + nth);
                f.duplicate(print.of_round(nth * lanes), number, lanes);
            });
            f.call(&SELECT_FIRST_LINK, args![print, print, count, lanes]);
            f.note("The position of that link: first position + number * stride, modulo the links.");
            f.shift_right(&held, sequence.at(base), LINK_BITS, count);
            f.adds(&mixed, sequence.at(base), 0, count);
            f.mul(&held, &held, &print, count);
            f.and_word(&mixed, &mixed, &position, count);
            f.add(&held, &held, &mixed, count);
            f.sign(&print, &print, count);
            f.and_word(&held, &held, &position, count);
            f.or(at.at(base), &held, &print, Expr::from(2) * count);
        });
    }
}

/// Returns the words that searches use, with the names of their blocks.
pub fn words(links: &Links) -> [(&'static str, u32); 4] {
    let low = |bits: u32| (1 << bits) - 1;
    [
        ("position_word", low(links.position_bits)),
        ("slot_word", low(bits_below(links.slots))),
        ("fingerprint_word", low(links.fingerprint_bits)),
        ("result_word", low(RESULT_BITS)),
    ]
}

/// Calls [`FIND`] for `n` ids with the columns slot, sequence, id sought, link and id.
pub fn find(columns: [String; 5], n: Expr, links: &Links) -> Call {
    let [slot, sequence, sought, link, id] = columns;
    let call = Call::of(&FIND, args![slot, sequence, sought, n, link, id]);
    call.reading(words(links).map(|(_, word)| word))
}

/// Calls [`FIND_FREE`] for `n` probe sequences with the columns position, sequence, link and id.
pub fn find_free([at, sequence, link, id]: [String; 4], n: Expr, links: &Links) -> Call {
    let [p, q] = multipliers(links.multipliers.into());
    let call = Call::of(&FIND_FREE, args![at, sequence, n, link, id, p, q]);
    call.reading(words(links).map(|(_, word)| word))
}
