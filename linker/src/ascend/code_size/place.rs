//! Gives each statement of a kernel an address: first the functions that are called, in the order of the
//! text, and then the kernel. A function of which the kernel has one copy lies behind the statement that it
//! is copied to. A function of which it has several is a part of each such statement.

use std::ops::Range;

use super::functions::{Function, Statement};
use super::{ARGUMENT, CALL, Code, ENTRY, INSTRUCTION_BYTES, Names, Started};

/// How often a piece of code runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Once per launch, or once per piece of Stage Two.
    Launch,
    /// Once per request of Stage One.
    Request,
    /// Once per token of Stage One.
    Token,
}

/// A statement at its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its lines in the text, from 0 on.
    pub lines: Range<usize>,
    /// Its address, from the start of the code.
    pub from: u32,
    /// Its bytes, without those of a function that lies behind it.
    pub bytes: u32,
    /// Whether it is the head of a loop, which runs once per round.
    pub repeats: bool,
    /// Whether it is the first statement of a function that is called.
    pub enters: bool,
}

/// A function that is called, or the kernel, with what is copied to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routine {
    /// Its name in the text.
    pub name: String,
    /// The places in the text that call it.
    pub calls: u32,
    /// Its bytes in each [`Part`].
    pub bytes: [u32; 3],
}

/// The function of Stage One, and the heads of its loop over tokens and of a branch for its only token.
const STAGE_ONE: &str = "StageOne";
const TOKENS: [&str; 2] = ["for (int32_t token = 0;", "if (q.tokens > 0)"];

/// Returns where the functions that the kernel `entry` uses lie.
pub(super) fn place(functions: &[Function<'_>], entry: &str) -> Code {
    let names = Names::of(functions);
    let Some(&kernel) = names.functions.get(entry).and_then(|all| all.last()) else {
        return Code::default();
    };
    let started = functions.iter().map(|f| f.statements.iter().map(|s| names.started(s.text)));
    let started = started.map(Iterator::collect).collect();
    let (uses, parts) = (vec![0; functions.len()], vec![Part::Launch; functions.len()]);
    let mut placer =
        Placer { functions, names: &names, started, uses, parts, at: 0, code: Code::default() };
    placer.count(kernel);
    placer.run(kernel, Part::Launch);
    let called = (0..functions.len()).filter(|&f| functions[f].called && placer.uses[f] > 0);
    for f in called.chain([kernel]).collect::<Vec<_>>() {
        let calls = if f == kernel { 0 } else { placer.uses[f] };
        let name = functions[f].name.to_owned();
        placer.code.routines.push(Routine { name, calls, bytes: [0; 3] });
        placer.routine(f, placer.parts[f]);
    }
    placer.code
}

struct Placer<'a, 't> {
    functions: &'a [Function<'t>],
    names: &'a Names<'t>,
    /// What each statement of each function starts.
    started: Vec<Vec<Started<'t>>>,
    /// The places that call a function, or the copies of it.
    uses: Vec<u32>,
    /// The part that a called function belongs to, of several the one that runs most often.
    parts: Vec<Part>,
    at: u32,
    code: Code,
}

impl Placer<'_, '_> {
    /// Returns the functions that a statement calls.
    fn called(&self, f: usize, s: usize) -> Vec<(usize, u32)> {
        let calls = self.started[f][s].calls.iter();
        calls.flat_map(|(name, n)| self.names.functions[name].iter().map(|f| (*f, *n))).collect()
    }

    /// Returns the part of a statement of a function that is in `part`.
    fn part(&self, f: usize, statement: &Statement<'_>, part: Part) -> Part {
        let Function { name, statements, .. } = &self.functions[f];
        if *name != STAGE_ONE {
            return part;
        }
        let indent = |s: &Statement<'_>| s.text.len() - s.text.trim_start().len();
        let contains = |head: &Statement<'_>| {
            let mut behind = statements.iter().filter(|s| s.lines.start > head.lines.start);
            let end = behind.find(|s| indent(s) <= indent(head)).map(|s| s.lines.start);
            let at = statement.lines.start;
            at >= head.lines.start && end.is_none_or(|end| at < end)
        };
        let begins =
            |s: &&Statement<'_>| TOKENS.iter().any(|head| s.text.trim_start().starts_with(head));
        let per_token = statements.iter().filter(begins).any(contains);
        if per_token { Part::Token } else { Part::Request }
    }

    /// Counts the uses of a function and of those below it. A function that is called uses them once.
    fn count(&mut self, f: usize) {
        self.uses[f] += 1;
        if self.functions[f].called && self.uses[f] > 1 {
            return;
        }
        for s in 0..self.functions[f].statements.len() {
            self.called(f, s).into_iter().for_each(|(callee, _)| self.count(callee));
        }
    }

    /// Notes that a function runs in a part.
    fn run(&mut self, f: usize, part: Part) {
        self.parts[f] = self.parts[f].max(part);
        for (s, statement) in self.functions[f].statements.iter().enumerate() {
            let part = self.part(f, statement, part);
            self.called(f, s).into_iter().for_each(|(callee, _)| self.run(callee, part));
        }
    }

    /// Returns the instructions of a function with all that is copied to it.
    fn copied(&self, f: usize) -> u32 {
        (0..self.functions[f].statements.len()).map(|s| self.instructions(f, s, true)).sum()
    }

    /// Returns the instructions of a statement, with the copies in it. Those of which there is one are
    /// counted only if `single` is set.
    fn instructions(&self, f: usize, s: usize, single: bool) -> u32 {
        let of_call = |(callee, arguments): (usize, u32)| match &self.functions[callee] {
            Function { called: true, .. } => CALL + ARGUMENT * arguments,
            _ if single || !self.is_placed(callee) => self.copied(callee),
            _ => 0,
        };
        self.started[f][s].own + self.called(f, s).into_iter().map(of_call).sum::<u32>()
    }

    /// Returns whether a function that is copied has an address of its own.
    fn is_placed(&self, f: usize) -> bool {
        self.uses[f] == 1 && !self.functions[f].short && !self.functions[f].called
    }

    fn routine(&mut self, f: usize, part: Part) {
        for (s, statement) in self.functions[f].statements.iter().enumerate() {
            let enters = self.functions[f].called && s == 0;
            let instructions = self.instructions(f, s, false) + if enters { ENTRY } else { 0 };
            let part = self.part(f, statement, part);
            let bytes = INSTRUCTION_BYTES * instructions;
            if let Some(routine) = self.code.routines.last_mut() {
                routine.bytes[part as usize] += bytes;
            }
            let words = statement.text.trim();
            let repeats =
                words.ends_with('{') && (words.starts_with("for ") || words.starts_with("while "));
            let (lines, from) = (statement.lines.clone(), self.at);
            if bytes > 0 {
                self.code.places.push(Place { lines, from, bytes, repeats, enters });
            }
            self.at += bytes;
            for (callee, _) in self.called(f, s) {
                if self.is_placed(callee) {
                    self.routine(callee, part);
                }
            }
        }
    }
}
