//! Scalars, and ops on whole columns.

use super::lanes::{BARRIER, SCRATCH, ub, v};
use super::{LINES, Lower, camel};
use crate::aiv::{Act, Pipe, Place};
use crate::tape::{Code, ColumnId, Op, Value};
use avsg_device::request::record;
use avsg_device::state::header;

impl Lower<'_> {
    /// An array's name in `Gm`.
    pub(super) fn gm(&self, id: ColumnId) -> String {
        camel(self.tape.column(id).name.trim_start_matches("gm_"))
    }

    /// A scalar: in place where that is as good, or by a name.
    fn define(&mut self, op: &Op, text: String, name: &str, stays: bool) {
        let Some(out) = op.out else { return };
        if stays {
            self.names.insert(out, text);
        } else {
            let name = self.fresh_name(out, name);
            self.statement(format!("const int32_t {name} = {text};"));
        }
    }

    /// An op outside of sweeps, and the ops behind it.
    pub(super) fn whole(&mut self, op: &Op, rest: &[Op]) {
        let a = |n: usize, looser: &str| wrapped(&self.bare(op.args[n]), looser);
        let text = match op.code {
            Code::Constant(n) => n.to_string(),
            Code::ScalarAdd => format!("{} + {}", a(0, "?"), a(1, "?+-")),
            Code::ScalarSub => format!("{} - {}", a(0, "?"), a(1, "?+-")),
            Code::ScalarMul => format!("{} * {}", a(0, "?+-"), a(1, "?+-")),
            Code::ScalarAddTo(n) => format!("{} + {n}", a(0, "?")),
            Code::Max => format!("Most({}, {})", a(0, ""), a(1, "")),
            Code::Min => format!("Least({}, {})", a(0, ""), a(1, "")),
            Code::ScalarNe => format!("({} != {})", a(0, "?"), a(1, "?")),
            Code::ScalarGt => format!("({} > {})", a(0, "?"), a(1, "?")),
            Code::ScalarNot => format!("1 - {}", a(0, "?+-")),
            Code::Len => {
                let (list, len) = (op.columns[0], self.len_name(op.columns[0]));
                let before = format!("{}Before", camel(&self.tape.column(list).name));
                return self.define(op, len, &before, op.out.is_some_and(|l| lasts(l, list, rest)));
            }
            _ => return self.memory(op),
        };
        let once = op.out.is_some_and(|out| self.uses.get(&out) == Some(&1));
        let name = self.scalar_name(op);
        self.define(op, text, &name, once || matches!(op.code, Code::Constant(_)));
    }

    /// What a scalar is called that is used more than once.
    fn scalar_name(&self, op: &Op) -> String {
        if let Some(name) = op.out.and_then(|out| self.tape.name_of(out)) {
            return name.into();
        }
        let param = |v: &Value| Some(&self.tape.params.iter().find(|p| p.value == *v)?.name);
        match op.code {
            _ => op.args.iter().find_map(param).map_or_else(|| "sum".into(), |name| camel(name)),
        }
    }

    /// The word of a line that an offset means.
    fn line_word(&self, line: &str, at: Value) -> String {
        let base = line.strip_prefix("gm_").map(|line| format!("q.{line}At"));
        let def = self.defs.get(&at);
        match (base, def.map(|d| (d.code, &d.args))) {
            (None, _) => self.scalar(at),
            (Some(base), Some((Code::ScalarAddTo(n), args))) if self.scalar(args[0]) == base => {
                n.to_string()
            }
            (Some(base), Some((Code::ScalarAdd, args))) if self.scalar(args[0]) == base => {
                self.scalar(args[1])
            }
            (Some(base), _) => format!("{} - {base}", self.scalar(at)),
        }
    }

    fn memory(&mut self, op: &Op) {
        let a: Vec<String> = op.args.iter().map(|&v| self.bare(v)).collect();
        let name = |n: usize| self.tape.column(op.columns[n]).name.clone();
        match op.code {
            Code::Peek if LINES.contains(&name(0).as_str()) => {
                let line = self.gm(op.columns[0]);
                let word = self.line_word(&name(0), op.args[0]);
                let holds = match (line.as_str(), word.parse()) {
                    ("header", Ok(header::GENERATION)) => "generation",
                    ("header", Ok(header::TOP)) => "top",
                    ("header", Ok(header::THRESHOLD)) => "lastThreshold",
                    ("record", Ok(record::TOTAL)) => "total",
                    _ => "count",
                };
                let out = op.out.map(|out| self.fresh_name(out, holds)).unwrap_or_default();
                let text = format!("const int32_t {out} = {line}.GetValue({word});");
                self.call(Pipe::S, text, vec![Place::Ub(line)], vec![]);
            }
            Code::Put if LINES.contains(&name(0).as_str()) => {
                let line = self.gm(op.columns[0]);
                let word = self.line_word(&name(0), op.args[0]);
                let text = format!("{line}.SetValue({word}, {});", a[1]);
                self.call(Pipe::S, text, vec![], vec![Place::Ub(line)]);
            }
            Code::Put => {
                let to = self.gm(op.columns[0]);
                let text = format!("word.SetValue(0, {});", a[1]);
                self.call(Pipe::S, text, vec![], vec![ub("word")]);
                let text = format!("Push(gm.{to}[{}], word, 1);", a[0]);
                self.call(Pipe::Mte3, text, vec![ub("word")], vec![Place::Gm(to)]);
            }
            Code::Fetch => {
                let (to, from) = (self.storage(op.columns[0], 0), self.gm(op.columns[1]));
                let text = format!("Pull({to}, gm.{from}[{}], {});", a[0], a[1]);
                self.call(Pipe::Mte2, text, vec![Place::Gm(from)], vec![Place::Ub(to)]);
            }
            Code::Publish | Code::PublishList(_) => {
                let column = if let Code::PublishList(n) = op.code { n } else { 0 };
                let (to, from) = (self.gm(op.columns[0]), self.storage(op.columns[1], column));
                let n = a.get(1).cloned().unwrap_or_else(|| self.len_name(op.columns[1]));
                let text = format!("Push(gm.{to}[{}], {from}, {n});", a[0]);
                self.call(Pipe::Mte3, text, vec![Place::Ub(from)], vec![Place::Gm(to)]);
            }
            Code::Clear => {
                let text = format!("{} = 0;", self.len_name(op.columns[0]));
                self.statement(text);
            }
            Code::Take => {
                let [to, from] = [0, 1].map(|n| self.len_name(op.columns[n]));
                self.statement(format!("{to} = {from};"));
                self.statement(format!("{from} = 0;"));
            }
            Code::Find(retries) | Code::FindFree(retries) => self.search(op, retries),
            Code::SortOut => self.collect(op),
            Code::AppendLow => self.append_low(op),
            Code::Share => self.share(op),
            _ => self.life(op, &a),
        }
    }

    fn life(&mut self, op: &Op, a: &[String]) {
        let (life, keep, scratch) = (ub("life"), ub("keep"), ub("scratch"));
        let (text, acts) = match op.code {
            Code::Age { settle } => {
                if settle {
                    let choice = v(&[&keep, &scratch, &life], &[&life, &ub(SCRATCH)]);
                    let run = [BARRIER, v(&[&life], &[&keep, &scratch]), BARRIER, choice];
                    let (text, acts) = ("Settle(life);".into(), [run.clone(), run].concat());
                    self.helper(text, acts);
                }
                let acts = vec![BARRIER, v(&[&life], &[&life]), BARRIER, v(&[&life], &[&life])];
                (format!("Age(life, {});", a[0]), acts)
            }
            Code::Bisect => {
                let run =
                    [BARRIER, v(&[&life], &[&keep]), BARRIER, v(&[&keep, &life], &[&scratch])];
                let out = op.out.map(|out| self.fresh_name(out, "threshold")).unwrap_or_default();
                let text = format!("const int32_t {out} = LeastLife(life, {}, {});", a[0], a[1]);
                (text, vec![Act::Maybe([run.clone(), run].concat()), BARRIER])
            }
            Code::AppendLt | Code::AppendEq => {
                let mode = if op.code == Code::AppendLt { "LT" } else { "EQ" };
                let (list, len) = (self.storage(op.columns[0], 0), self.len_name(op.columns[0]));
                let text = format!(
                    "{len} = AppendSlots({list}, {len}, life, CMPMODE::{mode}, {}, {});",
                    a[0], a[1]
                );
                let list = Place::Ub(list);
                let numbers = v(&[&ub("iota")], &[&scratch]);
                let steps = [
                    v(&[&life, &list], &[&keep, &scratch]),
                    v(&[&scratch], &[&scratch]),
                    v(&[&scratch, &keep], &[&scratch]),
                    v(&[&scratch], &[&list]),
                    v(&[&list], &[&list]),
                    v(&[&list], &[&list]),
                ];
                let run = steps.map(|act| [BARRIER, act]).concat();
                (text, vec![numbers, Act::Maybe([run.clone(), run].concat()), BARRIER])
            }
            _ => unreachable!("the checker keeps {:?} in sweeps", op.code),
        };
        self.helper(text, acts);
    }
}

/// Whether a list is as long as it was when an op read it, wherever the length is used.
fn lasts(len: Value, list: ColumnId, rest: &[Op]) -> bool {
    let uses = |op: &Op| op.all().any(|op| op.args.contains(&len));
    let writes = |op: &Op| {
        let mut roles = op.columns.iter().zip(op.code.signature().columns);
        roles.any(|(&id, (_, role))| id == list && role.writes())
    };
    let last = rest.iter().rposition(uses).map_or(0, |n| n + 1);
    !rest[..last].iter().flat_map(Op::all).any(writes)
}

/// An expression, in parentheses if one of these operators stands outside of any.
pub fn wrapped(text: &str, looser: &str) -> String {
    let mut depth = 0;
    let outside = |c: char| {
        depth += i32::from("([".contains(c)) - i32::from(")]".contains(c));
        depth == 0 && looser.contains(c)
    };
    // A sign is no operator.
    let text_of = text.strip_prefix('-').unwrap_or(text);
    if text_of.contains(' ') && text_of.chars().any(outside) {
        format!("({text})")
    } else {
        text.into()
    }
}
