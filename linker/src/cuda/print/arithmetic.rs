//! Prints operations on the lanes of a thread that touch no memory.

use super::page::{Print, signed};
use crate::tape::{Op, OpCode, Type};

impl Print<'_> {
    /// Defines a value: a variable, or the text itself if one operation uses it.
    pub fn define(&mut self, op: &Op, text: String, ty: &str, name: &str) {
        let Some(out) = op.out else { return };
        let once = self.uses.get(&out).copied().unwrap_or(0) == 1;
        if op.columns.is_empty() && once && self.tape.name_of(out).is_none() && text.len() < 60 {
            self.text.insert(out, text);
            return;
        }
        let name = self.name(out, name);
        self.line(&format!("const {ty} {name} = {text};"));
    }

    /// Prints arithmetic on lanes.
    pub fn arithmetic(&mut self, op: &Op) {
        let arg = |n: usize| self.value(op.args[n]);
        let atom = |n: usize| self.atom(op.args[n]);
        let (ty, name) = match op.code.signature().out {
            Some(Type::Mask) => ("bool", "holds"),
            _ => ("int", "value"),
        };
        let two = |sign: &str| format!("{} {sign} {}", atom(0), atom(1));
        let with = |sign: &str, n: i32| format!("{} {sign} {}", atom(0), signed(n));
        let text = match op.code {
            OpCode::Iota => "i".into(),
            OpCode::Below(_) => arg(0),
            OpCode::Splat(n) => n.to_string(),
            OpCode::Add | OpCode::AddScalar => two("+"),
            OpCode::Sub | OpCode::SubScalar => two("-"),
            OpCode::Mul | OpCode::MulScalar => two("*"),
            OpCode::And => two("&"),
            OpCode::Or => two("|"),
            OpCode::MaskAnd => two("&&"),
            OpCode::MaskOr => two("||"),
            OpCode::MaskNot => format!("!{}", atom(0)),
            OpCode::AddTo(n) => with("+", n),
            OpCode::MulTo(n) => with("*", n),
            OpCode::AndTo(n) => format!("{} & {n:#x}", atom(0)),
            OpCode::OrTo(n) => format!("{} | {n:#x}", atom(0)),
            OpCode::Shr(n) if self.range(op.args[0]).lo >= 0 => with(">>", n.cast_signed()),
            OpCode::Shr(n) => format!("ShiftRight({}, {n})", arg(0)),
            OpCode::Madd(p, q) => format!("MultiplyAdd({}, {p}, {q})", arg(0)),
            OpCode::Select => format!("{} ? {} : {}", atom(0), atom(1), atom(2)),
            OpCode::Eq => two("=="),
            OpCode::IsNegative => format!("{} < 0", atom(0)),
            _ => unreachable!("{}", self.tape.line(op)),
        };
        let constant = matches!(op.code, OpCode::Iota | OpCode::Splat(_) | OpCode::Below(_));
        if let (true, Some(out)) = (constant, op.out) {
            self.text.insert(out, text);
            return;
        }
        self.define(op, text, ty, name);
    }
}
