//! The text that is written, and the names in it.

use crate::cuda::place::Plan;
use crate::names::fresh;
use crate::tape::{Op, Range, Rule, Tape, Type, Value};
use std::collections::{BTreeMap, BTreeSet};

/// What the text of an operation depends on.
pub struct Print<'t> {
    pub tape: &'t Tape,
    pub plan: &'t Plan,
    pub ranges: &'t [Range],
    /// The number of lanes that a thread has of a sweep of a length.
    pub rounds: &'t dyn Fn(Value) -> u32,
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
    /// The number of braces that are open.
    pub depth: usize,
}

impl Print<'_> {
    /// Adds lines, each as far to the right as braces are open.
    pub fn line(&mut self, text: &str) {
        for line in text.lines() {
            self.depth -= usize::from(line.starts_with('}'));
            self.out += &format!("{}{line}\n", "    ".repeat(self.depth));
            self.depth += usize::from(line.ends_with('{'));
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
        self.ranges[v.0 as usize]
    }

    /// Gives a value a name that no other has.
    pub fn name(&mut self, v: Value, otherwise: &str) -> String {
        let name = fresh(&mut self.taken, self.tape.name_of(v).unwrap_or(otherwise));
        self.text.insert(v, name.clone());
        name
    }

    /// Defines a value: a variable, or the text itself if one operation on lanes uses it.
    pub fn define(&mut self, op: &Op, text: String, name: &str) {
        let Some(out) = op.out else { return };
        let ty = self.tape.type_of(out);
        let once = ty != Type::Scalar && self.uses.get(&out) == Some(&1);
        if op.columns.is_empty() && once && self.tape.name_of(out).is_none() && text.len() < 60 {
            self.text.insert(out, text);
            return;
        }
        let name = self.name(out, name);
        let ty = if ty == Type::Mask { "bool" } else { "int" };
        self.line(&format!("const {ty} {name} = {text};"));
    }
}
