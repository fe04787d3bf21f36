//! Prints operations outside of sweeps that are not control: on lists, on lifetimes and on words of global memory.

use super::names::{global, length, of_column};
use super::page::Print;
use crate::names::camel;
use crate::tape::{Op, OpCode};

impl Print<'_> {
    /// Prints an operation outside of sweeps that is not control.
    pub fn whole(&mut self, op: &Op) {
        let arg = |n: usize| self.value(op.args[n]);
        let column = |n: usize| self.tape.column(op.columns[n]);
        let name = |n: usize| camel(&column(n).name);
        // The number of a word in its line.
        let word = || match column(0).at {
            Some(first) => format!("{} - {}", arg(0), self.value(first)),
            None => arg(0),
        };
        let text = match op.code {
            OpCode::Len => return self.define(op, length(column(0)), "length"),
            OpCode::Threshold => {
                let text = format!("Threshold({}, {}, {}, scratch)", name(0), arg(0), arg(1));
                return self.define(op, text, "number");
            }
            OpCode::ReadOutput => {
                let text = format!("{}.Get({})", column(0).array(), word());
                return self.define(op, text, "number");
            }
            OpCode::Clear => format!("{} = 0;", length(column(0))),
            OpCode::MoveList => {
                let pairs = of_column(column(0)).into_iter().zip(of_column(column(1)));
                let swaps = pairs.map(|(to, from)| format!("Exchange({to}, {from});\n"));
                let (to, from) = (length(column(0)), length(column(1)));
                format!("{}{to} = {from};\n{from} = 0;", swaps.collect::<String>())
            }
            OpCode::Age => format!("Age({}, {}, {});", name(0), arg(0), arg(1)),
            OpCode::MapLife => format!("MapLife({}, {}, {});", name(0), name(1), name(2)),
            OpCode::WriteOutput if column(0).resident => {
                format!("{}.Set({}, {});", column(0).array(), word(), arg(1))
            }
            OpCode::WriteOutput => {
                format!("if (thread == 0) {{\n{}[{}] = {};\n}}", global(column(0)), arg(0), arg(1))
            }
            _ => return self.arithmetic(op),
        };
        self.line(&text);
    }
}
