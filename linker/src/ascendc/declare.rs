//! What a kernel's text declares before it begins: constants, helpers, tensors, lengths.

use super::helpers::search::{FOUND_BITS, Shape};
use super::helpers::{basic, with_used};
use super::print::address;
use crate::aiv::{Buffer, Call, Expr, Helper, Loop, Node, Use, Width, word};
use crate::lower::{Lowered, camel};
use crate::ub::{self, Plan};
use avsg_device::params::Params;
use avsg_device::share::PLANE_PIECES;
use std::collections::BTreeSet;
use std::fmt::Write as _;

fn calls(nodes: &[Node]) -> impl Iterator<Item = &Call> {
    nodes.iter().flat_map(Node::all).filter_map(Node::call)
}

/// The helpers that these statements use, and those that they use.
pub fn helpers(nodes: &[Node]) -> Vec<&'static Helper> {
    let mut wanted = vec![&basic::VIEWS];
    wanted.extend(calls(nodes).filter_map(Call::helper).map(|call| call.helper));
    for e in nodes.iter().flat_map(Node::all).flat_map(Node::expressions) {
        e.each(&mut |e| {
            if matches!(e, Expr::Max(..)) {
                wanted.push(&basic::SCALAR_MAX);
            }
        });
    }
    with_used(&wanted)
}

/// The tensors and lengths that a body uses.
pub fn tensors(kernel: &Lowered, plan: &Plan, nodes: &[Node]) -> String {
    let mut out =
        String::from("    // Names of one declaration share a buffer, one after the other.\n");
    let used = names(nodes);
    let buffers: Vec<_> = plan.buffers.iter().filter(|b| used.contains(&*b.name)).collect();
    for shared in buffers.chunk_by(|a, b| (a.at, a.element, a.len) == (b.at, b.element, b.len)) {
        let ub::Buffer { name, element, at, len, .. } = shared[0];
        let mut line =
            format!("    const LocalTensor<{element}> {name} = Local<{element}>({at}, {len})");
        for b in &shared[1..] {
            let more = format!("{} = {name}", b.name);
            let full = line.len() - line.rfind('\n').unwrap_or(0) + more.len() > 116;
            line += if full { ",\n        " } else { ", " };
            line += &more;
        }
        out += &format!("{line};\n");
    }
    let lens = kernel.tape.columns.iter().map(|c| format!("{}Len", camel(&c.name)));
    let lens: Vec<_> = lens.filter(|l| used.contains(&**l)).map(|l| format!("{l} = 0")).collect();
    for some in lens.chunks(6) {
        let _ = writeln!(out, "    int32_t {};", some.join(", "));
    }
    out
}

/// The names of tensors and variables in some statements.
fn names(nodes: &[Node]) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for e in nodes.iter().flat_map(Node::all).flat_map(Node::expressions) {
        e.each(&mut |e| {
            if let Expr::Name(name) | Expr::Word(name, _) = e {
                names.insert(&**name);
            }
        });
    }
    for call in calls(nodes) {
        names.extend(call.sets());
        names.extend(call.line());
        names.extend(call.tensors().into_iter().filter_map(|t| match &t.buffer {
            Buffer::Named(name) => Some(&**name),
            _ => None,
        }));
    }
    names
}

/// The buffers whose addresses are in the text.
fn addresses(nodes: &[Node], helpers: &[&'static Helper]) -> BTreeSet<String> {
    let uses = helpers.iter().flat_map(|helper| helper.uses);
    let mut all: BTreeSet<String> = uses
        .filter_map(|used| if let Use::Buffer(name) = used { Some((*name).into()) } else { None })
        .collect();
    for call in calls(nodes) {
        all.extend(call.words().into_iter().map(word));
        all.extend(call.tensors().into_iter().filter_map(|t| match &t.buffer {
            Buffer::Placed { name, .. } => Some(name.clone()),
            _ => None,
        }));
    }
    all
}

/// The constants that these statements and helpers use.
pub fn constants(p: &Params, plan: &Plan, nodes: &[Node], helpers: &[&'static Helper]) -> String {
    let mut out = format!("constexpr int32_t TILE = {};  // lanes of a tile\n", plan.tile);
    let wide =
        |node: &Node| matches!(node, Node::Loop(Loop { width: Some(Width::Wide { .. }), .. }));
    if nodes.iter().flat_map(Node::all).any(wide) {
        let _ = writeln!(
            out,
            "constexpr int32_t WIDE = {};  // lanes of a sweep with few registers",
            plan.wide
        );
    }
    let uses = |wanted: fn(&Use) -> bool| helpers.iter().flat_map(|h| h.uses).any(wanted);
    let Plan { run, pass, .. } = plan;
    if uses(|used| matches!(used, Use::Run)) {
        let _ = writeln!(out, "constexpr int32_t RUN = {run};  // slots numbered at once");
    }
    if uses(|used| matches!(used, Use::Pass)) {
        let _ = writeln!(out, "constexpr int32_t PASS = {pass};  // slots counted at once");
    }
    let addresses = addresses(nodes, helpers);
    for b in plan.buffers.iter().filter(|b| addresses.contains(&b.name)) {
        let _ = writeln!(out, "constexpr uint32_t {} = {};", address(&b.name), b.at);
    }
    if uses(|used| matches!(used, Use::Searches)) {
        out += &searches(p, plan);
    }
    out
}

/// What searches over all links are told. Their five columns lie in the scratch memory, which is free between
/// sweeps.
fn searches(p: &Params, plan: &Plan) -> String {
    let shape = Shape { links: p.retries + 1, link_bits: p.link_bits(), slot_bits: p.slot_bits() };
    let (signed, unsigned) = ("int32_t", "uint32_t");
    let numbers = [
        (signed, "LINKS", shape.links, "of an id"),
        (unsigned, "LINK_BITS", shape.link_bits, "of a position"),
        (unsigned, "SLOT_BITS", shape.slot_bits, "of a slot"),
        (unsigned, "FINGERPRINT_SHIFT", shape.fingerprint_shift(), "of a print in the mixed word"),
        (unsigned, "FOUND_BITS", FOUND_BITS, "of what a search finds"),
        (signed, "CHUNK", plan.chunk(shape.links), "ids searched at once"),
        (signed, "SPAN", plan.span(), "words of their links at most"),
        (signed, "PLANE_PIECES", PLANE_PIECES as u32, "of a plane on its way in"),
    ];
    let numbers =
        numbers.map(|(ty, name, n, what)| format!("constexpr {ty} {name} = {n};  // {what}\n"));
    let words = shape
        .words()
        .map(|(name, bits)| format!("constexpr uint32_t {name} = {};\n", address(&word(bits))));
    numbers.concat() + &words.concat()
}
