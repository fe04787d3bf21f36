//! What values are called in the text: a tile's by where they go, else by what they are made of; scalars by
//! what they are made of.

use super::{Lower, camel};
use crate::tape::{Block, Code, Op, Tape, Type, Value};
use std::collections::BTreeMap;

/// The names of the vectors and masks that a sweep defines.
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

/// What the columns of a list hold.
fn item(list: &str, column: usize) -> &'static str {
    match (list, column) {
        ("pending" | "next", 1) => "lane",
        ("miss", 1) => "position",
        ("miss", 2) => "row",
        ("claim", 0) => "at",
        ("claim", 1) => "newLink",
        ("seek" | "seek_next", 1) | ("dead", _) => "candidate",
        _ => "x",
    }
}

impl Names<'_> {
    fn users(&self, v: Value) -> impl Iterator<Item = &Op> {
        self.ops.iter().filter(move |op| op.args.contains(&v))
    }

    fn column(&self, op: &Op) -> &str {
        op.columns.first().map_or("", |&id| &self.tape.column(id).name)
    }

    /// Where it goes: what an index points at, what a list's column holds, what is compared.
    fn goal(&self, v: Value) -> Option<&'static str> {
        let direct = |op: &Op| match op.code {
            Code::Gather if self.column(op) == "link" => Some("at"),
            Code::Gather | Code::LifeAt => Some("candidate"),
            Code::Lookup if op.args[3] == v => Some("page"),
            Code::Scatter if self.column(op) == "slot" && op.args[1] == v => Some("lane"),
            Code::Append => {
                let n = op.args[2..].iter().position(|&arg| arg == v)?;
                Some(item(self.column(op), n))
            }
            _ => None,
        };
        let onward = || {
            let mut users = self.users(v).filter(|op| op.out.is_some());
            let user = users.next().filter(|_| users.next().is_none())?;
            match user.code {
                Code::Eq if self.computed(v) => Some("print"),
                Code::EqTo(_) if self.computed(v) => Some("bit"),
                Code::Select if user.args[1] == v && self.computed(v) => self.goal(user.out?),
                _ if self.computed(user.out?) && user.args[0] == v => self.goal(user.out?),
                _ => None,
            }
        };
        let named = self.named(v);
        self.users(v).find_map(direct).or_else(|| if named.is_none() { onward() } else { None })
    }

    /// What a value is by the op that makes it, whatever becomes of it.
    fn named(&self, v: Value) -> Option<&'static str> {
        let op = self.defs.get(&v)?;
        Some(match op.code {
            Code::Gather if self.column(op) == "link" => "entry",
            Code::Gather => "held",
            Code::LifeAt => "lived",
            Code::Dot(..) => match self.defs.get(&op.args[0]).map(|x| x.code) {
                Some(Code::Dot(..)) => "stride",
                _ => "mixed",
            },
            Code::Iota => "lane",
            Code::Splat(_) => "fill",
            Code::Lookup => "block",
            Code::SubScalar => match self.param(op.args[1]) {
                "stable" => "fresh",
                "limit" => "over",
                _ => "beyond",
            },
            _ => return None,
        })
    }

    fn param(&self, v: Value) -> &str {
        self.tape.params.iter().find(|p| p.value == v).map_or("", |p| &p.name)
    }

    /// Whether it is plain arithmetic.
    fn computed(&self, v: Value) -> bool {
        self.named(v).is_none()
            && self.defs.get(&v).is_some_and(|op| op.columns.is_empty() && !op.args.is_empty())
    }

    /// What it is made of.
    fn source(&self, v: Value) -> &'static str {
        let first = || {
            let op = self.defs.get(&v).filter(|op| op.columns.is_empty())?;
            let vector = |v: &&Value| self.tape.type_of(**v) == Type::Vector;
            let constant = |v: &Value| self.named(*v) == Some("fill");
            Some(self.source(*op.args.iter().filter(vector).min_by_key(|&v| constant(v))?))
        };
        self.named(v).or_else(first).unwrap_or("x")
    }

    fn mask(&self, v: Value) -> String {
        let capital = |name: &str| camel(&format!("_{name}"));
        let list = |v: Value| {
            let append = self.users(v).find(|op| op.code == Code::Append && op.args[1] == v)?;
            Some(capital(self.column(append)))
        };
        let turned = || {
            let not = self.users(v).find(|op| op.code == Code::MaskNot)?;
            list(not.out?)
        };
        let op = &self.defs[&v];
        let held = |v: &Value| {
            self.defs.get(v).is_some_and(|d| d.code == Code::Gather && self.column(d) == "id")
        };
        match (list(v), turned(), op.code) {
            (Some(list), _, _) => format!("is{list}"),
            (_, _, Code::Eq) if op.args.iter().any(held) => "hit".into(),
            (_, _, Code::Eq | Code::EqTo(_)) => "equal".into(),
            (_, Some(list), _) => format!("not{list}"),
            (_, _, Code::Neg) => "negative".into(),
            (_, _, Code::MaskNot) => {
                let name = self.mask(op.args[0]);
                let turned = name.strip_prefix("not").map(str::to_lowercase);
                turned.unwrap_or_else(|| format!("not{}", capital(&name)))
            }
            _ => self.mask(op.args[0]),
        }
    }
}

impl Lower<'_> {
    /// What a scalar is called that is used more than once.
    pub(super) fn scalar_name(&self, op: &Op) -> String {
        let capital = |name: &str| camel(&format!("_{name}"));
        let list = |v: &Value| {
            let len = self.defs.get(v).filter(|d| d.code == Code::Len)?;
            Some(capital(&self.tape.column(len.columns[0]).name))
        };
        let param = |v: &Value| Some(&self.tape.params.iter().find(|p| p.value == *v)?.name);
        match op.code {
            Code::ScalarMul if param(&op.args[0]).is_some_and(|name| name == "shared") => {
                "shares".into()
            }
            Code::ScalarMul if param(&op.args[0]).is_some_and(|name| name == "part_len") => {
                "part".into()
            }
            Code::ScalarMul if param(&op.args[0]).is_some_and(|name| name == "k") => {
                let one = self.defs.get(&op.args[1]).is_some_and(|d| d.code == Code::ScalarSub);
                if one { "own" } else { "sharedRow" }.into()
            }
            Code::ScalarMul if self.defs.contains_key(&op.args[0]) => "waits".into(),
            Code::ScalarMul => "first".into(),
            Code::IfNe(n) | Code::IfGt(n) if n > 1 => "allOrNone".into(),
            Code::IfGt(_) if list(&op.args[0]).is_some() => {
                list(&op.args[0]).map_or(String::new(), |list| format!("many{list}"))
            }
            Code::IfNe(_) | Code::IfGt(_) => {
                let of = op.args.iter().find_map(param);
                of.map_or_else(|| "other".into(), |name| format!("not{}", capital(name)))
            }
            _ => op.args.iter().find_map(param).map_or_else(|| "sum".into(), |name| camel(name)),
        }
    }
}
