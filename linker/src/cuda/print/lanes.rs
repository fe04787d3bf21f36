//! Prints sweeps: loops in which a thread does the work of its lanes.
//!
//! A sweep that makes lists, or in which lanes may write one word, has stages with a barrier between them.
//! What a later stage needs of a lane is in arrays with one element for each lane of a thread, which are
//! registers because the loops over them are unrolled. Both are done behind all other work of the lanes: no
//! other operation of the sweep has these columns.

use super::names;
use super::page::Print;
use crate::cuda::access::{repeats, waits};
use crate::cuda::fuse::in_registers;
use crate::cuda::place::rounds;
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
            sweep.print.depth += 1;
        }
        if barrier {
            sweep.print.barrier();
        }
        if staged {
            sweep.staged(n, body);
        } else {
            sweep.line(&format!("for (int i = thread; i < {text}; i += THREADS) {{"));
            sweep.lanes(body);
            sweep.line("}");
        }
        if around {
            sweep.print.depth -= 1;
            sweep.line("}");
        }
        body.iter().for_each(|op| sweep.known(op, n));
    }

    /// Tells the copies how many misses have a row, or a slot, behind the sweep that publishes them.
    fn known(&mut self, op: &Op, n: Value) {
        let OpCode::PublishList(_) = op.code else { return };
        let Some(copied) = self.print.tape.column(op.columns[0]).copied else { return };
        let (of, copies) = match copied {
            Copied::Rows => ("rows", 1),
            Copied::Slots => ("slots", 2),
        };
        let (at, n) = (self.print.atom(op.args[0]), self.print.atom(n));
        self.line(&format!("copies.{of} = {at} + {n};"));
        self.print.copies = copies;
    }

    fn line(&mut self, text: &str) {
        self.print.line(text);
    }

    /// Prints the operations of a lane.
    fn lanes(&mut self, body: &[Op]) {
        self.print.depth += 1;
        body.iter().for_each(|op| self.op(op));
        self.print.depth -= 1;
    }

    /// Prints a sweep with barriers.
    fn staged(&mut self, n: Value, body: &[Op]) {
        let rounds = rounds((self.print.most)(n), self.print.options.threads);
        let n = self.print.atom(n);
        self.declare(rounds);
        let lane = "const int i = r * THREADS + thread;";
        let each = format!("#pragma unroll\nfor (int r = 0; r < {rounds}; r++) {{");
        self.line(&format!("{each}\n    {lane}\n    if (i < {n}) {{"));
        self.print.depth += 1;
        self.lanes(body);
        for statement in std::mem::take(&mut self.kept) {
            self.line(&format!("    {statement}"));
        }
        self.line("}");
        for at in 0..self.lists.len() {
            self.line(&format!("kept[{at}][r] = Ballot(keeps{at}[r]);"));
        }
        self.print.depth -= 1;
        self.line("}");
        if self.lists.is_empty() {
            self.line("__syncthreads();");
        } else {
            self.line("const auto places = FindPlaces(kept, scratch);  // A barrier of the block.");
        }
        if !self.scatters.is_empty() || self.lists.iter().any(|list| list.args.len() > 2) {
            self.line(&each);
            self.append();
            for at in 0..self.scatters.len() {
                let column = self.target(self.scatters[at])[0].clone();
                self.line(&format!(
                    "    wins{at}[r] = to{at}[r] >= 0 && {column}[to{at}[r]] == TAG + r * THREADS + thread;"
                ));
            }
            self.line("}");
        }
        for at in 0..self.lists.len() {
            let length = names::length(self.print.tape.column(self.lists[at].columns[0]));
            self.line(&format!("{length} += places.total[{at}];"));
        }
        if !self.scatters.is_empty() {
            self.line(&format!("__syncthreads();\n{each}"));
            for at in 0..self.scatters.len() {
                let targets = self.target(self.scatters[at]);
                let stores =
                    targets.iter().map(|to| format!("        {to}[to{at}[r]] = word{at}[r];\n"));
                let stores: String = stores.collect();
                self.line(&format!("    if (wins{at}[r]) {{\n{stores}    }}"));
            }
            self.line("}");
        }
    }

    /// Declares the arrays of the stages.
    fn declare(&mut self, rounds: u32) {
        if !self.lists.is_empty() {
            let lists = self.lists.len();
            self.line(&format!("unsigned kept[{lists}][{rounds}];"));
        }
        for at in 0..self.lists.len() {
            let entries = (2..self.lists[at].args.len())
                .map(|n| format!("int entry{at}{}[{rounds}] = {{}};\n", n - 2));
            let entries: String = entries.collect();
            self.line(&format!("bool keeps{at}[{rounds}] = {{}};\n{entries}"));
        }
        for at in 0..self.scatters.len() {
            self.line(&format!(
                "int to{at}[{rounds}], word{at}[{rounds}] = {{}};\nbool wins{at}[{rounds}];\n\
                 #pragma unroll\nfor (int r = 0; r < {rounds}; r++) {{\n    to{at}[r] = -1;\n}}"
            ));
        }
    }

    /// Prints the entries that a lane adds to lists.
    fn append(&mut self) {
        for at in 0..self.lists.len() {
            let list = self.print.tape.column(self.lists[at].columns[0]);
            let length = names::length(list);
            let columns: Vec<_> = names::of_column(list).collect();
            if columns.is_empty() {
                continue;
            }
            let entry =
                |(n, name): (usize, &String)| format!("        {name}[to] = entry{at}{n}[r];\n");
            let entries: String = columns.iter().enumerate().map(entry).collect();
            self.line(&format!(
                "    if (keeps{at}[r]) {{\n        const int to = {length} + places.at[{at}][r];\n{entries}    }}"
            ));
        }
    }

    /// Returns the memory of a scattered column: in shared memory, and a plane of a table also in global memory.
    fn target(&self, op: &Op) -> Vec<String> {
        let column = self.print.tape.column(op.columns[0]);
        let name = names::of_column(column).next().unwrap_or_default();
        let also = column.resident && self.print.plan.whole_table;
        let global = also.then(|| format!("{name}Global"));
        [name].into_iter().chain(global).collect()
    }

    fn value(&self, v: Value) -> String {
        self.print.value(v)
    }

    /// Returns an index into a column: as it is if it is in range, as those of a column are whose length is no
    /// power of two, else modulo the length.
    fn index(&self, v: Value, id: ColumnId) -> String {
        let (range, len) = (self.print.range(v), self.print.tape.column(id).len.cast_signed());
        let power = len.cast_unsigned().is_power_of_two();
        if !power || (range.lo >= 0 && range.hi < len) {
            return self.value(v);
        }
        format!("{} & {}", self.print.atom(v), len - 1)
    }

    fn op(&mut self, op: &Op) {
        let name = |n: usize| {
            let column = self.print.tape.column(op.columns[n]);
            names::of_column(column).next().unwrap_or_default()
        };
        let item = |n: usize| {
            let column = self.print.tape.column(op.columns[0]);
            column.items.get(n).copied().unwrap_or("word")
        };
        let (value, index) =
            (|n: usize| self.value(op.args[n]), |n, id| self.index(op.args[n], id));
        match op.code {
            OpCode::Load => {
                let id = op.columns[0];
                let text = self.stored.get(&id).cloned();
                if let (Some(text), Some(out)) = (&text, op.out) {
                    self.print.text.insert(out, text.clone());
                    return;
                }
                let (text, called) = (format!("{}[i]", name(0)), item(0));
                self.print.define(op, text, "int", called);
            }
            OpCode::Item(n) => {
                let column = self.print.tape.column(op.columns[0]);
                let list = names::of_column(column).nth(n).unwrap_or_default();
                let called = item(n);
                self.print.define(op, format!("{list}[i]"), "int", called);
            }
            OpCode::Gather => {
                let (text, called) = (format!("{}[{}]", name(0), index(0, op.columns[0])), item(0));
                self.print.define(op, text, "int", called);
            }
            OpCode::GatherLife => {
                let text = format!("{}[{}]", name(0), index(0, op.columns[0]));
                self.print.define(op, text, "int", "lived");
            }
            OpCode::Lookup => {
                let array = global(self.print, op, 0);
                let text = format!(
                    "LookUp({array} + {}, {}, {}, {})",
                    value(1),
                    value(2),
                    value(3),
                    value(4)
                );
                self.print.define(op, text, "int", "entry");
            }
            OpCode::Find(links) => {
                let queries = [1, 2].map(|n| self.word(op.columns[n]));
                let text = format!(
                    "Find<{}>({}, {}, {}, {})",
                    shape(&links),
                    queries[0],
                    queries[1],
                    name(3),
                    name(4)
                );
                self.result(op, &text, "found");
            }
            OpCode::FindFree(links) => {
                let query = self.word(op.columns[1]);
                let text =
                    format!("FindFree<{}>({query}, {}, {})", shape(&links), name(2), name(3));
                self.result(op, &text, "free");
            }
            OpCode::Fetch => {
                let text =
                    format!("{}[{} + i]", global(self.print, op, 1), self.print.atom(op.args[0]));
                self.result(op, &text, "fetched");
            }
            OpCode::Publish | OpCode::PublishList(_) => {
                let column = self.print.tape.column(op.columns[1]);
                let part = if let OpCode::PublishList(n) = op.code { n } else { 0 };
                let from = names::of_column(column).nth(part).unwrap_or_default();
                let word = self.stored.get(&op.columns[1]).cloned().unwrap_or(format!("{from}[i]"));
                let to = global(self.print, op, 0);
                let at = self.print.atom(op.args[0]);
                self.line(&format!("{to}[{at} + i] = {word};"));
            }
            OpCode::Store => {
                let text = value(1);
                self.store(op, text);
            }
            OpCode::Scatter(_) if repeats(op) => {
                let at = self.scatters.iter().position(|scatter| *scatter == op).unwrap_or(0);
                let (to, tag) = (index(1, op.columns[0]), "TAG + i");
                let (mask, word, column) = (value(3), value(2), name(0));
                self.line(&format!(
                    "if ({mask}) {{\n    to{at}[r] = {to};\n    word{at}[r] = {word};\n    \
                     atomicMax(&{column}[to{at}[r]], {tag});\n}}"
                ));
            }
            OpCode::Scatter(_) => {
                let (to, word, mask) = (index(1, op.columns[0]), value(2), value(3));
                let stores = self
                    .target(op)
                    .into_iter()
                    .map(|column| format!("    {column}[{to}] = {word};\n"));
                let stores: String = stores.collect();
                self.line(&format!("if ({mask}) {{\n{stores}}}"));
            }
            OpCode::Append => {
                let at = self.lists.iter().position(|list| *list == op).unwrap_or(0);
                let entries =
                    (2..op.args.len()).map(|n| format!("entry{at}{}[r] = {};", n - 2, value(n)));
                let kept: Vec<_> =
                    [format!("keeps{at}[r] = {};", value(1))].into_iter().chain(entries).collect();
                self.kept.extend(kept);
            }
            OpCode::SetLife(life) => {
                let (slot, mask, column) = (index(1, op.columns[0]), value(2), name(0));
                self.line(&format!("if ({mask}) {{\n    SetLife(&{column}[{slot}], {life});\n}}"));
            }
            OpCode::StepLife(rule) => {
                let (slot, mask, column) = (index(1, op.columns[0]), value(2), name(0));
                let rule = self.rule(&rule);
                self.line(&format!("if ({mask}) {{\n    StepLife(&{column}[{slot}], {rule});\n}}"));
            }
            _ if op.code.signature().out == Some(Type::Scalar) => self.print.whole(op),
            _ => self.print.arithmetic(op),
        }
    }

    /// Returns the word that a lane has of a column.
    fn word(&self, id: ColumnId) -> String {
        let name = names::of_column(self.print.tape.column(id)).next().unwrap_or_default();
        self.stored.get(&id).cloned().unwrap_or_else(|| format!("{name}[i]"))
    }

    /// Stores a result of this lane in a variable, and in the column of the operation.
    fn result(&mut self, op: &Op, text: &str, called: &str) {
        let name = crate::names::fresh(&mut self.print.taken, called);
        self.line(&format!("const int {name} = {text};"));
        self.store(op, name);
    }

    /// Stores a word in the first column of an operation. Later operations of the lane take the text.
    fn store(&mut self, op: &Op, text: String) {
        let id = op.columns[0];
        let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        let text = if plain {
            text
        } else {
            let called = self.print.tape.column(id).items.first().copied().unwrap_or("word");
            let name = crate::names::fresh(&mut self.print.taken, called);
            self.line(&format!("const int {name} = {text};"));
            name
        };
        if !in_registers(self.print.tape, id) {
            for column in self.target(op) {
                self.line(&format!("{column}[i] = {text};"));
            }
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

/// Returns an array in global memory.
fn global(print: &Print<'_>, op: &Op, n: usize) -> String {
    format!("gm.{}", crate::names::camel(print.tape.column(op.columns[n]).array()))
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
