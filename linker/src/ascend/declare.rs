//! The declarations of a kernel: constants, functions, tensors, and lengths of lists.

use super::functions::{mix, search};
use super::print::address;
use super::table;
use crate::ascend::aiv::{Buffer, Call, Function, Node, Use, names_read, uses, word};
use crate::ascend::lower::Lowered;
use crate::ascend::names::camel;
use crate::ascend::ub::{self, Plan};
use avsg_device::hash;
use avsg_device::params::Params;
use std::collections::BTreeSet;
use std::fmt::Write as _;

fn calls(nodes: &[Node]) -> impl Iterator<Item = &Call> {
    nodes.iter().flat_map(Node::all).filter_map(Node::call)
}

/// Returns the number of statements that call a function, of some nodes and of the bodies of functions.
pub fn calls_of(function: &Function, nodes: &[Node], functions: &[&'static Function]) -> usize {
    let bodies = functions.iter().map(|function| &*function.definition.nodes);
    let calls = bodies.chain([nodes]).flat_map(calls).filter_map(Call::function);
    calls.filter(|call| call.function == function).count()
}

/// Returns the declarations of the tensors and lengths that a body uses.
pub fn tensors(kernel: &Lowered, plan: &Plan, nodes: &[Node]) -> String {
    let mut out = String::from(
        "    // The tensors of one declaration share a buffer, each at another time.\n",
    );
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

/// Returns the names of the tensors and variables in some statements.
fn names(nodes: &[Node]) -> BTreeSet<&str> {
    let mut names = names_read(nodes);
    for call in calls(nodes) {
        names.extend(call.sets());
        names.extend(call.tensors().into_iter().filter_map(|t| match &t.buffer {
            Buffer::Named(name) => Some(&**name),
            _ => None,
        }));
    }
    names
}

/// Returns the constants that these statements use, and the functions that they call.
pub fn constants(p: &Params, plan: &Plan, nodes: &[Node]) -> String {
    let (mut named, mut addresses) = (BTreeSet::new(), BTreeSet::new());
    for used in uses(nodes) {
        match used {
            Use::Constant(name) => named.extend([name]),
            Use::Buffer(name) => addresses.extend([name.into()]),
            Use::Word(bits) => addresses.extend([word(bits)]),
            Use::Function(_) => {}
        }
    }
    let number = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
    let sizes = [
        ("TILE", number(plan.tile), "lanes of a tile"),
        ("WIDE", number(plan.wide), "lanes of a tile in sweeps that need few registers"),
        ("SLOT_TILE", number(plan.slot_tile), "slots per iteration of AppendSlots"),
        ("LIFE_TILE", number(plan.life_tile), "slots per iteration over lifetimes"),
        ("MAP_TILE", number(plan.map_tile), "slots per iteration of MapLifetimes"),
        (
            "MAP_ENTRIES",
            number(plan.map_entries()),
            "halfs that CANN's check of its Gather demands",
        ),
        (
            "RULE_ENTRIES",
            number(plan.rule()),
            "and of those of refreshes, of which 256 are the rule",
        ),
    ];
    let mut out = String::new();
    for (name, value, comment) in sizes.iter().chain(&table::constants(p)).chain(&mix::CONSTANTS) {
        if named.contains(name) {
            let _ = writeln!(out, "constexpr int32_t {name} = {value};  // {comment}");
        }
    }
    out += "// Byte addresses in UB. The block at WORD_x_AT holds the word x (hexadecimal) eight times.\n";
    for b in plan.buffers.iter().filter(|b| addresses.contains(&b.name)) {
        let _ = writeln!(out, "constexpr uint32_t {} = {};", address(&b.name), b.at);
    }
    out += &search_constants(p, plan, &named, &addresses);
    out
}

/// Returns those constants of searches over all links that are named. Their columns are in the scratch
/// memory, which no sweep uses at the same time.
fn search_constants(
    p: &Params,
    plan: &Plan,
    named: &BTreeSet<&'static str>,
    addresses: &BTreeSet<String>,
) -> String {
    let links = hash::links(p);
    let (signed, unsigned) = ("int32_t", "uint32_t");
    let numbers = [
        (signed, "LINKS", links.retries + 1, "links of a probe sequence"),
        (unsigned, "LINK_BITS", links.position_bits, "bits of the position of a link"),
        (unsigned, "SLOT_BITS", p.slot_bits(), "bits of a slot"),
        (unsigned, "FINGERPRINT_SHIFT", links.fingerprint_shift, "number of that bit"),
        (signed, "SEARCH_IDS", plan.search_ids(links.retries + 1), "ids per iteration of a search"),
        (signed, "SEARCH_WORDS", plan.search_words, "words of a column of a search"),
    ];
    let numbers = numbers
        .into_iter()
        .filter(|(_, name, ..)| named.contains(name))
        .map(|(ty, name, n, comment)| format!("constexpr {ty} {name} = {n};  // {comment}\n"));
    let words = search::words(&links)
        .into_iter()
        .filter(|(name, _)| addresses.contains(*name))
        .map(|(name, bits)| {
            format!("constexpr uint32_t {} = {};\n", address(name), address(&word(bits)))
        });
    numbers.chain(words).collect()
}
