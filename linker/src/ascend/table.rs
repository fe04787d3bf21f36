//! The calls around a tape: the constants of a core, and the copies of a table in and out.

use super::functions::share::COPY_IN_STAGGERED;
use super::functions::words::WRITE_IOTA;
use crate::ascend::aiv::{
    Builder, Element, Expr, Global, Node, Rounding, SLOTS, Scalar, Tensor, Type, View, args,
};
use crate::ascend::lower::Lowered;
use crate::ascend::ub::Plan;
use avsg_device::batched::Batched;
use avsg_device::memory::state_words;
use avsg_device::params::Params;
use avsg_device::state::header;

/// The constant with the words of a request's record.
const RECORD_WORDS: Expr = Expr::Constant("RECORD_WORDS");

fn number(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

/// The names, values and comments of the constants that give the planes of a table.
pub fn constants(p: &Params) -> [(&'static str, i32, &'static str); 5] {
    let (slots, links) = (p.slots as usize, p.links() as usize);
    let life = header::WORDS + slots;
    [
        ("ID_PLANE", number(header::WORDS), "first word of the ids in a table"),
        ("LIFE_PLANE", number(life), "first word of the lifetimes, one byte each"),
        ("LIFE_PLANE_WORDS", number(slots / 4), "words of the lifetimes"),
        ("LINK_PLANE", number(state_words(p) - links), "first word of the links"),
        ("LINK_PLANE_WORDS", number(links), "words of the links"),
    ]
}

/// Returns the planes of a table: their buffers, their first words in global memory, and their
/// lengths in words.
fn planes() -> [(Tensor, Global, Expr); 4] {
    let bytes = Tensor::named("bytes").viewed_as(View::I32);
    [
        ("header", Tensor::named("header"), None, "HEADER_WORDS"),
        ("id", Tensor::named("id"), Some("ID_PLANE"), "SLOTS"),
        ("bytes", bytes, Some("LIFE_PLANE"), "LIFE_PLANE_WORDS"),
        ("link", Tensor::named("link"), Some("LINK_PLANE"), "LINK_PLANE_WORDS"),
    ]
    .map(|(plane, ub, first, words)| {
        let table = Expr::field("tableAt");
        let at = first.map_or(table.clone(), |first| table + Expr::Constant(first));
        (ub, Global { plane: Some(plane), ..Global::at("tables", at) }, Expr::Constant(words))
    })
}

/// Returns the calls that copy a table in. Lifetimes are bytes in global memory, and halfs in UB,
/// where the vector unit compares them.
pub fn load(p: &Params) -> Vec<Node> {
    let load = |f: &mut Builder| {
        f.note("Copies the table in, and clears the record.");
        for (ub, gm, n) in planes() {
            if Batched::serves(p) && matches!(gm.plane, Some("id" | "link")) {
                f.call(&COPY_IN_STAGGERED, args![ub, gm, n, Expr::field("turn")]);
            } else {
                f.copy(false, ub, gm, n);
            }
        }
        f.duplicate(Tensor::named("record"), 0.into(), RECORD_WORDS);
        f.cast(Tensor::named("life"), Tensor::named("bytes"), Rounding::Exact, SLOTS);
    };
    Builder::build(load).nodes
}

/// Returns the calls that copy the record and the table out.
pub fn save() -> Vec<Node> {
    let save = |f: &mut Builder| {
        f.note("Copies the record and the table out.");
        let record = Global::at("record", Expr::field("recordAt"));
        f.copy(true, Tensor::named("record"), record, RECORD_WORDS);
        f.cast(Tensor::named("bytes"), Tensor::named("life"), Rounding::Nearest, SLOTS);
        planes().into_iter().for_each(|(ub, gm, n)| f.copy(true, ub, gm, n));
    };
    Builder::build(save).nodes
}

/// Returns the calls that write the constants of a core, which every request reads and none
/// changes.
pub fn setup(kernel: &Lowered, plan: &Plan) -> Vec<Node> {
    let setup = |f: &mut Builder| {
        f.call(&WRITE_IOTA, []);
        let mask = Tensor::placed("mask_scratch", Element::Bits, 16);
        f.duplicate(mask, Scalar::new(0, Type::U16), 16);
        for &bits in &kernel.words {
            f.duplicate(Tensor::word(bits), bits.cast_signed().into(), 8);
        }
        if plan.buffers.iter().any(|b| b.name == "rule") {
            let rule = Tensor::placed("rule", Element::Half, 256);
            f.copy(false, rule, Global::array("rules"), 256);
        }
    };
    Builder::build(setup).nodes
}
