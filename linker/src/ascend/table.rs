//! The calls around a tape: the constants of a core, and the copies of a table in and out.

use super::functions::words::WRITE_IOTA;
use crate::ascend::aiv::{
    Act, Builder, Call, Element, Expr, Global, If, Loop, Node, Operation, Pipe, Relation, Rounding,
    SLOTS, Scalar, Sync, Tensor, Type, View, ub,
};
use crate::ascend::lower::Lowered;
use crate::ascend::sync::Overlap;
use crate::ascend::ub::Plan;
use avsg_device::memory::{life_at, links_end};
use avsg_device::params::Params;
use avsg_device::state::header;
use std::collections::BTreeMap;

/// The constant with the words of a request's record.
const RECORD_WORDS: Expr = Expr::Constant("RECORD_WORDS");

fn number(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

/// The names, values and comments of the constants that give the planes of a table.
pub fn constants(p: &Params) -> [(&'static str, i32, &'static str); 6] {
    let (slots, links) = (p.slots as usize, p.links() as usize);
    [
        ("ID_PLANE", number(header::WORDS), "first word of the ids in a table"),
        ("LIFE_PLANE", number(life_at(p)), "first word of the lifetimes, one byte each"),
        ("LIFE_PLANE_WORDS", number(slots / 4), "words of the lifetimes"),
        ("LINK_PLANE", number(links_end(p) - links), "first word of the links"),
        ("LINK_PLANE_WORDS", number(links), "words of the links"),
        ("LEARNED_PLANE", number(links_end(p)), "first word of what lifetimes learn"),
    ]
}

/// The name of the plane with what lifetimes learn.
const LEARNED: &str = "learned";

/// Returns the plane of a table with what lifetimes learn, from a word on. It stays in global memory.
pub fn learned(at: Expr) -> Global {
    let first = Expr::field("tableAt") + Expr::Constant("LEARNED_PLANE");
    Global { plane: Some(LEARNED), ..Global::at("tables", first + at) }
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

/// The event of the copy of the header.
const HEADER_EVENT: u8 = 5;

/// Adds the copies of a table in and out to the statements of a kernel.
pub fn with_table(mut body: Vec<Node>, map: &impl Overlap) -> Vec<Node> {
    let tokens = body.iter().position(is_tokens);
    let ids = tokens.and_then(|tokens| take_ids(&mut body, tokens, map));
    [load(ids), body, save()].concat()
}

/// Returns whether a node is the branch or the loop over the tokens: it begins with the copy of an array.
fn is_tokens(node: &Node) -> bool {
    matches!(node, Node::If(_) | Node::Loop(_)) && node.bodies().any(copies_array_in)
}

fn copies_array_in(node: &Node) -> bool {
    let Some(Call { operation: Operation::Copy(copy), .. }) = node.call() else { return false };
    !copy.out && copy.gm.plane.is_none()
}

/// Takes the copy of the first token's ids out of the branch or the loop over the tokens, so that the
/// vector unit can hash them while the table is copied. It stays there if other work before it uses the
/// memory of the ids.
fn take_ids(body: &mut [Node], tokens: usize, map: &impl Overlap) -> Option<Node> {
    let (before, tokens) = body.split_at_mut(tokens);
    let (inner, round) = match &mut tokens[0] {
        Node::If(branch) => (&mut branch.body, None),
        Node::Loop(Loop { variable, body, .. }) => (body, Some(*variable)),
        Node::Call(_) | Node::Note(_) => return None,
    };
    let at = inner.iter().position(copies_array_in)?;
    let lets: BTreeMap<String, Expr> = inner[..at]
        .iter()
        .filter_map(Node::call)
        .filter_map(|call| match &call.operation {
            Operation::Let(name, value) => Some((name.clone(), value.clone())),
            _ => None,
        })
        .collect();
    let first = |name: &str| {
        if Some(name) == round { Some(0.into()) } else { lets.get(name).cloned() }
    };
    let copy_ids = inner[at].clone();
    let Node::Call(Call { operation: Operation::Copy(copy), .. }) = &copy_ids else { return None };
    let used = before.iter().chain(&inner[..at]).flat_map(Node::all).filter_map(Node::call);
    let used: Vec<Act> = used.flat_map(Call::acts).collect();
    let mut used = used.iter().flat_map(Act::uses).map(|(place, _)| place);
    let (to, bytes) = (copy.ub.place(), ub("bytes"));
    if map.overlap(&to, &bytes) || used.any(|place| map.overlap(&to, place)) {
        return None;
    }
    let mut copy = copy.clone();
    copy.n = copy.n.with(&first);
    copy.gm.at = copy.gm.at.map(|at| at.with(&first));
    let copied = Node::Call(Call::from(Operation::Copy(copy)));
    match round {
        None => {
            inner.remove(at);
        }
        // The vector unit waits here, and not for the table where it reads the ids.
        Some(round) => {
            let ready = Sync::Flag(Pipe::Mte2, Pipe::V);
            let order = Call { operation: Operation::Order, sync: vec![ready] };
            let condition = Expr::test(Relation::Above, Expr::name(round), 0);
            let body = vec![copy_ids, Node::Call(order)];
            inner[at] = Node::If(If { condition, body, otherwise: Vec::new() });
        }
    }
    let condition = Expr::test(Relation::Above, Expr::field("tokens"), 0);
    Some(Node::If(If { condition, body: vec![copied], otherwise: Vec::new() }))
}

/// Returns the calls that copy a table in, and the first token's ids. Lifetimes are bytes in global memory,
/// and halfs in UB, where the vector unit compares them. The largest planes come last: the header decides
/// whether they are used at all, and the ids and the lifetimes need work before.
fn load(ids: Option<Node>) -> Vec<Node> {
    let load = |f: &mut Builder| {
        f.note("Copies the table in, and clears the record.");
        let [header, id, bytes, link] = planes();
        for (ub, gm, n) in [header, bytes] {
            f.copy(false, ub, gm, n);
        }
        let [first, last] =
            [Sync::Set, Sync::Wait].map(|half| half(Pipe::Mte2, Pipe::S, HEADER_EVENT));
        f.order(first);
        f.append(ids);
        f.duplicate(Tensor::named("record"), 0.into(), RECORD_WORDS);
        f.cast(Tensor::named("life"), Tensor::named("bytes"), Rounding::Exact, SLOTS);
        for (ub, gm, n) in [link, id] {
            f.copy(false, ub, gm, n);
        }
        f.order(last);
    };
    Builder::build(load).nodes
}

/// Returns the calls that copy the record and the table out.
fn save() -> Vec<Node> {
    let save = |f: &mut Builder| {
        f.note("Copies the record and the table out.");
        f.cast(Tensor::named("bytes"), Tensor::named("life"), Rounding::Nearest, SLOTS);
        let [header, id, bytes, link] = planes();
        for (ub, gm, n) in [link, header, id, bytes] {
            f.copy(true, ub, gm, n);
        }
        let record = Global::at("record", Expr::field("recordAt"));
        f.copy(true, Tensor::named("record"), record, RECORD_WORDS);
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
