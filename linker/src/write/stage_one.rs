//! Stage One of a geometry as AscendC: placed, ordered, written.

use crate::aiv::{Call, Node, Pipe, Place, Sync};
use crate::check::{Refused, check};
use crate::lower::search::{FOUND_BITS, Shape};
use crate::lower::{Lowered, camel, lower, ub};
use crate::record::record_stage_one;
use crate::sync::synchronise;
use crate::ub::{Buffer, Plan, TooLarge, plan};
use avsg_device::batched::Batched;
use avsg_device::memory::state_words;
use avsg_device::params::Params;
use avsg_device::share::PIECES;
use avsg_device::state::header;
use core::fmt::Write as _;

/// The generated part of a geometry's kernels: Stage One as AscendC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StageOneText {
    /// Addresses of scratch memory and constants, and the helpers that are used.
    pub ops: String,
    /// `Setup`: once per core.
    pub setup: String,
    /// `StageOne`: one request.
    pub body: String,
    /// Unified buffer that it uses, from 0.
    pub ub_bytes: u32,
    /// Where what lies.
    pub plan: String,
}

/// Why a geometry has no text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Failed {
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    #[error("S is {0}; a 910B compares 128 lifetimes at once: choose 128 slots or more")]
    TooSmall(u32),
}

/// Writes Stage One of a geometry.
///
/// # Errors
/// If its kernel breaks a law, or does not fit the unified buffer.
pub fn stage_one(p: &Params) -> Result<StageOneText, Failed> {
    stage_one_within(p, super::kernels::UB_BYTES - super::kernels::FRAME_BYTES)
}

/// The same in fewer bytes of unified buffer: with narrower tiles, so that tests meet several.
///
/// # Errors
/// As [`stage_one`].
pub fn stage_one_within(p: &Params, limit: u32) -> Result<StageOneText, Failed> {
    let (kernel, plan) = placed(p, limit)?;
    let body = &kernel.body;
    let mut setup = setup(&kernel, &plan);
    synchronise(&mut setup, &plan);
    let (setup, body) = (lines(&setup, 1), lines(body, 1));
    let body = format!(
        "// One request: Algorithm 1 for each of its tokens, on one table.\n\
         __aicore__ inline void StageOne(const Gm &gm, const Request &q)\n{{\n{}{body}}}\n",
        declarations(&kernel, &plan, &body)
    );
    let setup = format!(
        "// Once per core: what every request needs and none changes.\n\
         __aicore__ inline void Setup(const Gm &gm)\n{{\n{setup}}}\n"
    );
    let helpers = helpers(&[&body, &setup]);
    let constants = constants(p, &plan, &[&helpers, &setup, &body]);
    Ok(StageOneText {
        ops: format!("{constants}\n{helpers}"),
        setup,
        body,
        ub_bytes: plan.bytes,
        plan: plan.to_string(),
    })
}

/// A geometry's Stage One as calls, the table's way in and out and all synchronisation with it, and where its
/// buffers lie.
pub(crate) fn placed(p: &Params, limit: u32) -> Result<(Lowered, Plan), Failed> {
    if p.slots < 128 {
        return Err(Failed::TooSmall(p.slots));
    }
    let tape = record_stage_one(p)?;
    check(&tape)?;
    let mut kernel = lower(&tape)?;
    let plan = plan(&kernel, limit)?;
    kernel.body = [load(p), kernel.body, save(p)].concat();
    synchronise(&mut kernel.body, &plan);
    Ok((kernel, plan))
}

fn call(pipe: Pipe, text: &str, read: &[Place], written: Place) -> Node {
    Node::Call(Call::new(pipe, text.into(), read.into(), vec![written]))
}

/// The table's planes: name, words in UB, first word and words in global memory.
fn planes(p: &Params) -> [(&'static str, &'static str, usize, usize); 4] {
    let (slots, links) = (p.slots as usize, p.links() as usize);
    let life = header::WORDS + slots;
    let link = state_words(p) - links;
    [
        ("header", "header", 0, header::WORDS),
        ("id", "id", header::WORDS, slots),
        ("bytes", "bytes.ReinterpretCast<int32_t>()", life, slots / 4),
        ("link", "link", link, links),
    ]
}

/// A plane of the table in global memory: they do not overlap.
fn plane(name: &str) -> Place {
    Place::Gm(format!("tables.{name}"))
}

/// The table's way in. Lifetimes are bytes outside and halves inside, which can be compared.
fn load(p: &Params) -> Vec<Node> {
    let mut nodes = vec![Node::Note("The table, and a clear record.".into())];
    nodes.extend(planes(p).map(|(name, to, at, n)| {
        let text = if Batched::serves(p) && matches!(name, "id" | "link") {
            format!("PullInTurn({to}, gm.tables[q.tableAt + {at}], {n}, q.turn);")
        } else {
            format!("Pull({to}, gm.tables[q.tableAt + {at}], {n});")
        };
        call(Pipe::Mte2, &text, &[plane(name)], ub(name))
    }));
    nodes.push(call(Pipe::V, "Duplicate(record, 0, 16);", &[], ub("record")));
    let text = "Cast(life, bytes, RoundMode::CAST_NONE, SLOTS);";
    nodes.push(call(Pipe::V, text, &[ub("bytes")], ub("life")));
    nodes
}

/// Its way out, and the record's.
fn save(p: &Params) -> Vec<Node> {
    let mut nodes = vec![Node::Note("The record, and the table as the next step finds it.".into())];
    let text = "Push(gm.record[q.recordAt], record, 16);";
    nodes.push(call(Pipe::Mte3, text, &[ub("record")], Place::Gm("record".into())));
    let text = "Cast(bytes, life, RoundMode::CAST_RINT, SLOTS);";
    nodes.push(call(Pipe::V, text, &[ub("life")], ub("bytes")));
    nodes.extend(planes(p).map(|(name, from, at, n)| {
        let text = format!("Push(gm.tables[q.tableAt + {at}], {from}, {n});");
        call(Pipe::Mte3, &text, &[ub(name)], plane(name))
    }));
    nodes
}

fn setup(kernel: &Lowered, plan: &Plan) -> Vec<Node> {
    let text = "CreateVecIndex(Local<int32_t>(IOTA_AT, TILE), 0, TILE);";
    let mut nodes = vec![call(Pipe::V, text, &[], ub("iota"))];
    let text = "Duplicate(Local<uint16_t>(KEEP_AT, 16), static_cast<uint16_t>(0), 16);";
    nodes.push(call(Pipe::V, text, &[], ub("keep")));
    for word in &kernel.words {
        let name = format!("WORD_{word:X}");
        let text = format!("Duplicate(Local<int32_t>({name}_AT, 8), {}, 8);", word.cast_signed());
        nodes.push(call(Pipe::V, &text, &[], ub(&name)));
    }
    if plan.buffers.iter().any(|b| b.name == "rule") {
        let text = "Pull(Local<half>(RULE_AT, 256), gm.rules, 256);";
        nodes.push(call(Pipe::Mte2, text, &[Place::Gm("rules".into())], ub("rule")));
    }
    nodes
}

/// Statements, indented. An op's own text is not broken: a call is a line.
fn lines(nodes: &[Node], depth: usize) -> String {
    let indent = "    ".repeat(depth);
    let ordered = |sync: &[Sync], text: &str| -> String {
        let lines = sync.iter().map(|s| format!("{indent}{}\n", s.text()));
        lines.chain([format!("{indent}{text}\n")]).collect()
    };
    let one = |node: &Node| match node {
        Node::Note(note) => ordered(&[], &format!("// {note}")),
        Node::Call(call) => ordered(&call.sync, &call.text),
        Node::Loop(l) => {
            ordered(&l.sync, &format!("{} {{\n{}{indent}}}", l.head(), lines(&l.body, depth + 1)))
        }
    };
    nodes.iter().map(one).collect()
}

/// The tensors and lengths that a text uses.
fn declarations(kernel: &Lowered, plan: &Plan, text: &str) -> String {
    let mut out =
        String::from("    // Names of one declaration share a buffer, one after the other.\n");
    let used = |name: &str| words(text).any(|w| w == name);
    let buffers: Vec<_> = plan.buffers.iter().filter(|b| used(&camel(&b.name))).collect();
    for shared in buffers.chunk_by(|a, b| (a.at, a.element, a.len) == (b.at, b.element, b.len)) {
        let Buffer { name, element, at, len, .. } = shared[0];
        let first = camel(name);
        let mut line =
            format!("    const LocalTensor<{element}> {first} = Local<{element}>({at}, {len})");
        for b in &shared[1..] {
            let more = format!("{} = {first}", camel(&b.name));
            let full = line.len() - line.rfind('\n').unwrap_or(0) + more.len() > 116;
            line += if full { ",\n        " } else { ", " };
            line += &more;
        }
        out += &format!("{line};\n");
    }
    let lens = kernel.tape.columns.iter().map(|c| format!("{}Len", camel(&c.name)));
    let lens: Vec<_> = lens.filter(|l| used(l)).map(|l| format!("{l} = 0")).collect();
    for some in lens.chunks(6) {
        let _ = writeln!(out, "    int32_t {};", some.join(", "));
    }
    out
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
}

fn address(name: &str) -> String {
    format!("{}_AT", name.to_uppercase())
}

/// The helpers that a text uses, and those that they use.
fn helpers(texts: &[&str]) -> String {
    let (mut using, mut kept) = (texts.join("\n"), String::new());
    // From the last to the first: they use only those above them.
    let all = include_str!("ascendc/stage_one.h.in").rsplit("//@ ");
    for (name, text) in all.filter_map(|part| part.split_once('\n')) {
        let used = match name {
            "views" => true,
            "whole" => using.contains("Whole("),
            name => using.contains(&format!("{name}(")),
        };
        if used {
            using += text;
            kept.insert_str(0, &format!("{text}\n"));
        }
    }
    kept
}

fn constants(p: &Params, plan: &Plan, texts: &[&str]) -> String {
    let mut out = format!("constexpr int32_t TILE = {};  // lanes of a tile\n", plan.tile);
    let uses = |name: &str| texts.iter().any(|text| words(text).any(|w| w == name));
    let mut one = |name: &str, line: String| out += if uses(name) { &line } else { "" };
    let Plan { run, pass, .. } = plan;
    one("RUN", format!("constexpr int32_t RUN = {run};  // slots numbered at once\n"));
    one("PASS", format!("constexpr int32_t PASS = {pass};  // slots counted at once\n"));
    for b in &plan.buffers {
        let name = address(&b.name);
        one(&name, format!("constexpr uint32_t {name} = {};\n", b.at));
    }
    if uses("WIDE") {
        out += &searches(p, plan);
    }
    out
}

/// What searches over all links are told. Their five columns lie in the scratch memory, which is free between
/// sweeps.
fn searches(p: &Params, plan: &Plan) -> String {
    let shape = Shape { links: p.retries + 1, link_bits: p.link_bits(), slot_bits: p.slot_bits() };
    let (chunk, span) = plan.search(shape.links);
    let numbers = [
        ("LINKS", shape.links, "of an id"),
        ("LINK_BITS", shape.link_bits, "of a position"),
        ("SLOT_BITS", shape.slot_bits, "of a slot"),
        ("PRINT_SHIFT", shape.print_shift(), "of a print in the mixed word"),
        ("FOUND_BITS", FOUND_BITS, "of what a search finds"),
        ("CHUNK", chunk, "ids searched at once"),
        ("SPAN", span, "words of their links at most"),
        ("WIDE", plan.wide(), "lanes of a pass over a whole column"),
        ("PIECES", PIECES as u32, "of a plane on its way in"),
    ];
    let numbers = numbers.map(|(name, n, what)| {
        let ty =
            if name.ends_with("BITS") || name == "PRINT_SHIFT" { "uint32_t" } else { "int32_t" };
        format!("constexpr {ty} {name} = {n};  // {what}\n")
    });
    let words = shape.words().map(|(name, word)| {
        format!("constexpr uint32_t {name} = {};\n", address(&format!("word_{word:X}")))
    });
    numbers.concat() + &words.concat()
}
