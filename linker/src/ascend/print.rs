//! Prints calls as C++.

use crate::ascend::aiv::{
    Argument, Buffer, Call, Comparison, Copy, Element, Expr, FunctionCall, Global, Length, Loop,
    Node, Operation, Outcome, Pipe, Relation, Rounding, Scalar, Sync, Tensor, Type, Vector,
    VectorOp, View, word,
};
use avsg_device::request::record;
use avsg_device::state::header;
use std::fmt::{Display, Formatter};

/// Returns statements as indented lines of C++. A call is one line of any length.
pub fn lines(nodes: &[Node], depth: usize) -> String {
    let indent = "    ".repeat(depth);
    let ordered = |syncs: &[Sync], text: &str| -> String {
        let lines = syncs.iter().map(|&s| format!("{indent}{}\n", sync(s)));
        let text = text.lines().map(|line| format!("{indent}{line}\n"));
        lines.chain(text).collect()
    };
    let one = |node: &Node| match node {
        Node::Note(note) => ordered(&[], &format!("// {note}")),
        Node::Call(call) => ordered(&call.sync, &statement(call)),
        Node::Loop(l) => {
            let head = ordered(&l.sync, &format!("{} {{", head(l)));
            format!("{head}{}{indent}}}\n", lines(&l.body, depth + 1))
        }
        Node::If(branch) => {
            let head = format!("{indent}if ({}) {{\n", expr(&branch.condition));
            let body = lines(&branch.body, depth + 1);
            if branch.otherwise.is_empty() {
                return format!("{head}{body}{indent}}}\n");
            }
            let otherwise = lines(&branch.otherwise, depth + 1);
            format!("{head}{body}{indent}}} else {{\n{otherwise}{indent}}}\n")
        }
    };
    nodes.iter().map(one).collect()
}

fn head(l: &Loop) -> String {
    let (variable, bound) = (l.variable, within(&l.bound, Level::Compare));
    let step = l.width.map_or("++".into(), |width| format!(" += {}", expr(&width.constant())));
    format!("for (int32_t {variable} = 0; {variable} < {bound}; {variable}{step})")
}

fn pipe(pipe: Pipe) -> &'static str {
    match pipe {
        Pipe::S => "S",
        Pipe::V => "V",
        Pipe::Mte2 => "MTE2",
        Pipe::Mte3 => "MTE3",
    }
}

/// Returns a synchronisation as a statement.
pub fn sync(sync: Sync) -> String {
    match sync {
        Sync::Barrier(p) => format!("PipeBarrier<PIPE_{}>();", pipe(p)),
        Sync::Flag(a, b) => format!("SetWaitFlag<HardEvent::{}_{}>(EVENT_ID0);", pipe(a), pipe(b)),
    }
}

/// Returns a call as a statement, without the synchronisation before it.
pub fn statement(call: &Call) -> String {
    match &call.operation {
        Operation::Let(name, value) if value.is_condition() => {
            format!("const bool {name} = {};", expr(value))
        }
        Operation::Let(name, value) => format!("const int32_t {name} = {};", expr(value)),
        Operation::Assign(name, value) => format!("{name} = {};", expr(value)),
        Operation::SetWord { line, at, value } => {
            format!("{line}.SetValue({}, {});", word_of(line, at), expr(value))
        }
        Operation::Vector(vector) => instruction(vector),
        Operation::Copy(Copy { out: true, ub, gm, n }) => {
            format!("CopyOut({}, {}, {});", global(gm), tensor(ub), expr(n))
        }
        Operation::Copy(Copy { out: false, ub, gm, n }) => {
            format!("CopyIn({}, {}, {});", tensor(ub), global(gm), expr(n))
        }
        Operation::Function(call) => function(call),
    }
}

fn function(FunctionCall { function, args, outcome, .. }: &FunctionCall) -> String {
    let args: Vec<_> = args.iter().map(argument).collect();
    let call = format!("{}({})", function.name, args.join(", "));
    match outcome {
        Outcome::None => format!("{call};"),
        Outcome::Let(name) => format!("const int32_t {name} = {call};"),
        Outcome::Assign(name) => format!("{name} = {call};"),
        Outcome::Increase(name) => format!("{name} += {call};"),
        Outcome::Return => format!("if ({call}) {{\n    return;\n}}"),
    }
}

fn argument(argument: &Argument) -> String {
    match argument {
        Argument::Tensor(t) => tensor(t),
        Argument::Global(gm) => global(gm),
        Argument::Scalar(s) => scalar(s),
        Argument::Length(l) => length(l),
        Argument::Word(bits) => format!("{}_AT", word(*bits)),
        Argument::Column { first, last } => match (first, last) {
            (true, true) => "ONLY_COLUMN",
            (true, false) => "FIRST_COLUMN",
            (false, true) => "LAST_COLUMN",
            (false, false) => "MIDDLE_COLUMN",
        }
        .into(),
        Argument::Comparison(how) => comparison(*how).into(),
    }
}

/// Returns an instruction: its name, its destination and sources, and then the other arguments of
/// AscendC.
fn instruction(Vector { op, to, from, scalar: s, over }: &Vector) -> String {
    let scalar = s.as_ref().map(scalar);
    let (name, more) = match op {
        VectorOp::Add => ("Add", vec![]),
        VectorOp::Sub => ("Sub", vec![]),
        VectorOp::Mul => ("Mul", vec![]),
        VectorOp::Adds => ("Adds", vec![]),
        VectorOp::Muls => ("Muls", vec![]),
        VectorOp::Maxs => ("Maxs", vec![]),
        VectorOp::And => ("And", vec![]),
        VectorOp::Or => ("Or", vec![]),
        VectorOp::Not => ("Not", vec![]),
        VectorOp::ShiftLeft => ("ShiftLeft", vec![]),
        VectorOp::ShiftRight => ("ShiftRight", vec![]),
        VectorOp::Duplicate => ("Duplicate", vec![]),
        VectorOp::Gather => ("Gather", vec![]),
        VectorOp::Select => ("Select", vec!["SELMODE::VSEL_TENSOR_TENSOR_MODE"]),
        VectorOp::Compare(how) => ("Compare", vec![comparison(*how)]),
        VectorOp::Compares(how) => ("Compares", vec![comparison(*how)]),
        VectorOp::Cast(Rounding::Exact) => ("Cast", vec!["RoundMode::CAST_NONE"]),
        VectorOp::Cast(Rounding::Nearest) => ("Cast", vec!["RoundMode::CAST_RINT"]),
    };
    let mut args: Vec<_> = [to].into_iter().chain(from).map(tensor).collect();
    args.extend(scalar);
    args.extend(more.into_iter().map(String::from));
    args.push(length(over));
    format!("{name}({});", args.join(", "))
}

fn comparison(how: Comparison) -> &'static str {
    match how {
        Comparison::Equal => "CMPMODE::EQ",
        Comparison::Less => "CMPMODE::LT",
    }
}

fn length(length: &Length) -> String {
    match length {
        Length::Lanes => "lanes".into(),
        Length::HalfLanes => "2 * lanes".into(),
        Length::Repeats => "alignedLanes".into(),
        Length::MaskWords => "alignedLanes / 16".into(),
        Length::Of(n) => expr(n),
    }
}

fn scalar(Scalar { value, ty }: &Scalar) -> String {
    match (ty, value) {
        (Type::I32, _) => expr(value),
        (Type::U32, _) => format!("{}u", expr(value)),
        (Type::U16, Expr::Number(n)) if *n > 9 => format!("static_cast<uint16_t>({n:#x})"),
        (Type::U16, _) => format!("static_cast<uint16_t>({})", expr(value)),
        (Type::F16, Expr::Number(n)) => format!("static_cast<half>({n}.0f)"),
        (Type::F16, _) => format!("static_cast<half>(static_cast<float>({}))", expr(value)),
    }
}

fn global(Global { array, at, .. }: &Global) -> String {
    match at {
        Some(at) => format!("gm.{array}[{}]", expr(at)),
        None => format!("gm.{array}"),
    }
}

fn tensor(Tensor { buffer, tile, view }: &Tensor) -> String {
    let text = match buffer {
        Buffer::Named(name) => name.clone(),
        Buffer::Temp(n) => unreachable!("temporary {n} has no register; assign registers first"),
        Buffer::Placed { name, element, len } => {
            format!("Local<{element}>({}, {})", address(name), expr(len))
        }
    };
    let text = if *tile { format!("{text}[base]") } else { text };
    match view {
        View::Own => text,
        View::I32 => format!("{text}.ReinterpretCast<int32_t>()"),
        View::U32 => format!("U32({text})"),
        View::U16 => format!("U16({text})"),
        View::F32 => format!("F32({text})"),
        View::F16 => format!("F16({text})"),
    }
}

/// Returns the name of the constant that holds the address of a buffer.
pub fn address(name: &str) -> String {
    format!("{}_AT", name.to_uppercase())
}

impl Display for Element {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Word => "int32_t",
            Self::Half => "half",
            Self::Short => "int16_t",
            Self::Bits => "uint16_t",
            Self::Mask => "uint8_t",
            Self::Byte => "int8_t",
        })
    }
}

/// The precedence of an expression's operator, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Either,
    Compare,
    Sum,
    Product,
    Atom,
}

fn level(e: &Expr) -> Level {
    match e {
        Expr::Either(..) => Level::Either,
        Expr::Test(..) => Level::Compare,
        Expr::Sum(..) | Expr::Difference(..) => Level::Sum,
        Expr::Product(..) => Level::Product,
        _ => Level::Atom,
    }
}

/// Returns an expression without parentheses around it.
fn expr(e: &Expr) -> String {
    match e {
        Expr::Number(n) => n.to_string(),
        Expr::Name(name) => name.clone(),
        Expr::Field(name) => format!("q.{name}"),
        Expr::Constant(name) => (*name).into(),
        Expr::Word(line, at) => format!("{line}.GetValue({})", word_of(line, at)),
        Expr::Negative(a) => format!("-{}", within(a, Level::Atom)),
        Expr::Sum(a, b) => {
            format!("{} + {}", within(a, Level::Sum), within(b, Level::Product))
        }
        Expr::Difference(a, b) => {
            format!("{} - {}", within(a, Level::Sum), within(b, Level::Product))
        }
        // A product on the right needs no parentheses, because integer multiplication is
        // associative.
        Expr::Product(a, b) => {
            format!("{} * {}", within(a, Level::Product), within(b, Level::Product))
        }
        Expr::Max(a, b) => format!("ScalarMax({}, {})", expr(a), expr(b)),
        Expr::Min(a, b) => format!("ScalarMin({}, {})", expr(a), expr(b)),
        Expr::Test(relation, a, b) => {
            let sign = match relation {
                Relation::Differs => "!=",
                Relation::Equals => "==",
                Relation::Above => ">",
                Relation::NotAbove => "<=",
            };
            format!("{} {sign} {}", within(a, Level::Sum), within(b, Level::Sum))
        }
        Expr::Not(a) => format!("!{}", within(a, Level::Atom)),
        Expr::Either(a, b) => {
            format!("{} || {}", within(a, Level::Either), within(b, Level::Either))
        }
    }
}

/// Returns the index of a word of the header or record line: its constant in `avsg_geometry.h`,
/// if there is one.
fn word_of(line: &str, at: &Expr) -> String {
    let name = match (line, at) {
        ("header", Expr::Number(header::GENERATION)) => "HEADER_GENERATION",
        ("header", Expr::Number(header::TOP)) => "HEADER_TOP",
        ("header", Expr::Number(header::THRESHOLD)) => "HEADER_THRESHOLD",
        ("record", Expr::Number(record::TOTAL)) => "RECORD_TOTAL",
        ("record", Expr::Number(record::STATUS)) => "RECORD_STATUS",
        ("record", token) => return format!("RECORD_MISSES + {}", within(token, Level::Product)),
        _ => return expr(at),
    };
    name.into()
}

/// Returns an expression, in parentheses if its precedence is lower than `least`.
fn within(e: &Expr, least: Level) -> String {
    if level(e) < least { format!("({})", expr(e)) } else { expr(e) }
}
