//! The text of a tape: one op per line, with indented blocks. Goldens and error messages contain
//! it.

use super::{Block, ColumnId, Kind, Op, OpCode, Range, Tape, Type, Value};
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
        writeln!(f, "tape {}: {} ops\n", self.name, self.len())?;
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
        for (n, rule) in self.rules.iter().enumerate() {
            writeln!(f, "rule {n}:")?;
            for row in rule.chunks(16) {
                let row: Vec<String> = row.iter().map(|b| format!("{b:4}")).collect();
                writeln!(f, "   {}", row.join(" "))?;
            }
        }
        writeln!(f)?;
        self.write_block(f, &self.body, 0)
    }
}

impl Tape {
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
        let text = self.expression(op);
        op.out.map_or(text.clone(), |out| format!("{} = {text}", self.name(out)))
    }

    fn expression(&self, op: &Op) -> String {
        let mut a: Vec<String> = op.args.iter().map(|&v| self.name(v)).collect();
        let known = |id: &ColumnId| self.columns.get(id.0 as usize).map_or("?", |c| &c.name);
        let mut c: Vec<&str> = op.columns.iter().map(known).collect();
        // Operands may be missing, because the checker prints malformed ops too.
        let signature = op.code.signature();
        a.resize(a.len().max(signature.args.len()), "?".into());
        c.resize(c.len().max(signature.columns.len()), "?");
        let binds =
            op.body.as_ref().and_then(|b| b.binds).map_or_else(String::new, |b| self.name(b));
        match op.code {
            OpCode::Constant(n) => n.to_string(),
            OpCode::Splat(n) => format!("splat {n}"),
            OpCode::ScalarAdd | OpCode::Add | OpCode::AddScalar => format!("{} + {}", a[0], a[1]),
            OpCode::ScalarSub | OpCode::Sub | OpCode::SubScalar => format!("{} - {}", a[0], a[1]),
            OpCode::ScalarMul | OpCode::Mul | OpCode::MulScalar => format!("{} * {}", a[0], a[1]),
            OpCode::And | OpCode::MaskAnd => format!("{} & {}", a[0], a[1]),
            OpCode::Or | OpCode::MaskOr => format!("{} | {}", a[0], a[1]),
            OpCode::ScalarAddTo(n) | OpCode::AddTo(n) => format!("{} + {n}", a[0]),
            OpCode::MulTo(n) => format!("{} * {n}", a[0]),
            OpCode::AndTo(n) => format!("{} & {n:#x}", a[0]),
            OpCode::OrTo(n) => format!("{} | {n:#x}", a[0]),
            OpCode::Max => format!("max({}, {})", a[0], a[1]),
            OpCode::Min => format!("min({}, {})", a[0], a[1]),
            OpCode::ScalarNe => format!("{} != {}", a[0], a[1]),
            OpCode::ScalarGt => format!("{} > {}", a[0], a[1]),
            OpCode::ScalarNot => format!("1 - {}", a[0]),
            OpCode::When => format!("when {}", a[0]),
            OpCode::Phase(phase, does) => format!("# {phase}: {does}"),
            OpCode::Sweep => format!("sweep {} |{binds}|", a[0]),
            OpCode::Repeat { max } => format!("repeat {}, at most {max} |{binds}|", a[0]),
            OpCode::Bisect => format!("bisect from {} until {} |{binds}|", a[0], a[1]),
            OpCode::Iota => format!("iota {}", a[0]),
            OpCode::Shr(n) => format!("{} >> {n}", a[0]),
            OpCode::LowBits(n) => format!("low {n} of {}", a[0]),
            OpCode::Madd(p, q) => format!("madd {} by {p}, {q}", a[0]),
            OpCode::Select => format!("select {} ? {} : {}", a[0], a[1], a[2]),
            OpCode::Eq => format!("{} == {}", a[0], a[1]),
            OpCode::EqTo(n) => format!("{} == {n}", a[0]),
            OpCode::IsNegative => format!("{} < 0", a[0]),
            OpCode::MaskNot => format!("!{}", a[0]),
            OpCode::Load => format!("load {}[{}]", c[0], a[0]),
            OpCode::Store => format!("store {}[{}] = {}", c[0], a[0], a[1]),
            OpCode::Gather => format!("gather {}[{}]", c[0], a[0]),
            OpCode::Scatter => format!("scatter {}[{}] = {} where {}", c[0], a[1], a[2], a[3]),
            OpCode::Len => format!("len {}", c[0]),
            OpCode::Clear => format!("clear {}", c[0]),
            OpCode::Item(n) => format!("item {}.{n}[{}]", c[0], a[0]),
            OpCode::Append if a.len() == 2 => format!("count {} where {}", c[0], a[1]),
            OpCode::Append => format!("append {} <- {} where {}", c[0], a[2..].join(", "), a[1]),
            OpCode::Take => format!("take {} <- {}", c[0], c[1]),
            OpCode::Find(n) => {
                let [out, sequence, id] = [c[0], c[1], c[2]];
                format!(
                    "find {out} <- {id} by {sequence}, {} ids, {n} retries, in {}, {}",
                    a[0], c[3], c[4]
                )
            }
            OpCode::FindFree(n) => {
                let [out, sequence] = [c[0], c[1]];
                format!(
                    "find {out} <- free by {sequence}, {} ids, {n} retries, in {}, {}",
                    a[0], c[2], c[3]
                )
            }
            OpCode::Age { settle: false } => format!("age {} by {}", c[0], a[0]),
            OpCode::Age { settle: true } => format!("age {} by {}, settling", c[0], a[0]),
            OpCode::CountLe => format!("count {} <= {}", c[0], a[0]),
            OpCode::AppendLt => format!("append {} <- {} < {}, until {}", c[0], c[1], a[0], a[1]),
            OpCode::AppendEq => format!("append {} <- {} == {}, until {}", c[0], c[1], a[0], a[1]),
            OpCode::GatherLife => format!("gather {}[{}]", c[0], a[0]),
            OpCode::SetLife(n) => format!("scatter {}[{}] = {n} where {}", c[0], a[1], a[2]),
            OpCode::StepLife(n) => format!("step {}[{}] by rule {n} where {}", c[0], a[1], a[2]),
            OpCode::ReadInput => format!("read {}[{}]", c[0], a[0]),
            OpCode::ReadOutput => format!("read {}[{}]", c[0], a[0]),
            OpCode::WriteOutput => format!("write {}[{}] = {}", c[0], a[0], a[1]),
            OpCode::Fetch => format!("fetch {} <- {}[{}], {} words", c[0], c[1], a[0], a[1]),
            OpCode::Publish => format!("publish {}[{}] <- {}, {} words", c[0], a[0], c[1], a[1]),
            OpCode::PublishList(n) => format!("publish {}[{}] <- {}.{n}", c[0], a[0], c[1]),
            OpCode::Share => {
                let row = format!("{}[{} + {}], {} words", c[1], a[0], a[1], a[2]);
                format!("share {row} <- {}; {} <- {} words", c[0], c[0], a[3])
            }
            OpCode::Lookup => {
                format!("lookup {}[{} + {}] below {} where {}", c[0], a[1], a[3], a[2], a[4])
            }
        }
    }

    fn write_block(&self, f: &mut Formatter<'_>, block: &Block, depth: usize) -> Result {
        let indent = "  ".repeat(depth);
        for op in &block.ops {
            writeln!(f, "{indent}{}", self.line(op))?;
            if let Some(body) = &op.body {
                self.write_block(f, body, depth + 1)?;
            }
        }
        block.yields.map_or(Ok(()), |y| writeln!(f, "{indent}yield {}", self.name(y)))
    }
}
