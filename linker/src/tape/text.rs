//! How a tape prints: one op a line, blocks indented. Goldens and error messages are this text.

use super::{Block, Code, ColumnId, Kind, Op, Range, Tape, Type, Value};
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
    /// A value as text: its type's letter and number, or a parameter's name.
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

    /// One op as text, without its block.
    pub fn line(&self, op: &Op) -> String {
        let text = self.expression(op);
        op.out.map_or(text.clone(), |out| format!("{} = {text}", self.name(out)))
    }

    fn expression(&self, op: &Op) -> String {
        let mut a: Vec<String> = op.args.iter().map(|&v| self.name(v)).collect();
        let known = |id: &ColumnId| self.columns.get(id.0 as usize).map_or("?", |c| &c.name);
        let mut c: Vec<&str> = op.columns.iter().map(known).collect();
        // The checker prints malformed ops too.
        let signature = op.code.signature();
        a.resize(a.len().max(signature.args.len()), "?".into());
        c.resize(c.len().max(signature.columns.len()), "?");
        let binds =
            op.body.as_ref().and_then(|b| b.binds).map_or_else(String::new, |b| self.name(b));
        match op.code {
            Code::Constant(n) => n.to_string(),
            Code::Splat(n) => format!("splat {n}"),
            Code::ScalarAdd | Code::Add | Code::AddScalar => format!("{} + {}", a[0], a[1]),
            Code::ScalarSub | Code::Sub | Code::SubScalar => format!("{} - {}", a[0], a[1]),
            Code::ScalarMul | Code::Mul | Code::MulScalar => format!("{} * {}", a[0], a[1]),
            Code::And | Code::MaskAnd => format!("{} & {}", a[0], a[1]),
            Code::Or | Code::MaskOr => format!("{} | {}", a[0], a[1]),
            Code::ScalarAddTo(n) | Code::AddTo(n) => format!("{} + {n}", a[0]),
            Code::MulTo(n) => format!("{} * {n}", a[0]),
            Code::AndTo(n) => format!("{} & {n:#x}", a[0]),
            Code::OrTo(n) => format!("{} | {n:#x}", a[0]),
            Code::Max => format!("max({}, {})", a[0], a[1]),
            Code::Min => format!("min({}, {})", a[0], a[1]),
            Code::ScalarNe => format!("{} != {}", a[0], a[1]),
            Code::ScalarGt => format!("{} > {}", a[0], a[1]),
            Code::ScalarNot => format!("1 - {}", a[0]),
            Code::When => format!("when {}", a[0]),
            Code::Phase(phase, does) => format!("# {phase}: {does}"),
            Code::Sweep => format!("sweep {} |{binds}|", a[0]),
            Code::Repeat { max } => format!("repeat {}, at most {max} |{binds}|", a[0]),
            Code::Bisect => format!("bisect from {} until {} |{binds}|", a[0], a[1]),
            Code::Iota => format!("iota {}", a[0]),
            Code::Shr(n) => format!("{} >> {n}", a[0]),
            Code::Low(n) => format!("low {n} of {}", a[0]),
            Code::Dot(p, q) => format!("dot {} by {p}, {q}", a[0]),
            Code::Select => format!("select {} ? {} : {}", a[0], a[1], a[2]),
            Code::Eq => format!("{} == {}", a[0], a[1]),
            Code::EqTo(n) => format!("{} == {n}", a[0]),
            Code::Neg => format!("{} < 0", a[0]),
            Code::MaskNot => format!("!{}", a[0]),
            Code::Load => format!("load {}[{}]", c[0], a[0]),
            Code::Store => format!("store {}[{}] = {}", c[0], a[0], a[1]),
            Code::Gather => format!("gather {}[{}]", c[0], a[0]),
            Code::Scatter => format!("scatter {}[{}] = {} where {}", c[0], a[1], a[2], a[3]),
            Code::Len => format!("len {}", c[0]),
            Code::Clear => format!("clear {}", c[0]),
            Code::Item(n) => format!("item {}.{n}[{}]", c[0], a[0]),
            Code::Append if a.len() == 2 => format!("count {} where {}", c[0], a[1]),
            Code::Append => format!("append {} <- {} where {}", c[0], a[2..].join(", "), a[1]),
            Code::Take => format!("take {} <- {}", c[0], c[1]),
            Code::Find(n) => {
                let [out, sequence, id] = [c[0], c[1], c[2]];
                format!(
                    "find {out} <- {id} by {sequence}, {} ids, {n} retries, in {}, {}",
                    a[0], c[3], c[4]
                )
            }
            Code::FindFree(n) => {
                let [out, sequence] = [c[0], c[1]];
                format!(
                    "find {out} <- free by {sequence}, {} ids, {n} retries, in {}, {}",
                    a[0], c[2], c[3]
                )
            }
            Code::Age { settle: false } => format!("age {} by {}", c[0], a[0]),
            Code::Age { settle: true } => format!("age {} by {}, settling", c[0], a[0]),
            Code::CountLe => format!("count {} <= {}", c[0], a[0]),
            Code::AppendLt => format!("append {} <- {} < {}, until {}", c[0], c[1], a[0], a[1]),
            Code::AppendEq => format!("append {} <- {} == {}, until {}", c[0], c[1], a[0], a[1]),
            Code::LifeAt => format!("gather {}[{}]", c[0], a[0]),
            Code::SetLife(n) => format!("scatter {}[{}] = {n} where {}", c[0], a[1], a[2]),
            Code::StepLife(n) => format!("step {}[{}] by rule {n} where {}", c[0], a[1], a[2]),
            Code::Get => format!("get {}[{}]", c[0], a[0]),
            Code::Peek => format!("peek {}[{}]", c[0], a[0]),
            Code::Put => format!("put {}[{}] = {}", c[0], a[0], a[1]),
            Code::Fetch => format!("fetch {} <- {}[{}], {} words", c[0], c[1], a[0], a[1]),
            Code::Publish => format!("publish {}[{}] <- {}, {} words", c[0], a[0], c[1], a[1]),
            Code::PublishList(n) => format!("publish {}[{}] <- {}.{n}", c[0], a[0], c[1]),
            Code::Share => {
                let row = format!("{}[{} + {}], {} words", c[1], a[0], a[1], a[2]);
                format!("share {row} <- {}; {} <- {} words", c[0], c[0], a[3])
            }
            Code::Lookup => {
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
