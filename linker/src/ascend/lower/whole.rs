//! Lowers scalars, and operations on whole columns.

use super::Lower;
use crate::ascend::aiv::{
    Call, Comparison, Expr, Global, Node, Operation, Operator, Set, Tensor, Type,
};
use crate::ascend::functions::{life, search, victims};
use crate::ascend::names::camel;
use crate::ascend::table;
use crate::check::Why;
use crate::tape::{ColumnId, Op, OpCode, Value};

impl Lower<'_> {
    /// Returns the name of an array in `Gm`.
    pub(super) fn gm(&self, id: ColumnId) -> String {
        camel(self.tape.column(id).array())
    }

    /// Returns the global memory that begins at a word of an array, or of a plane of the table.
    fn global(&self, id: ColumnId, at: Expr) -> Global {
        let column = self.tape.column(id);
        let array = column.array();
        if array == column.name { table::learned(at) } else { Global::at(&camel(array), at) }
    }

    /// Defines the result of an operation: as the expression itself if `inline` is set, else as a
    /// variable.
    fn define(&mut self, op: &Op, value: Expr, name: &str, inline: bool) {
        let Some(out) = op.out else { return };
        if inline {
            self.scalars.insert(out, value);
        } else {
            let name = self.fresh_name(out, name);
            self.set(Set::Let, name, value);
        }
    }

    /// Lowers an operation outside of sweeps. `rest` are the operations behind it in its block.
    pub(super) fn whole(&mut self, op: &Op, rest: &[Op]) -> Result<(), Why> {
        let a = |n: usize| self.scalar(op.args[n]);
        let value = match op.code {
            OpCode::Constant(n) => n.into(),
            OpCode::ScalarAdd => a(0) + a(1),
            OpCode::ScalarSub if self.negates(op) => a(1).opposite(),
            OpCode::ScalarSub => a(0) - a(1),
            OpCode::ScalarMul => a(0) * a(1),
            OpCode::ScalarAddTo(n) => a(0) + n,
            OpCode::Max if self.conditions(op) => Expr::binary(Operator::Or, a(0), a(1)),
            OpCode::Max => Expr::max(a(0), a(1)),
            OpCode::Min => Expr::min(a(0), a(1)),
            OpCode::ScalarNe => Expr::binary(Operator::Differs, a(0), a(1)),
            OpCode::ScalarGt => Expr::above(a(0), a(1)),
            OpCode::Len => {
                let (list, len) = (op.columns[0], self.len_name(op.columns[0]));
                let before = format!("{}Before", camel(&self.tape.column(list).name));
                let inline = op.out.is_some_and(|l| lasts(l, list, rest));
                self.define(op, Expr::name(len), &before, inline);
                return Ok(());
            }
            _ => return self.memory(op),
        };
        let once = op.out.is_some_and(|out| self.uses.get(&out) == Some(&1));
        let name = self.scalar_name(op);
        self.define(op, value, &name, once || matches!(op.code, OpCode::Constant(_)));
        Ok(())
    }

    /// Returns whether all operands are conditions.
    fn conditions(&self, op: &Op) -> bool {
        op.args.iter().all(|&v| self.is_condition(v))
    }

    /// Returns whether a scalar is always 0 or 1.
    fn is_condition(&self, value: Value) -> bool {
        let range = self.ranges[value.0 as usize];
        range.lo >= 0 && range.hi <= 1
    }

    /// Returns whether a difference is that of 1 and a condition.
    fn negates(&self, op: &Op) -> bool {
        let from = self.defs.get(&op.args[0]).map(|def| def.code);
        from == Some(OpCode::Constant(1)) && self.is_condition(op.args[1])
    }

    /// Returns the index of a word in a line from its offset in global memory.
    fn line_word(&self, line: ColumnId, at: Value) -> Expr {
        let line = self.tape.column(line);
        let word = match (line.at, self.defs.get(&at).map(|d| (d.code, &d.args))) {
            (None, _) => self.scalar(at),
            (Some(first), Some((OpCode::ScalarAddTo(n), args))) if args[0] == first => n.into(),
            (Some(first), Some((OpCode::ScalarAdd, args))) if args[0] == first => {
                self.scalar(args[1])
            }
            (Some(first), _) => self.scalar(at) - self.scalar(first),
        };
        let name = |number: i32| line.words.iter().find(|(word, _)| *word == number);
        match (&word, name(0)) {
            (Expr::Number(n), _) => name(*n).map_or(word, |(_, name)| Expr::Constant(name)),
            // The words from the first one on are an array.
            (_, Some((_, first))) => Expr::Constant(first) + word,
            _ => word,
        }
    }

    fn memory(&mut self, op: &Op) -> Result<(), Why> {
        let a: Vec<Expr> = op.args.iter().map(|&v| self.scalar(v)).collect();
        let line = op.columns.first().is_some_and(|&id| self.tape.column(id).resident);
        let copy = |out, ub: String, gm, n| Operation::Copy { out, ub: Tensor::named(ub), gm, n };
        match op.code {
            OpCode::ReadOutput if line => {
                let line = self.gm(op.columns[0]);
                let word = self.line_word(op.columns[0], op.args[0]);
                let holds = op.out.and_then(|out| self.tape.name_of(out)).unwrap_or("count");
                let out = op.out.map(|out| self.fresh_name(out, holds)).unwrap_or_default();
                let (from, ty) = (Tensor::named(line), Type::I32);
                self.call(Operation::Read { name: out, ty, from, at: word });
            }
            OpCode::WriteOutput if line => {
                let line = self.gm(op.columns[0]);
                let (at, value) = (self.line_word(op.columns[0], op.args[0]), a[1].clone());
                let to = Tensor::named(line);
                self.call(Operation::Write { to, at, value });
            }
            OpCode::WriteOutput => {
                let (to, value) = (Tensor::named("word"), a[1].clone());
                self.call(Operation::Write { to, at: 0.into(), value });
                let to = self.global(op.columns[0], a[0].clone());
                self.call(copy(true, "word".into(), to, 1.into()));
            }
            OpCode::CopyIn => {
                let from = self.global(op.columns[1], a[0].clone());
                self.call(copy(false, self.storage(op.columns[0], 0), from, a[1].clone()));
            }
            OpCode::CopyOut | OpCode::CopyOutList(_) => {
                let column = if let OpCode::CopyOutList(n) = op.code { n } else { 0 };
                let to = self.global(op.columns[0], a[0].clone());
                let n = a.get(1).cloned();
                let n = n.unwrap_or_else(|| Expr::name(self.len_name(op.columns[1])));
                self.call(copy(true, self.storage(op.columns[1], column), to, n));
            }
            OpCode::Clear => self.set(Set::Assign, self.len_name(op.columns[0]), 0.into()),
            OpCode::MoveList => {
                let [to, from] = [0, 1].map(|n| self.len_name(op.columns[n]));
                self.set(Set::Assign, to, Expr::name(&from));
                self.set(Set::Assign, from, 0.into());
            }
            OpCode::Find(links) => {
                let columns = [0, 1, 2, 3, 4].map(|n| self.storage(op.columns[n], 0));
                self.call(search::find(columns, a[0].clone(), &links));
            }
            OpCode::FindFree(links) => {
                let columns = [0, 1, 2, 3].map(|n| self.storage(op.columns[n], 0));
                self.call(search::find_free(columns, a[0].clone(), &links));
            }
            OpCode::Synchronise => {
                self.call(Operation::WaitForAll);
                // Only the owner of the request continues.
                let body = vec![Node::Call(Call::from(Operation::Leave))];
                let condition = Expr::field("owner").opposite();
                self.out.push(Node::If { condition, body, otherwise: Vec::new() });
            }
            _ => return self.life(op, a),
        }
        Ok(())
    }

    pub(super) fn set(&mut self, how: Set, name: String, value: Expr) {
        self.call(Operation::Set(how, name, value));
    }

    fn life(&mut self, op: &Op, mut a: Vec<Expr>) -> Result<(), Why> {
        let column = |n: usize| self.storage(op.columns[n], 0);
        let call = match op.code {
            OpCode::Age => {
                let from = self.ranges[op.args[1].0 as usize];
                let all = from.hi <= i8::MIN.into();
                let by = a.remove(0);
                life::decay(column(0), by, (!all).then(|| a.remove(0)))
            }
            OpCode::MapLife => life::map([column(0), column(1), column(2)]),
            OpCode::Threshold => {
                let life = column(0);
                let name = op.out.and_then(|out| self.tape.name_of(out)).unwrap_or("threshold");
                let out = op.out.map(|out| self.fresh_name(out, name)).unwrap_or_default();
                victims::find_threshold(out, life, a.remove(0), a.remove(0))
            }
            OpCode::AppendLife(equal) => {
                let how = if equal { Comparison::Equal } else { Comparison::Less };
                let list = (column(0), self.len_name(op.columns[0]));
                victims::append_slots(list, column(1), how, [a.remove(0), a.remove(0)])
            }
            _ => return Err(Why::NoCall),
        };
        self.call(call);
        Ok(())
    }
}

/// Returns whether no operation changes a list between the read of its length and the last use of
/// that length.
fn lasts(len: Value, list: ColumnId, rest: &[Op]) -> bool {
    let uses = |op: &Op| op.all().any(|op| op.args.contains(&len));
    let writes = |op: &Op| {
        let mut roles = op.columns.iter().zip(op.code.signature().columns());
        roles.any(|(&id, (_, role))| id == list && role.writes())
    };
    let last = rest.iter().rposition(uses).map_or(0, |n| n + 1);
    !rest[..last].iter().flat_map(Op::all).any(writes)
}
