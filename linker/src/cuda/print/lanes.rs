//! Prints sweeps: loops in which a thread does the work of its lanes.
//!
//! A sweep that makes lists, or in which lanes may write one word, has stages with a barrier between them.
//! What a later stage needs of a lane is in arrays with one element for each lane of a thread, which are
//! registers because the loops over them are unrolled. Both are done behind all other work of the lanes: no
//! other operation of the sweep has these columns.

use super::names::{global, length, of_column};
use super::page::Print;
use crate::cuda::access::{repeats, waits};
use crate::cuda::fuse::in_registers;
use crate::names::{camel, fresh};
use crate::tape::{ColumnId, Op, OpCode, Rule, Type, Value};
use avsg_device::learned::AFTER_HIT;
use avsg_device::machine::declare::Copied;
use avsg_device::machine::links::{Links, bits_below};
use std::collections::BTreeMap;

/// A sweep that is printed.
pub struct Sweep<'a, 't> {
    print: &'a mut Print<'t>,
    /// The values that were stored to a column by this lane.
    stored: BTreeMap<ColumnId, String>,
    /// The lists that the sweep makes, and the scatters with a winner.
    lists: Vec<&'a Op>,
    scatters: Vec<&'a Op>,
    /// The statements at the end of the first stage, in which a value becomes an element of an array.
    kept: Vec<String>,
}

impl<'a, 't> Sweep<'a, 't> {
    /// Prints a sweep, with a barrier before it if it has lanes.
    pub fn print(print: &'a mut Print<'t>, op: &'a Op, barrier: bool) {
        let n = op.args[0];
        let body = &op.blocks[0].ops;
        let lists = body.iter().filter(|op| op.code == OpCode::Append).collect();
        let scatters = body.iter().filter(|op| repeats(op)).collect();
        let (stored, kept) = (BTreeMap::new(), Vec::new());
        let mut sweep = Sweep { print, stored, lists, scatters, kept };
        let (any, text) = (sweep.print.range(n).lo <= 0, sweep.print.atom(n));
        let staged = body.iter().any(waits);
        let around = staged || barrier;
        if around {
            sweep.line(&if any { format!("if ({text} > 0) {{") } else { "{".into() });
        }
        if barrier {
            sweep.print.barrier();
        }
        if staged {
            sweep.staged(n, body);
        } else {
            sweep.line(&format!("for (int i = thread; i < {text}; i += THREADS) {{"));
            body.iter().for_each(|op| sweep.op(op));
            sweep.line("}");
        }
        if around {
            sweep.line("}");
        }
        body.iter().for_each(|op| sweep.known(op, n));
    }

    /// Tells the copies how many misses have a row, or a slot, behind the sweep that publishes them.
    fn known(&mut self, op: &Op, n: Value) {
        let OpCode::CopyOutList(_) = op.code else { return };
        let (of, copies) = match self.print.tape.column(op.columns[0]).copied {
            Some(Copied::Rows) => ("rows", 1),
            Some(Copied::Slots) => ("slots", 2),
            None => return,
        };
        let (at, n) = (self.print.atom(op.args[0]), self.print.atom(n));
        self.line(&format!("copies.{of} = {at} + {n};"));
        self.print.copies = copies;
    }

    fn line(&mut self, text: &str) {
        self.print.line(text);
    }

    /// Prints a sweep with barriers.
    fn staged(&mut self, n: Value, body: &[Op]) {
        let (rounds, n, tape) = ((self.print.rounds)(n), self.print.atom(n), self.print.tape);
        let (lists, scatters) = (self.lists.clone(), self.scatters.clone());
        if !lists.is_empty() {
            self.line(&format!("unsigned kept[{}][{rounds}];", lists.len()));
        }
        for (at, list) in lists.iter().enumerate() {
            self.line(&format!("bool keeps{at}[{rounds}] = {{}};"));
            for n in 0..list.args.len() - 2 {
                self.line(&format!("int entry{at}{n}[{rounds}] = {{}};"));
            }
        }
        for at in 0..scatters.len() {
            self.line(&format!(
                "int to{at}[{rounds}], word{at}[{rounds}] = {{}};\nbool wins{at}[{rounds}];\n\
                 #pragma unroll\nfor (int r = 0; r < {rounds}; r++) {{\nto{at}[r] = -1;\n}}"
            ));
        }
        let each = format!("#pragma unroll\nfor (int r = 0; r < {rounds}; r++) {{");
        self.line(&format!("{each}\nconst int i = r * THREADS + thread;\nif (i < {n}) {{"));
        body.iter().for_each(|op| self.op(op));
        std::mem::take(&mut self.kept).iter().for_each(|statement| self.line(statement));
        self.line("}");
        for at in 0..lists.len() {
            self.line(&format!("kept[{at}][r] = Ballot(keeps{at}[r]);"));
        }
        self.line("}");
        self.line(match lists.is_empty() {
            true => "__syncthreads();",
            false => "const auto places = FindPlaces(kept, scratch);  // A barrier of the block.",
        });
        if !scatters.is_empty() || lists.iter().any(|list| list.args.len() > 2) {
            self.line(&each);
            for (at, list) in lists.iter().enumerate().filter(|(_, list)| list.args.len() > 2) {
                let list = tape.column(list.columns[0]);
                self.line(&format!(
                    "if (keeps{at}[r]) {{\nconst int to = {} + places.at[{at}][r];",
                    length(list)
                ));
                for (n, column) in of_column(list).iter().enumerate() {
                    self.line(&format!("{column}[to] = entry{at}{n}[r];"));
                }
                self.line("}");
            }
            for (at, scatter) in scatters.iter().enumerate() {
                let column = camel(&tape.column(scatter.columns[0]).name);
                self.line(&format!(
                    "wins{at}[r] = to{at}[r] >= 0 && {column}[to{at}[r]] == TAG + r * THREADS + thread;"
                ));
            }
            self.line("}");
        }
        for (at, list) in lists.iter().enumerate() {
            let length = length(tape.column(list.columns[0]));
            self.line(&format!("{length} += places.total[{at}];"));
        }
        if !scatters.is_empty() {
            self.line(&format!("__syncthreads();\n{each}"));
            for (at, scatter) in scatters.iter().enumerate() {
                self.line(&format!("if (wins{at}[r]) {{"));
                self.write(scatter, &format!("to{at}[r]"), &format!("word{at}[r]"));
                self.line("}");
            }
            self.line("}");
        }
    }

    /// Writes a word to the first column of an operation: in shared memory, and to a plane of a table also in
    /// global memory.
    fn write(&mut self, op: &Op, at: &str, word: &str) {
        let column = self.print.tape.column(op.columns[0]);
        let name = camel(&column.name);
        self.line(&format!("{name}[{at}] = {word};"));
        if column.resident && self.print.plan.whole_table {
            self.line(&format!("{name}Global[{at}] = {word};"));
        }
    }

    /// Returns an index into the first column of an operation: as it is if it is in range, as those of a column are
    /// whose length is no power of two, else modulo the length.
    fn index(&self, op: &Op, n: usize) -> String {
        let (v, len) = (op.args[n], self.print.tape.column(op.columns[0]).len);
        let (range, last) = (self.print.range(v), len.cast_signed() - 1);
        if !len.is_power_of_two() || (range.lo >= 0 && range.hi <= last) {
            return self.print.value(v);
        }
        format!("{} & {last}", self.print.atom(v))
    }

    /// Prints an operation of a lane.
    fn op(&mut self, op: &Op) {
        let tape = self.print.tape;
        let column = |n: usize| tape.column(op.columns[n]);
        let value = |n: usize| self.print.value(op.args[n]);
        let name = |n: usize| camel(&column(n).name);
        let (text, called) = match op.code {
            OpCode::Load => match (self.stored.get(&op.columns[0]), op.out) {
                (Some(text), Some(out)) => {
                    self.print.text.insert(out, text.clone());
                    return;
                }
                _ => (format!("{}[i]", name(0)), column(0).items[0]),
            },
            OpCode::Item(n) => (format!("{}[i]", of_column(column(0))[n]), column(0).items[n]),
            OpCode::Gather => (format!("{}[{}]", name(0), self.index(op, 0)), column(0).items[0]),
            OpCode::GatherLife => (format!("{}[{}]", name(0), self.index(op, 0)), "lived"),
            OpCode::Lookup => {
                let [base, n, index, mask] = [1, 2, 3, 4].map(value);
                (format!("LookUp({} + {base}, {n}, {index}, {mask})", global(column(0))), "entry")
            }
            OpCode::Find(links) => {
                let [sequence, id] = [1, 2].map(|n| self.word(op.columns[n], 0));
                let (shape, links, held) = (shape(&links), name(3), name(4));
                let text = format!("Find<{shape}>({sequence}, {id}, {links}, {held})");
                return self.result(op, &text, "found");
            }
            OpCode::FindFree(links) => {
                let (shape, sequence) = (shape(&links), self.word(op.columns[1], 0));
                let text = format!("FindFree<{shape}>({sequence}, {}, {})", name(2), name(3));
                return self.result(op, &text, "free");
            }
            OpCode::CopyIn => {
                let text = format!("{}[{} + i]", global(column(1)), self.print.atom(op.args[0]));
                return self.result(op, &text, "fetched");
            }
            OpCode::Store => {
                let text = value(1);
                return self.store(op, text);
            }
            _ if op.out.is_none() => return self.effect(op),
            _ if op.code.signature().out == Some(Type::Scalar) => return self.print.whole(op),
            _ => return self.print.arithmetic(op),
        };
        self.print.define(op, text, called);
    }

    /// Prints an operation of a lane that changes memory which other lanes may read.
    fn effect(&mut self, op: &Op) {
        let tape = self.print.tape;
        let value = |n: usize| self.print.value(op.args[n]);
        let column = camel(&tape.column(op.columns[0]).name);
        let number = |all: &[&Op]| all.iter().position(|other| *other == op).unwrap_or(0);
        match op.code {
            OpCode::CopyOut | OpCode::CopyOutList(_) => {
                let part = if let OpCode::CopyOutList(n) = op.code { n } else { 0 };
                let (to, word) =
                    (global(tape.column(op.columns[0])), self.word(op.columns[1], part));
                let at = self.print.atom(op.args[0]);
                self.line(&format!("{to}[{at} + i] = {word};"));
            }
            OpCode::Scatter(_) => {
                let (to, word) = (self.index(op, 1), value(2));
                self.line(&format!("if ({}) {{", value(3)));
                if repeats(op) {
                    let at = number(&self.scatters);
                    self.line(&format!(
                        "to{at}[r] = {to};\nword{at}[r] = {word};\n\
                         atomicMax(&{column}[to{at}[r]], TAG + i);"
                    ));
                } else {
                    self.write(op, &to, &word);
                }
                self.line("}");
            }
            OpCode::Append => {
                let at = number(&self.lists);
                let entries =
                    (2..op.args.len()).map(|n| format!("entry{at}{}[r] = {};", n - 2, value(n)));
                let kept: Vec<_> =
                    [format!("keeps{at}[r] = {};", value(1))].into_iter().chain(entries).collect();
                self.kept.extend(kept);
            }
            OpCode::SetLife(life) => self.change_life(op, "SetLife", &life.to_string()),
            OpCode::StepLife(rule) => {
                let rule = self.rule(&rule);
                self.change_life(op, "StepLife", &rule);
            }
            _ => unreachable!("{}", tape.line(op)),
        }
    }

    fn change_life(&mut self, op: &Op, function: &str, by: &str) {
        let (life, slot) = (&self.print.tape.column(op.columns[0]).name, self.index(op, 1));
        let (mask, life) = (self.print.value(op.args[2]), camel(life));
        self.line(&format!("if ({mask}) {{\n{function}(&{life}[{slot}], {by});\n}}"));
    }

    /// Returns the word that a lane has of a column, or of a part of a list.
    fn word(&self, id: ColumnId, part: usize) -> String {
        let column = || format!("{}[i]", of_column(self.print.tape.column(id))[part]);
        self.stored.get(&id).cloned().unwrap_or_else(column)
    }

    /// Stores a result of this lane in a variable, and in the column of the operation.
    fn result(&mut self, op: &Op, text: &str, called: &str) {
        let name = fresh(&mut self.print.taken, called);
        self.line(&format!("const int {name} = {text};"));
        self.store(op, name);
    }

    /// Stores a word in the first column of an operation. Later operations of the lane take the text.
    fn store(&mut self, op: &Op, mut text: String) {
        let id = op.columns[0];
        if !text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
            let name = fresh(&mut self.print.taken, self.print.tape.column(id).items[0]);
            self.line(&format!("const int {name} = {text};"));
            text = name;
        }
        if !in_registers(self.print.tape, id) {
            self.write(op, "i", &text);
        }
        self.stored.insert(id, text);
    }

    /// Returns the name of a rule.
    fn rule(&mut self, rule: &Rule) -> String {
        if rule.0 == AFTER_HIT {
            return "AFTER_HIT".into();
        }
        let rules = &mut self.print.rules;
        let n = rules.iter().position(|other| other == rule).unwrap_or_else(|| {
            rules.push(*rule);
            rules.len() - 1
        });
        format!("RULE{n}")
    }
}

/// Returns the arguments of a search for the links of a table.
fn shape(links: &Links) -> String {
    let Links {
        retries,
        position_bits,
        slots,
        multipliers: (p, q),
        fingerprint_shift,
        fingerprint_bits,
    } = links;
    let slot_bits = bits_below(*slots);
    format!(
        "Links<{retries}, {position_bits}, {slot_bits}, {p}, {q}, {fingerprint_shift}, {fingerprint_bits}>"
    )
}
