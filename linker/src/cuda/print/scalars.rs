//! Prints operations outside of sweeps that are not control: run-time scalars, and lists and lifetimes as a whole.

use super::names;
use super::page::{Print, signed};
use crate::names::camel;
use crate::tape::{Op, OpCode};

impl Print<'_> {
    /// Prints an operation outside of sweeps that is not control.
    pub fn whole(&mut self, op: &Op) {
        let arg = |n: usize| self.value(op.args[n]);
        let atom = |n: usize| self.atom(op.args[n]);
        let column = |n: usize| self.tape.column(op.columns[n]);
        let life = |n: usize| camel(&column(n).name);
        let value = match op.code {
            OpCode::Constant(n) => n.to_string(),
            OpCode::ScalarAdd => format!("{} + {}", atom(0), atom(1)),
            OpCode::ScalarSub => format!("{} - {}", atom(0), atom(1)),
            OpCode::ScalarMul => format!("{} * {}", atom(0), atom(1)),
            OpCode::ScalarAddTo(n) => format!("{} + {}", atom(0), signed(n)),
            OpCode::Max => format!("max({}, {})", arg(0), arg(1)),
            OpCode::Min => format!("min({}, {})", arg(0), arg(1)),
            OpCode::ScalarNe => format!("{} != {} ? 1 : 0", atom(0), atom(1)),
            OpCode::ScalarGt => format!("{} > {} ? 1 : 0", atom(0), atom(1)),
            OpCode::Len => names::length(column(0)),
            OpCode::Threshold => {
                format!("Threshold({}, {}, {}, scratch)", life(0), arg(0), arg(1))
            }
            OpCode::ReadOutput => format!("{}.Get({})", column(0).array(), self.word(op)),
            _ => return self.effect(op),
        };
        let Some(out) = op.out else { return };
        if let OpCode::Constant(_) = op.code {
            self.text.insert(out, value);
            return;
        }
        let otherwise = if op.code == OpCode::Len { "length" } else { "number" };
        let name = self.name(out, otherwise);
        self.line(&format!("const int {name} = {value};"));
    }

    fn effect(&mut self, op: &Op) {
        let column = |n: usize| self.tape.column(op.columns[n]);
        let name = |n: usize| camel(&column(n).name);
        let arg = |n: usize| self.value(op.args[n]);
        let text = match op.code {
            OpCode::Clear => format!("{} = 0;", names::length(column(0))),
            OpCode::MoveList => {
                let pairs = names::of_column(column(0)).zip(names::of_column(column(1)));
                let swaps = pairs.map(|(to, from)| format!("Exchange({to}, {from});\n"));
                let (to, from) = (names::length(column(0)), names::length(column(1)));
                format!("{}{to} = {from};\n{from} = 0;", swaps.collect::<String>())
            }
            OpCode::Age => format!("Age({}, {}, {});", name(0), arg(0), arg(1)),
            OpCode::MapLife => format!("MapLife({}, {}, {});", name(0), name(1), name(2)),
            OpCode::WriteOutput if column(0).resident => {
                let value = self.value(op.args[1]);
                format!("{}.Set({}, {value});", column(0).array(), self.word(op))
            }
            OpCode::WriteOutput => format!(
                "if (thread == 0) {{\n    gm.{}[{}] = {};\n}}",
                camel(column(0).array()),
                self.value(op.args[0]),
                self.value(op.args[1])
            ),
            _ => unreachable!("{}", self.tape.line(op)),
        };
        self.line(&text);
    }

    /// Returns the number of a word in its line.
    fn word(&self, op: &Op) -> String {
        let at = self.value(op.args[0]);
        match self.tape.column(op.columns[0]).at {
            Some(first) => format!("{at} - {}", self.value(first)),
            None => at,
        }
    }
}
