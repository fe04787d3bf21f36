//! Chooses the names of values in the emitted text: the name that the kernel gives, else that of
//! the list that the value is appended to or of the column that it comes from, else that of the
//! operation.

use super::Lower;
use crate::names::camel;
use crate::tape::{Block, ColumnId, Op, OpCode, Tape, Type, Value};
use std::collections::BTreeMap;

/// Returns the names of the vectors and masks that a sweep defines.
pub fn of(tape: &Tape, defs: &BTreeMap<Value, Op>, body: &Block) -> BTreeMap<Value, String> {
    let names = Names { tape, defs, ops: &body.ops };
    let name = |op: &Op| {
        let out = op.out?;
        let mask = op.code.signature().out == Some(Type::Mask);
        let vector = || names.goal(out).unwrap_or_else(|| names.source(out)).into();
        Some((out, if mask { names.mask(out) } else { vector() }))
    };
    body.ops.iter().filter_map(name).collect()
}

struct Names<'t> {
    tape: &'t Tape,
    defs: &'t BTreeMap<Value, Op>,
    ops: &'t [Op],
}

impl Names<'_> {
    fn users(&self, v: Value) -> impl Iterator<Item = &Op> {
        self.ops.iter().filter(move |op| op.args.contains(&v))
    }

    /// Returns the name of the items in a column of the tape, or of a list.
    fn item(&self, id: ColumnId, column: usize) -> Option<&'static str> {
        self.tape.column(id).items.get(column).copied()
    }

    /// Returns the name that the kernel gives, else that of the list that the value is appended to,
    /// else that of its only user.
    fn goal(&self, v: Value) -> Option<&'static str> {
        let appended = |op: &Op| {
            let list = *op.columns.first().filter(|_| op.code == OpCode::Append)?;
            self.item(list, op.args[2..].iter().position(|&arg| arg == v)?)
        };
        let given = self.tape.name_of(v).or_else(|| self.users(v).find_map(appended));
        let onward = || {
            let mut users = self.users(v);
            let user = users.next().filter(|_| users.next().is_none())?;
            self.goal(user.out.filter(|_| self.computed(user) && user.args[0] == v)?)
        };
        given.or_else(|| if self.computed(self.defs.get(&v)?) { onward() } else { None })
    }

    /// Returns whether an operation is arithmetic on vectors.
    fn computed(&self, op: &Op) -> bool {
        let vector = |v: &Value| self.tape.type_of(*v) == Type::Vector;
        op.columns.is_empty()
            && op.code.signature().out == Some(Type::Vector)
            && op.args.iter().any(vector)
    }

    /// Returns a name from the operation that makes the value, or from its operands.
    fn source(&self, v: Value) -> &'static str {
        let op = &self.defs[&v];
        let column_item = || op.columns.first().and_then(|&id| self.item(id, column(op.code)));
        let operand = || {
            let vectors = op.args.iter().filter(|&&v| self.tape.type_of(v) == Type::Vector);
            let made = |v: &&Value| {
                self.defs.get(v).is_some_and(|op| !matches!(op.code, OpCode::Splat(_)))
            };
            let first = vectors.clone().find(made).or(vectors.clone().next());
            first.map(|&v| self.tape.name_of(v).unwrap_or_else(|| self.source(v)))
        };
        match op.code {
            OpCode::Iota => "lane",
            OpCode::Splat(_) => "fill",
            OpCode::GatherLife => "lived",
            _ => column_item().or_else(operand).unwrap_or("value"),
        }
    }

    fn mask(&self, v: Value) -> String {
        let capital = |name: &str| camel(&format!("_{name}"));
        let list = |v: Value| {
            let append = self.users(v).find(|op| op.code == OpCode::Append && op.args[1] == v)?;
            Some(capital(&self.tape.column(append.columns[0]).name))
        };
        let negated = || {
            let not = self.users(v).find(|op| op.code == OpCode::MaskNot)?;
            list(not.out?)
        };
        if let Some(name) = self.tape.name_of(v) {
            return name.into();
        }
        let op = &self.defs[&v];
        match (list(v), negated(), op.code) {
            (Some(list), _, _) => format!("is{list}"),
            (_, _, OpCode::Eq) => "equal".into(),
            (_, Some(list), _) => format!("not{list}"),
            (_, _, OpCode::IsNegative) => "negative".into(),
            (_, _, OpCode::MaskNot) => {
                let name = self.mask(op.args[0]);
                let positive = name.strip_prefix("not").map(str::to_lowercase);
                let bare = name.strip_prefix("is").unwrap_or(&name);
                positive.unwrap_or_else(|| format!("not{}", capital(bare)))
            }
            _ => self.mask(op.args[0]),
        }
    }
}

/// Returns the column of a list that an operation reads.
fn column(code: OpCode) -> usize {
    if let OpCode::Item(column) = code { column } else { 0 }
}

impl Lower<'_> {
    /// Returns the name of a scalar that is used more than once.
    pub(super) fn scalar_name(&self, op: &Op) -> String {
        let param = |v: &Value| Some(&self.tape.params.iter().find(|p| p.value == *v)?.name);
        let named = op.out.and_then(|out| self.tape.name_of(out)).map(String::from);
        named
            .or_else(|| op.args.iter().find_map(param).map(|name| camel(name)))
            .unwrap_or("sum".into())
    }
}
