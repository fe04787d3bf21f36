//! The calls around a tape: the constants of a core, and the copies of a table in and out.

use super::functions::share;
use super::functions::words::write_iota;
use crate::ascend::aiv::{
    Call, Copy, Element, Expr, Global, Length, Node, Operation, Rounding, Scalar, Tensor, Type,
    Vector, VectorOp, View,
};
use crate::ascend::lower::Lowered;
use crate::ascend::ub::Plan;
use avsg_device::batched::Batched;
use avsg_device::memory::state_words;
use avsg_device::params::Params;
use avsg_device::state::header;

fn copy(out: bool, ub: Tensor, gm: Global, n: Expr) -> Node {
    Node::Call(Call::from(Operation::Copy(Copy { out, ub, gm, n })))
}

fn vector(op: VectorOp, to: Tensor, from: Vec<Tensor>, scalar: Option<Scalar>, n: Expr) -> Node {
    let over = Length::Of(n);
    Node::Call(Call::from(Operation::Vector(Vector { op, to, from, scalar, over })))
}

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
    let mut nodes = vec![Node::Note("Copies the table in, and clears the record.".into())];
    nodes.extend(planes().map(|(ub, gm, n)| {
        if Batched::serves(p) && matches!(gm.plane, Some("id" | "link")) {
            Node::Call(share::copy_in_staggered(ub, gm, n, Expr::field("turn")))
        } else {
            copy(false, ub, gm, n)
        }
    }));
    let (record, zero) = (Tensor::named("record"), Some(Scalar::new(0, Type::I32)));
    nodes.push(vector(VectorOp::Duplicate, record, vec![], zero, Expr::Constant("RECORD_WORDS")));
    nodes.push(cast("life", "bytes", Rounding::Exact));
    nodes
}

/// Returns the calls that copy the record and the table out.
pub fn save() -> Vec<Node> {
    let mut nodes = vec![Node::Note("Copies the record and the table out.".into())];
    let record = Global::at("record", Expr::field("recordAt"));
    nodes.push(copy(true, Tensor::named("record"), record, Expr::Constant("RECORD_WORDS")));
    nodes.push(cast("bytes", "life", Rounding::Nearest));
    nodes.extend(planes().map(|(ub, gm, n)| copy(true, ub, gm, n)));
    nodes
}

fn cast(to: &str, from: &str, how: Rounding) -> Node {
    let (to, from) = (Tensor::named(to), vec![Tensor::named(from)]);
    vector(VectorOp::Cast(how), to, from, None, Expr::Constant("SLOTS"))
}

/// Returns the calls that write the constants of a core, which every request reads and none
/// changes.
pub fn setup(kernel: &Lowered, plan: &Plan) -> Vec<Node> {
    let mut nodes = vec![Node::Call(write_iota())];
    let mask = Tensor::placed("mask_scratch", Element::Bits, 16);
    let zero = Some(Scalar::new(0, Type::U16));
    nodes.push(vector(VectorOp::Duplicate, mask, vec![], zero, 16.into()));
    for &bits in &kernel.words {
        let block = Tensor::word(bits);
        let value = Some(Scalar::new(bits.cast_signed(), Type::I32));
        nodes.push(vector(VectorOp::Duplicate, block, vec![], value, 8.into()));
    }
    if plan.buffers.iter().any(|b| b.name == "rule") {
        let rule = Tensor::placed("rule", Element::Half, 256);
        nodes.push(copy(false, rule, Global::array("rules"), 256.into()));
    }
    nodes
}
