//! Prints a fused and ordered tape as C++.

mod arithmetic;
mod lanes;
mod names;
mod page;
mod scalars;

use super::access::exchanged;
use super::place::Plan;
use crate::names::camel;
use crate::tape::{Block, ColumnId, Kind, Op, OpCode, Range, Rule, Tape, Value};
use avsg_device::learned::LIFETIMES;
use avsg_device::memory::words_before_links;
use avsg_device::params::Params;
use lanes::Sweep;
use page::Print;
use std::collections::{BTreeMap, BTreeSet};

/// Variables of every kernel.
const KERNEL_NAMES: [&str; 14] = [
    "gm", "q", "header", "record", "scratch", "thread", "i", "r", "kept", "places", "to", "wins",
    "rule", "copies",
];

/// Returns the names that no value may have: those of every kernel, of columns, and of lengths.
fn names_of_memory(tape: &Tape) -> impl Iterator<Item = String> {
    let columns = tape.columns.iter().filter(|column| !column.is_global());
    let names = columns.flat_map(|column| {
        let length = matches!(column.kind, Kind::List { .. }).then(|| names::length(column));
        names::of_column(column).into_iter().chain(length)
    });
    let kernel = KERNEL_NAMES.into_iter().chain(["idGlobal", "linkGlobal"]);
    kernel.map(String::from).chain(names)
}

/// Returns a name that the text would give to two things; none of a tape that can be printed.
pub fn repeated_name(tape: &Tape) -> Option<String> {
    let mut taken = BTreeSet::new();
    names_of_memory(tape).find(|name| !taken.insert(name.clone()))
}

/// Returns the rules of lifetimes, and the function `StageOne`.
pub fn print(
    p: &Params,
    tape: &Tape,
    plan: &Plan,
    ranges: &[Range],
    rounds: &dyn Fn(Value) -> u32,
) -> (String, String) {
    let mut uses = BTreeMap::new();
    tape.body.all().flat_map(|op| &op.args).for_each(|&v| *uses.entry(v).or_default() += 1);
    let text = tape.params.iter().map(|p| (p.value, format!("q.{}", camel(&p.name)))).collect();
    let mut print = Print {
        tape,
        plan,
        ranges,
        rounds,
        uses,
        text,
        taken: names_of_memory(tape).collect(),
        rules: Vec::new(),
        copies: 0,
        out: String::new(),
        depth: 1,
    };
    print.declarations(p);
    print.block(&tape.body);
    let body = format!(
        "// Runs Stage One (Alg. 1) for each token of one request, on its table. All threads of the block call it.\n\
         template <typename Copies>\n\
         __device__ __forceinline__ void StageOne(\n    \
         const Gm &gm, const Request &q, Header &header, Record &record, Copies &copies)\n\
         {{\n{}}}\n",
        print.out
    );
    let rules = print.rules.iter().enumerate();
    let rules = rules.map(|(n, Rule(rule))| rule_text(&format!("RULE{n}"), rule));
    (rules.collect::<Vec<_>>().join("\n"), body)
}

/// Returns the array of a rule, indexed by a lifetime + 128.
pub fn rule_text(name: &str, rule: &[i8; LIFETIMES]) -> String {
    let rows =
        rule.chunks(16).map(|row| row.iter().map(i8::to_string).collect::<Vec<_>>().join(", "));
    let rows: Vec<_> = rows.collect();
    format!("__constant__ const signed char {name}[256] = {{\n    {}}};\n", rows.join(",\n    "))
}

impl Print<'_> {
    /// Declares the addresses of columns, and the lengths of lists.
    fn declarations(&mut self, p: &Params) {
        self.line("const int thread = static_cast<int>(threadIdx.x);");
        self.line("Scratch scratch;");
        let at = self.plan.table.start;
        let (ids, links) = (at + 64, at + 4 * words_before_links(p) as u32);
        for (plane, from, words) in [("id", ids, 16), ("link", links, (links - at) / 4)] {
            if self.plan.whole_table {
                self.line(&format!("int *const {plane} = Shared<int>({from});"));
            }
            let name = if self.plan.whole_table { format!("{plane}Global") } else { plane.into() };
            self.line(&format!("int *const {name} = gm.table + {words};"));
        }
        self.line("signed char *const life = Shared<signed char>(LIFE_AT);");
        let tape = self.tape;
        for (n, column) in tape.columns.iter().enumerate() {
            let id = ColumnId(n as u32);
            let constant = if exchanged(tape, id).is_empty() { "const " } else { "" };
            for (part, name) in names::of_column(column).iter().enumerate() {
                if let Some(at) = self.plan.columns.get(&(id, part)) {
                    let ty = if column.kind == Kind::Life { "signed char" } else { "int" };
                    let at = at.start;
                    self.line(&format!("{ty} *{constant}{name} = Shared<{ty}>({at});"));
                }
            }
            let used = tape.body.all().any(|op| op.columns.contains(&id));
            if matches!(column.kind, Kind::List { .. }) && used {
                self.line(&format!("int {} = 0;", names::length(column)));
            }
        }
    }

    fn block(&mut self, block: &Block) {
        let mut ops = block.ops.iter().peekable();
        while let Some(op) = ops.next() {
            if op.code == OpCode::AppendLife(false) {
                // The slots at the threshold follow those below it, and one scan finds both places.
                let at = |next: &&Op| next.code == OpCode::AppendLife(true) && next.args == op.args;
                let both = ops.next_if(|next| at(next) && next.columns == op.columns).is_some();
                self.victims(op, "true", if both { "true" } else { "false" });
            } else if op.code == OpCode::Synchronise && op.args.len() == 1 {
                let same = |next: &&Op| next.code == OpCode::Sweep && next.args == op.args;
                match ops.next_if(same) {
                    Some(sweep) => Sweep::print(self, sweep, true),
                    None => self.op(op),
                }
            } else {
                self.op(op);
            }
        }
    }

    fn op(&mut self, op: &Op) {
        let arg = |print: &Self, n: usize| print.value(op.args[n]);
        match op.code {
            OpCode::Phase(phase, does) => {
                self.out.push('\n');
                self.line(&format!("// {phase}: {does}."));
            }
            OpCode::Synchronise => {
                let condition = match op.args[..] {
                    [] => return self.barrier(),
                    [n] => format!("{} > 0", self.atom(n)),
                    _ => format!("{} + 1 < {}", arg(self, 0), self.atom(op.args[1])),
                };
                self.line(&format!("if ({condition}) {{"));
                self.barrier();
                self.line("}");
            }
            OpCode::Sweep => Sweep::print(self, op, false),
            OpCode::Repeat(max) => {
                let r = self.name(op.blocks[0].binds.unwrap_or(Value(0)), "round");
                let n = arg(self, 0);
                let fits = self.range(op.args[0]).hi <= max.cast_signed();
                let bound = if fits { self.atom(op.args[0]) } else { format!("min({n}, {max})") };
                self.line("#pragma unroll 1");
                self.line(&format!("for (int {r} = 0; {r} < {bound}; {r}++) {{"));
                self.block(&op.blocks[0]);
                self.line("}");
            }
            OpCode::When => {
                self.line(&format!("if ({} != 0) {{", self.atom(op.args[0])));
                self.block(&op.blocks[0]);
                if !op.blocks[1].ops.is_empty() {
                    self.line("} else {");
                    self.block(&op.blocks[1]);
                }
                self.line("}");
            }
            OpCode::AppendLife(_) => self.victims(op, "false", "true"),
            _ => self.whole(op),
        }
    }

    /// Prints a barrier of the block. Behind some of them copies of rows continue.
    pub fn barrier(&mut self) {
        self.line("__syncthreads();");
        if self.copies > 0 {
            self.copies -= 1;
            self.line("copies.Continue();");
        }
    }

    fn victims(&mut self, op: &Op, below: &str, equal: &str) {
        let list = self.tape.column(op.columns[0]);
        let (n, t, limit) = (names::length(list), self.value(op.args[0]), self.value(op.args[1]));
        let to = &names::of_column(list)[0];
        let life = camel(&self.tape.column(op.columns[1]).name);
        self.line(&format!(
            "{n} = AppendVictims<{below}, {equal}>({to}, {n}, {limit}, {life}, {t}, scratch);"
        ));
    }
}
