//! The functions in a kernel's text, and the statements of each.

use std::ops::Range;

/// The qualifier of a function that its callers call. It is a macro of `avsg_kernel.h`.
pub const CALLED: &str = "AVSG_NOINLINE";

/// The beginnings of functions that the compiler copies into their callers, or that the host launches.
const COPIED: [&str; 2] = ["__aicore__ inline", "__global__ __aicore__"];

/// A function of a text.
#[derive(Debug)]
pub struct Function<'t> {
    pub name: &'t str,
    /// Whether callers call it, instead of having a copy each.
    pub called: bool,
    pub statements: Vec<Statement<'t>>,
    /// Whether its body is on one line.
    pub short: bool,
}

/// A statement, or the head of a loop or branch, with the text up to the next one.
#[derive(Debug)]
pub struct Statement<'t> {
    /// Its first and last line, from 0 on.
    pub lines: Range<usize>,
    pub text: &'t str,
}

/// Returns a text with its lines, but without comments, directives, and the statements of the shim that
/// mark phases.
pub fn code(text: &str) -> String {
    let of_line = |line: &str| {
        let code = line.split("//").next().unwrap_or_default().trim_end();
        let start = code.trim_start();
        let none = start.starts_with('#') || start.starts_with("shim::");
        if none { String::from("\n") } else { format!("{code}\n") }
    };
    text.lines().map(of_line).collect()
}

/// Returns the functions of [`code`], in text order.
pub fn functions(code: &str) -> Vec<Function<'_>> {
    let heads = COPIED
        .iter()
        .chain([&CALLED])
        .flat_map(|mark| code.match_indices(mark).map(move |(at, _)| (at, *mark == CALLED)));
    let mut heads: Vec<_> = heads.collect();
    heads.sort_unstable();
    let function = |(at, called): (usize, bool)| {
        let head = &code[at..];
        let name = last_word(&head[..head.find('(')?]);
        // A declaration has no body.
        let open = at + head.find(['{', ';']).filter(|&end| head[end..].starts_with('{'))?;
        let body = open + 1..open + block(&code[open..]).len();
        let short = !code[body.clone()].contains('\n');
        Some(Function { name, called, statements: statements(code, body), short })
    };
    heads.into_iter().filter_map(function).collect()
}

/// Returns the statements of a body. A line that begins behind the end of a statement or a brace begins
/// another one.
fn statements(code: &str, body: Range<usize>) -> Vec<Statement<'_>> {
    let mut number = code[..body.start].matches('\n').count();
    let (mut all, mut start, mut at, mut ended) =
        (Vec::<Statement<'_>>::new(), 0, body.start, true);
    for line in code[body.clone()].split('\n') {
        let words = line.trim();
        let begins = ended && !words.is_empty() && !words.starts_with(['}', ')']);
        if begins || all.is_empty() {
            all.push(Statement { lines: number..number + 1, text: "" });
            start = at;
        }
        if let Some(last) = all.last_mut() {
            *last = Statement {
                lines: last.lines.start..number + 1,
                text: &code[start..at + line.len()],
            };
        }
        if !words.is_empty() {
            ended = words.ends_with([';', '{', '}']);
        }
        number += 1;
        at += line.len() + 1;
    }
    all
}

/// Returns the identifier at the end of some code.
pub fn last_word(code: &str) -> &str {
    let code = code.trim_end();
    let other = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    &code[code.rfind(other).map_or(0, |at| at + 1)..]
}

/// Returns the text from an opening bracket up to the one that closes it.
pub fn block(code: &str) -> &str {
    let mut depth = 0;
    let end = code.char_indices().find(|(_, c)| {
        depth += i32::from(matches!(c, '{' | '(')) - i32::from(matches!(c, '}' | ')'));
        depth == 0
    });
    &code[..end.map_or(code.len(), |(at, _)| at)]
}

/// Returns the number of arguments of a call, whose list begins the text.
pub fn arguments(list: &str) -> u32 {
    let inside = block(list).get(1..).unwrap_or_default();
    let mut depth = 0;
    let commas = inside.chars().filter(|c| {
        depth += i32::from(matches!(c, '(' | '{' | '[')) - i32::from(matches!(c, ')' | '}' | ']'));
        *c == ',' && depth == 0
    });
    commas.count() as u32 + u32::from(!inside.trim().is_empty())
}
