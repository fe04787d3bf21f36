//! The calls around a tape: the constants of a core, and the copies of a table in and out.

use super::functions::words::WRITE_IOTA;
use crate::ascend::aiv::{
    Builder, Expr, Global, Node, Operation, Pipe, SLOTS, Scalar, Set, Sync, Tensor, Type, args, ub,
};
use crate::ascend::lower::Lowered;
use crate::ascend::sync::Overlap;
use crate::ascend::ub::Plan;
use avsg_device::memory::{life_at, links_end};
use avsg_device::params::Params;
use avsg_device::state::header;

/// The constant with the words of a request's summary.
const SUMMARY_WORDS: Expr = Expr::Constant("SUMMARY_WORDS");

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

/// Returns the plane of a table with what lifetimes learn, from a word on. It stays in global memory.
pub fn learned(at: Expr) -> Global {
    let first = Expr::field("tableAt") + Expr::Constant("LEARNED_PLANE");
    Global { plane: Some("learned"), ..Global::at("tables", first + at) }
}

/// Returns the planes of a table: their buffers, their first words in global memory, and their
/// lengths in words.
fn planes() -> [(Tensor, Global, Expr); 4] {
    let bytes = Tensor::named("bytes").viewed_as(Type::I32);
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

/// Adds the copies of a table in and out to the statements of a kernel. Arrays that the kernel copies in first
/// come before the table.
pub fn with_table(mut body: Vec<Node>, map: &impl Overlap) -> Vec<Node> {
    let rest = body.split_off(body.iter().take_while(|node| copies_arrays_in(node, map)).count());
    [body, load(), rest, save()].concat()
}

/// Returns whether a node copies arrays in and does nothing else, to memory that no lifetimes come to.
fn copies_arrays_in(node: &Node, map: &impl Overlap) -> bool {
    let calls = || node.all().filter_map(Node::call);
    calls().any(|call| matches!(call.operation, Operation::Copy { .. }))
        && calls().all(|call| match &call.operation {
            Operation::Copy { out, ub: to, .. } => !out && !map.overlap(&to.place(), &ub("bytes")),
            operation => matches!(operation, Operation::Set(Set::Let, ..)),
        })
}

/// Returns the calls that copy a table in. Lifetimes are bytes in global memory,
/// and halfs in UB, where the vector unit compares them. The largest planes come last: the header decides
/// whether they are used at all, and the ids and the lifetimes need work before.
fn load() -> Vec<Node> {
    let load = |f: &mut Builder| {
        f.note("Copies the table in, and clears the summary.");
        let [header, id, bytes, link] = planes();
        for (ub, gm, n) in [header, bytes] {
            f.copy(false, ub, gm, n);
        }
        let [first, last] =
            [Sync::Set, Sync::Wait].map(|half| half(Pipe::Mte2, Pipe::S, HEADER_EVENT));
        f.order(first);
        f.duplicate(Tensor::named("summary"), 0.into(), SUMMARY_WORDS);
        f.cast_exactly(Tensor::named("life"), Tensor::named("bytes"), SLOTS);
        for (ub, gm, n) in [link, id] {
            f.copy(false, ub, gm, n);
        }
        f.order(last);
    };
    Builder::build(load).nodes
}

/// Returns the calls that copy the summary and the table out.
fn save() -> Vec<Node> {
    let save = |f: &mut Builder| {
        f.note("Copies the summary and the table out.");
        f.cast_to_nearest(Tensor::named("bytes"), Tensor::named("life"), SLOTS);
        let [header, id, bytes, link] = planes();
        for (ub, gm, n) in [link, header, id, bytes] {
            f.copy(true, ub, gm, n);
        }
        let summary = Global::at("summary", Expr::field("summaryAt"));
        f.copy(true, Tensor::named("summary"), summary, SUMMARY_WORDS);
    };
    Builder::build(save).nodes
}

/// Returns the calls that write the constants of a core, which every request reads and none
/// changes.
pub fn setup(kernel: &Lowered, plan: &Plan) -> Vec<Node> {
    let setup = |f: &mut Builder| {
        f.call(&WRITE_IOTA, args![]);
        let mask = Tensor::placed("mask_scratch", Type::U16, 16);
        f.duplicate(mask, Scalar::new(0, Type::U16), 16);
        for &bits in &kernel.words {
            f.duplicate(Tensor::word(bits), bits.cast_signed().into(), 8);
        }
        if plan.buffers.iter().any(|b| b.name == "rule") {
            let rule = Tensor::placed("rule", Type::F16, 256);
            f.copy(false, rule, Global::array("rules"), 256);
        }
    };
    Builder::build(setup).nodes
}
