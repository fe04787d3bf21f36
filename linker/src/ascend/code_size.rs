//! Estimates how many instructions a kernel has, because a vector core's instruction cache is small.
//!
//! The estimate counts calls in the text of a kernel. Every function is `inline`, so a call of one
//! counts as its body, wherever it stands. A call of AscendC counts as the instructions that set its
//! registers and start it. No compiler that makes these instructions is public, so the weights are
//! assumptions.

use std::collections::BTreeMap;

/// Bytes of a vector core's instruction cache, of which a line has 128.
pub const INSTRUCTION_CACHE_BYTES: u32 = 16 * 1024;
/// Bytes of an instruction.
pub const INSTRUCTION_BYTES: u32 = 4;

/// Calls of AscendC, with the instructions of each. A vector instruction over a count sets the mask
/// and its mode, addresses, strides and repeats, starts, and resets the mask; Select also fills and
/// loads a block for its mask. A loop compares, steps and jumps. Other calls have no instructions.
const CALLS: [(&str, u32); 7] = [
    (
        "Add Sub Mul Max Adds Muls Maxs And Or Not ShiftLeft ShiftRight Cast Duplicate Gather Compare \
         Compares",
        14,
    ),
    ("GatherMask DataCopyPad", 18),
    ("Select", 36),
    ("InitSocState SyncAll", 6),
    ("for while", 4),
    ("if GetValue SetValue GetBlockIdx GetBlockNum GetGatherMaskRemainCount", 2),
    ("PipeBarrier SetFlag WaitFlag LocalTensor SetGlobalBuffer", 1),
];
/// The instructions of a statement, beside those of its calls.
const STATEMENT: u32 = 2;

/// Returns the instructions of the entry point `name` in `text`, with every function inlined.
pub fn instructions(text: &str, name: &str) -> u32 {
    let code = without_comments(text);
    let bodies = bodies(&code);
    let weights = CALLS.iter().flat_map(|(names, n)| names.split(' ').map(|name| (name, *n)));
    let mut known = weights.collect();
    size_of(name, &bodies, &mut known)
}

fn without_comments(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or_default().to_owned() + "\n").collect()
}

/// Returns the bodies of the functions in some code, by name. Bodies of functions with the same
/// name are together.
fn bodies(code: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut all: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (at, _) in code.match_indices("__aicore__ inline").chain(code.match_indices("__global__")) {
        let head = &code[at..];
        let (Some(open), Some(start)) = (head.find('('), head.find('{')) else { continue };
        all.entry(last_word(&head[..open])).or_default().push(block(&head[start..]));
    }
    all
}

/// Returns the identifier at the end of some code.
fn last_word(code: &str) -> &str {
    let code = code.trim_end();
    let start = code.rfind(|c: char| !is_word(c)).map_or(0, |at| at + 1);
    &code[start..]
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Returns the text from an opening brace to the brace that closes it.
fn block(code: &str) -> &str {
    let mut depth = 0;
    for (at, c) in code.char_indices() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if depth == 0 {
            return &code[..at];
        }
    }
    code
}

fn size_of<'t>(
    name: &'t str,
    bodies: &BTreeMap<&'t str, Vec<&'t str>>,
    known: &mut BTreeMap<&'t str, u32>,
) -> u32 {
    if let Some(&size) = known.get(name) {
        return size;
    }
    // A name that is no function has no instructions.
    let mut size = 0;
    for body in bodies.get(name).into_iter().flatten() {
        size += STATEMENT * body.matches(';').count() as u32;
        for called in calls(body) {
            size += size_of(called, bodies, known);
        }
    }
    known.insert(name, size);
    size
}

/// Returns the names that stand before a parenthesis or a template argument list in some code.
fn calls(code: &str) -> impl Iterator<Item = &str> {
    code.match_indices(['(', '<']).map(|(at, _)| last_word(&code[..at])).filter(|n| !n.is_empty())
}
