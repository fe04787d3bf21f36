//! Prints operations that touch no memory, on the lanes of a thread or on run-time scalars.

use super::page::Print;
use crate::tape::{Op, OpCode, Type};

impl Print<'_> {
    /// Prints arithmetic: as in the text of a tape, where C++ spells it so too.
    pub fn arithmetic(&mut self, op: &Op) {
        let arg = |n: usize| self.value(op.args[n]);
        let atom = |n: usize| self.atom(op.args[n]);
        let same = || self.tape.expression(op, &|v| self.atom(v));
        let text = match op.code {
            OpCode::Iota => "i".into(),
            OpCode::Below(_) => arg(0),
            OpCode::Splat(n) | OpCode::Constant(n) => n.to_string(),
            OpCode::MaskAnd => format!("{} && {}", atom(0), atom(1)),
            OpCode::MaskOr => format!("{} || {}", atom(0), atom(1)),
            OpCode::AddTo(n) | OpCode::ScalarAddTo(n) if n < 0 => format!("{} + ({n})", atom(0)),
            OpCode::MulTo(n) if n < 0 => format!("{} * ({n})", atom(0)),
            OpCode::Shr(n) if self.range(op.args[0]).lo < 0 => {
                format!("ShiftRight({}, {n})", arg(0))
            }
            OpCode::Madd(p, q) => format!("MultiplyAdd({}, {p}, {q})", arg(0)),
            OpCode::Select => format!("{} ? {} : {}", atom(0), atom(1), atom(2)),
            OpCode::ScalarNe | OpCode::ScalarGt => format!("{} ? 1 : 0", same()),
            OpCode::Max | OpCode::Min => self.tape.expression(op, &|v| self.value(v)),
            _ => same(),
        };
        match (op.code, op.code.signature().out, op.out) {
            (
                OpCode::Iota | OpCode::Below(_) | OpCode::Splat(_) | OpCode::Constant(_),
                _,
                Some(out),
            ) => {
                self.text.insert(out, text);
            }
            (_, Some(Type::Mask), _) => self.define(op, text, "holds"),
            (_, Some(Type::Scalar), _) => self.define(op, text, "number"),
            _ => self.define(op, text, "value"),
        }
    }
}
