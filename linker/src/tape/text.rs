//! The text of a tape: one op per line, with indented blocks. Goldens and error messages contain
//! it.

use super::operations::operations;
use super::{Block, Kind, Op, OpCode, Range, Rule, Tape, Type, Value};
use std::fmt::{Display, Formatter, Result};

impl Display for Range {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if *self == Self::ANY {
            return f.write_str("any");
        }
        write!(f, "{}..={}", self.lo, self.hi)
    }
}

impl Display for Tape {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        writeln!(f, "tape {}: {} ops\n", self.name, self.body.all().count())?;
        for c in &self.columns {
            let ranges: Vec<String> = c.ranges.iter().map(Range::to_string).collect();
            let (name, len, ranges) = (&c.name, c.len, ranges.join(", "));
            match c.kind {
                Kind::Words => writeln!(f, "column {name}: {len} words, {ranges}")?,
                Kind::Life => writeln!(f, "life   {name}: {len} bytes")?,
                Kind::List { width: 0 } => writeln!(f, "list   {name}: a counter up to {len}")?,
                Kind::List { width } => {
                    writeln!(f, "list   {name}: {len} x {width} words, {ranges}")?;
                }
                Kind::Input => writeln!(f, "input  {name}: {ranges}")?,
                Kind::Output => writeln!(f, "output {name}: {ranges}")?,
            }
        }
        for p in &self.params {
            writeln!(f, "param  {}: {}", p.name, p.range)?;
        }
        writeln!(f)?;
        self.write_block(f, &self.body, 0)
    }
}

/// Returns the next operand of an op that is printed. One may be missing, because the checker prints
/// malformed ops too.
macro_rules! operand {
    ($values:ident, $columns:ident, [Vector; W]) => {
        $values.by_ref().collect::<Vec<_>>()
    };
    ($values:ident, $columns:ident, ($($column:tt)+)) => {
        $columns.next().unwrap_or("?")
    };
    ($values:ident, $columns:ident, $value:ident) => {
        $values.next().unwrap_or("?".into())
    };
}

/// Defines the text of each op from the table.
macro_rules! texts {
    ($($section:ident { $(
        $code:ident = $($method:ident)* $([$($generic:tt)*])?
            ($($arg:ident: $kind:tt),* $(; $($constant:ident: $ty:ty),+)?)
            $(-> $out:ident)? $(|$bound:ident: $binds:ident|)?, $($text:expr),+;
    )* })*) => {
        /// Returns the text of an op without what it defines, with the text that `name` gives to each value.
        #[expect(unused_variables, reason = "few texts have a tile")]
        pub(crate) fn expression(&self, op: &Op, name: &dyn Fn(Value) -> String) -> String {
            let mut values = op.args.iter().map(|&v| name(v));
            let mut columns =
                op.columns.iter().map(|id| self.columns.get(id.0 as usize).map_or("?", |c| &c.name));
            match op.code {
                $($(OpCode::$code $(($($constant),+))? => {
                    $(let $arg = operand!(values, columns, $kind);)*
                    $(let $bound = op.blocks.first().and_then(|b| b.binds).map(name)
                        .unwrap_or_default();)?
                    format!($($text),+)
                })*)*
            }
        }
    };
}

impl Tape {
    operations!(texts);

    /// Returns the text of a value: the letter of its type and its number, or the name of a
    /// parameter.
    fn name(&self, value: Value) -> String {
        if let Some(p) = self.params.iter().find(|p| p.value == value) {
            return p.name.clone();
        }
        let letter = match self.types.get(value.0 as usize) {
            Some(Type::Vector) => 'v',
            Some(Type::Mask) => 'm',
            Some(Type::Scalar) => 's',
            Some(Type::Tile) => 't',
            None => '?',
        };
        format!("{letter}{}", value.0)
    }

    /// Returns the text of an op without its block.
    pub fn line(&self, op: &Op) -> String {
        let text = self.expression(op, &|v| self.name(v));
        op.out.map_or(text.clone(), |out| format!("{} = {text}", self.name(out)))
    }

    fn write_block(&self, f: &mut Formatter<'_>, block: &Block, depth: usize) -> Result {
        let indent = "  ".repeat(depth);
        for op in &block.ops {
            writeln!(f, "{indent}{}", self.line(op))?;
            if let OpCode::StepLife(Rule(rule)) = op.code {
                for row in rule.chunks(16) {
                    let row: Vec<String> = row.iter().map(|b| format!("{b:4}")).collect();
                    writeln!(f, "{indent}  {}", row.join(" "))?;
                }
            }
            for (n, block) in op.blocks.iter().filter(|block| !block.ops.is_empty()).enumerate() {
                if n == 1 {
                    writeln!(f, "{indent}else")?;
                }
                self.write_block(f, block, depth + 1)?;
            }
        }
        Ok(())
    }
}
