//! What surrounds a tape: a core's constants, and a table's way in and out.

use super::helpers::share;
use crate::aiv::{
    Call, Copy, Element, Expr, Global, Length, Node, Operation, Rounding, Scalar, Tensor, Type,
    Vector, VectorOp, View, word,
};
use crate::lower::Lowered;
use crate::ub::Plan;
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

/// The table's planes: their buffers, where they begin in global memory, and their words.
fn planes(p: &Params) -> [(Tensor, Global, Expr); 4] {
    let (slots, links) = (p.slots as usize, p.links() as usize);
    let life = header::WORDS + slots;
    let link = state_words(p) - links;
    [
        ("header", Tensor::named("header"), 0, Expr::Constant("HEADER_WORDS")),
        ("id", Tensor::named("id"), header::WORDS, Expr::Constant("SLOTS")),
        ("bytes", Tensor::named("bytes").viewed_as(View::I32), life, number(slots / 4).into()),
        ("link", Tensor::named("link"), link, number(links).into()),
    ]
    .map(|(plane, ub, at, n)| {
        let table = Expr::field("tableAt");
        let at = if at == 0 { table } else { table + number(at).into() };
        (ub, Global { plane: Some(plane), ..Global::at("tables", at) }, n)
    })
}

/// The table's way in. Lifetimes are bytes outside and halves inside, which can be compared.
pub fn load(p: &Params) -> Vec<Node> {
    let mut nodes = vec![Node::Note("The table, and a clear record.".into())];
    nodes.extend(planes(p).map(|(ub, gm, n)| {
        if Batched::serves(p) && matches!(gm.plane, Some("id" | "link")) {
            Node::Call(share::copy_in_turn(ub, gm, n, Expr::field("turn")))
        } else {
            copy(false, ub, gm, n)
        }
    }));
    let (record, zero) = (Tensor::named("record"), Some(Scalar::new(0, Type::I32)));
    nodes.push(vector(VectorOp::Duplicate, record, vec![], zero, Expr::Constant("RECORD_WORDS")));
    nodes.push(cast("life", "bytes", Rounding::Exact));
    nodes
}

/// Its way out, and the record's.
pub fn save(p: &Params) -> Vec<Node> {
    let mut nodes = vec![Node::Note("The record, and the table as the next step finds it.".into())];
    let record = Global::at("record", Expr::field("recordAt"));
    nodes.push(copy(true, Tensor::named("record"), record, Expr::Constant("RECORD_WORDS")));
    nodes.push(cast("bytes", "life", Rounding::Nearest));
    nodes.extend(planes(p).map(|(ub, gm, n)| copy(true, ub, gm, n)));
    nodes
}

fn cast(to: &str, from: &str, how: Rounding) -> Node {
    let (to, from) = (Tensor::named(to), vec![Tensor::named(from)]);
    vector(VectorOp::Cast(how), to, from, None, Expr::Constant("SLOTS"))
}

/// Once per core: what every request needs and none changes.
pub fn setup(kernel: &Lowered, plan: &Plan) -> Vec<Node> {
    let tile = Expr::Constant("TILE");
    let iota = Tensor::placed("iota", Element::Word, tile.clone());
    let zero = |ty| Some(Scalar::new(0, ty));
    let mut nodes = vec![vector(VectorOp::CreateVecIndex, iota, vec![], zero(Type::I32), tile)];
    let keep = Tensor::placed("keep", Element::Bits, 16.into());
    nodes.push(vector(VectorOp::Duplicate, keep, vec![], zero(Type::U16), 16.into()));
    for &bits in &kernel.words {
        let block = Tensor::placed(&word(bits), Element::Word, 8.into());
        let value = Some(Scalar::new(bits.cast_signed(), Type::I32));
        nodes.push(vector(VectorOp::Duplicate, block, vec![], value, 8.into()));
    }
    if plan.buffers.iter().any(|b| b.name == "rule") {
        let rule = Tensor::placed("rule", Element::Half, 256.into());
        nodes.push(copy(false, rule, Global::array("rules"), 256.into()));
    }
    nodes
}
