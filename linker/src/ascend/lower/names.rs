//! Chooses the names of values in the emitted text: the name that the kernel gives, else that of the
//! list's column that the value is appended to, else that of the column that it comes from, else one for
//! its operation.

use super::Lower;
use crate::ascend::names::camel;
use crate::tape::{Block, ColumnId, Op, OpCode, Tape, Type, Value};
use std::collections::BTreeMap;

/// Returns the names of the vectors and masks that a sweep defines.
pub fn of(tape: &Tape, body: &Block) -> BTreeMap<Value, String> {
    let item = |id: ColumnId, column: usize| tape.column(id).items.get(column).copied();
    let appended = |v: Value| {
        body.ops.iter().find_map(|op| {
            let list = *op.columns.first().filter(|_| op.code == OpCode::Append)?;
            item(list, op.args[2..].iter().position(|&arg| arg == v)?)
        })
    };
    let name = |op: &Op| {
        let out = op.out?;
        let column = if let OpCode::Item(column) = op.code { column } else { 0 };
        let from = || op.columns.first().and_then(|&id| item(id, column));
        let other = || match op.code {
            OpCode::Iota => "lane",
            OpCode::Splat(_) => "fill",
            OpCode::GatherLife => "lived",
            _ if op.code.signature().out == Some(Type::Mask) => "mask",
            _ => "value",
        };
        let name = tape.name_of(out).or_else(|| appended(out)).or_else(from).unwrap_or_else(other);
        Some((out, name.into()))
    };
    body.ops.iter().filter_map(name).collect()
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
