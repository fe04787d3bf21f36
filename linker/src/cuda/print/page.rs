//! The text that is written, and the names in it.

use crate::cuda::Options;
use crate::cuda::place::Plan;
use crate::names::fresh;
use crate::tape::{Range, Rule, Tape, Value};
use std::collections::{BTreeMap, BTreeSet};

/// What the text of an operation depends on.
pub struct Print<'t> {
    pub tape: &'t Tape,
    pub plan: &'t Plan,
    pub ranges: &'t [Range],
    pub options: Options,
    pub most: &'t dyn Fn(Value) -> u32,
    /// The number of operations that use a value.
    pub uses: BTreeMap<Value, usize>,
    /// The text of each value.
    pub text: BTreeMap<Value, String>,
    /// Names that are in use.
    pub taken: BTreeSet<String>,
    /// The rules of lifetimes.
    pub rules: Vec<Rule>,
    /// The next barriers behind which copies of rows continue. Each place is as long as a copy in the text.
    pub copies: usize,
    pub out: String,
    pub depth: usize,
}

impl Print<'_> {
    pub fn line(&mut self, text: &str) {
        for line in text.lines() {
            self.out += &"    ".repeat(self.depth);
            self.out += line;
            self.out.push('\n');
        }
    }

    pub fn value(&self, v: Value) -> String {
        self.text.get(&v).cloned().unwrap_or_default()
    }

    /// Returns an expression that binds more strongly than any operator.
    pub fn atom(&self, v: Value) -> String {
        let text = self.value(v);
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        if text.chars().all(plain) { text } else { format!("({text})") }
    }

    pub fn range(&self, v: Value) -> Range {
        self.ranges.get(v.0 as usize).copied().unwrap_or(Range::ANY)
    }

    /// Gives a value a name that no other has.
    pub fn name(&mut self, v: Value, otherwise: &str) -> String {
        let name = fresh(&mut self.taken, self.tape.name_of(v).unwrap_or(otherwise));
        self.text.insert(v, name.clone());
        name
    }
}

/// Returns a number as an operand: in brackets if it is negative.
pub fn signed(n: i32) -> String {
    if n < 0 { format!("({n})") } else { n.to_string() }
}
