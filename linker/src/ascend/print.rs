//! Prints calls as C++.

mod definition;
mod words;

pub use definition::definition;

use crate::ascend::aiv::{
    Argument, Buffer, Call, Comparison, Expr, FunctionCall, Global, Loop, Node, Operation,
    Operator, Pipe, Rounding, Scalar, Set, Step, Sync, Temp, Tensor, Type, Vector, VectorOp, word,
};
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
        Node::If { condition, body, otherwise } => {
            let head = format!("{indent}if ({}) {{\n", expr(condition));
            let body = lines(body, depth + 1);
            if otherwise.is_empty() {
                return format!("{head}{body}{indent}}}\n");
            }
            let otherwise = lines(otherwise, depth + 1);
            format!("{head}{body}{indent}}} else {{\n{otherwise}{indent}}}\n")
        }
    };
    nodes.iter().map(one).collect()
}

fn head(Loop { variable, from, bound, only, step, .. }: &Loop) -> String {
    let step = match step {
        Step::By(Expr::Number(1)) => "++".into(),
        Step::By(n) => format!(" += {}", expr(n)),
        Step::Double => " *= 2".into(),
        Step::Sweep(width) => format!(" += {}", expr(width.constant())),
    };
    let (from, bound) = (expr(from), within(bound, Level::Sum));
    let only =
        only.as_ref().map_or(String::new(), |e| format!(" && {}", within(e, Level::Compare)));
    format!("for (int32_t {variable} = {from}; {variable} < {bound}{only}; {variable}{step})")
}

/// Returns the name of a unit, which is that of the variant in capitals.
fn pipe(pipe: Pipe) -> String {
    format!("{pipe:?}").to_uppercase()
}

/// Returns a synchronisation as a statement.
fn sync(sync: Sync) -> String {
    let flag = |call, a, b, n| format!("{call}<HardEvent::{}_{}>(EVENT_ID{n});", pipe(a), pipe(b));
    match sync {
        Sync::Barrier(p) => format!("PipeBarrier<PIPE_{}>();", pipe(p)),
        Sync::Flag(a, b) => flag("SetWaitFlag", a, b, 0),
        Sync::Set(a, b, n) => flag("SetFlag", a, b, n),
        Sync::Wait(a, b, n) => flag("WaitFlag", a, b, n),
    }
}

/// Returns a call as a statement, without the synchronisation before it.
fn statement(call: &Call) -> String {
    match &call.operation {
        Operation::Set(how, name, value) => set(*how, name, &expr(value)),
        Operation::Read { name, ty, from, at } => {
            format!("const {ty} {name} = {}.GetValue({});", tensor(from), expr(at))
        }
        Operation::Write { to, at, value } => {
            format!("{}.SetValue({}, {});", tensor(to), expr(at), expr(value))
        }
        Operation::Count(name) => format!("const int32_t {name} = KeptLanes();"),
        Operation::Return(value) => format!("return {};", expr(value)),
        Operation::Leave => "return;".into(),
        Operation::Order => String::new(),
        Operation::WaitForAll => "cores.WaitForAll();".into(),
        Operation::Vector(vector) => instruction(vector),
        Operation::Copy { out: true, ub, gm, n } => {
            format!("CopyOut({}, {}, {});", global(gm), tensor(ub), expr(n))
        }
        Operation::Copy { ub, gm, n, .. } => {
            let half = matches!(ub.buffer, Buffer::Placed { element: Type::F16, .. });
            let copy = if half { "CopyElementsIn" } else { "CopyIn" };
            format!("{copy}({}, {}, {});", tensor(ub), global(gm), expr(n))
        }
        Operation::Function(FunctionCall { function, args, outcome, .. }) => {
            let args: Vec<_> = args.iter().map(argument).collect();
            let call = format!("{}({})", function.name, args.join(", "));
            outcome.as_ref().map_or(format!("{call};"), |(how, name)| set(*how, name, &call))
        }
    }
}

/// Returns the statement that sets a variable to a value.
fn set(how: Set, name: &str, value: &str) -> String {
    match how {
        Set::Let => format!("const int32_t {name} = {value};"),
        Set::Variable => format!("int32_t {name} = {value};"),
        Set::Assign => format!("{name} = {value};"),
        Set::Increase => format!("{name} += {value};"),
    }
}

fn argument(argument: &Argument) -> String {
    match argument {
        Argument::Tensor(t) => tensor(t),
        Argument::Global(gm) => global(gm),
        Argument::Scalar(s) => scalar(s),
        Argument::Comparison(how) => comparison(*how).into(),
    }
}

/// Returns an instruction: its name, its destination and sources, and then the other arguments of
/// AscendC.
fn instruction(vector: &Vector) -> String {
    if let Some(call) = words::call(vector) {
        return call;
    }
    let Vector { op, to, from, scalar: s, n } = vector;
    let scalar = s.as_ref().map(scalar);
    let more = match op {
        VectorOp::Select if scalar.is_some() => Some("SELMODE::VSEL_TENSOR_SCALAR_MODE"),
        VectorOp::Select => Some("SELMODE::VSEL_TENSOR_TENSOR_MODE"),
        VectorOp::Compare(how) | VectorOp::Compares(how) => Some(comparison(*how)),
        VectorOp::Cast(Rounding::Exact) => Some("RoundMode::CAST_NONE"),
        VectorOp::Cast(Rounding::Nearest) => Some("RoundMode::CAST_RINT"),
        _ => None,
    };
    let by_address = matches!(op, VectorOp::AndWord | VectorOp::OrWord);
    let operand = |t: &Tensor| match t.buffer {
        Buffer::Word(bits) if by_address => address(&word(bits)),
        Buffer::Placed { name, called: None, .. } if by_address => address(name),
        _ => tensor(t),
    };
    let mut args: Vec<_> = [to].into_iter().chain(from).map(operand).collect();
    args.extend(scalar);
    args.extend(more.map(String::from));
    args.push(expr(n));
    // The name of a variant is that of the call.
    let name = format!("{op:?}");
    let name = name.split('(').next().unwrap_or(&name);
    format!("{name}({});", args.join(", "))
}

fn comparison(how: Comparison) -> &'static str {
    match how {
        Comparison::Equal => "CMPMODE::EQ",
        Comparison::Less => "CMPMODE::LT",
        Comparison::LessOrEqual => "CMPMODE::LE",
        Comparison::GreaterOrEqual => "CMPMODE::GE",
        Comparison::Param(name) => name,
    }
}

fn scalar(Scalar { value, ty }: &Scalar) -> String {
    match (ty, value) {
        (Type::Bool, Expr::Number(n)) => (*n != 0).to_string(),
        // The template of a call takes the type from its operands.
        (Type::I32, _) if value.is_condition() => format!("static_cast<int32_t>({})", expr(value)),
        (Type::I32 | Type::Bool, _) => expr(value),
        (Type::F32, _) => format!("{}.0f", expr(value)),
        (Type::U32, Expr::Constant(_)) => expr(value),
        (Type::U32, _) => format!("{}u", expr(value)),
        (Type::U16, Expr::Number(n)) if *n > 9 => format!("static_cast<uint16_t>({n:#x})"),
        (Type::F16, Expr::Number(n)) => format!("static_cast<half>({n}.0f)"),
        (Type::F16, _) => format!("static_cast<half>(static_cast<float>({}))", expr(value)),
        _ => format!("static_cast<{ty}>({})", expr(value)),
    }
}

fn global(Global { array, at, .. }: &Global) -> String {
    match at {
        Some(at) => format!("{array}[{}]", expr(at)),
        None => array.clone(),
    }
}

fn tensor(Tensor { buffer, tile, at, view }: &Tensor) -> String {
    let local = |element: Type, name: &str, len: &Expr| {
        format!("Local<{element}>({}, {})", address(name), expr(len))
    };
    let text = match buffer {
        Buffer::Named(name) | Buffer::Temp(Temp { name, .. }) => name.clone(),
        Buffer::Placed { called: Some(name), .. } => (*name).into(),
        Buffer::Placed { name, element, len, called: None } => local(*element, name, len),
        Buffer::Word(bits) => local(Type::I32, &word(*bits), &8.into()),
    };
    let text = match at {
        Some(at) => format!("{text}[{}]", expr(at)),
        None if *tile => format!("{text}[base]"),
        None => text,
    };
    match view {
        None => text,
        Some(ty @ (Type::I32 | Type::I16 | Type::U8)) => format!("{text}.ReinterpretCast<{ty}>()"),
        // `avsg_instructions.h` has a function for each of the others.
        Some(ty) => format!("{ty:?}({text})"),
    }
}

/// Returns the name of the constant that holds the address of a buffer.
pub fn address(name: &str) -> String {
    format!("{}_AT", name.to_uppercase())
}

impl Display for Type {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::I32 => "int32_t",
            Self::U32 => "uint32_t",
            Self::I16 => "int16_t",
            Self::U16 => "uint16_t",
            Self::I8 => "int8_t",
            Self::U8 => "uint8_t",
            Self::F16 => "half",
            Self::F32 => "float",
            Self::U64 => "uint64_t",
            Self::Bool => "bool",
        })
    }
}

/// The precedence of an expression's operator, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Either,
    Compare,
    Shift,
    Sum,
    Product,
    Atom,
}

fn level(e: &Expr) -> Level {
    match e {
        Expr::Binary(operator, ..) => sign(*operator).1,
        Expr::PowerOfTwo(..) => Level::Shift,
        _ => Level::Atom,
    }
}

/// Returns the sign of an operator, or the function that computes it, and its precedence.
fn sign(operator: Operator) -> (&'static str, Level) {
    match operator {
        Operator::Or => ("||", Level::Either),
        Operator::Differs => ("!=", Level::Compare),
        Operator::Equals => ("==", Level::Compare),
        Operator::Above => (">", Level::Compare),
        Operator::NotAbove => ("<=", Level::Compare),
        Operator::Sum => ("+", Level::Sum),
        Operator::Difference => ("-", Level::Sum),
        Operator::Product => ("*", Level::Product),
        Operator::Quotient => ("/", Level::Product),
        Operator::Remainder => ("%", Level::Product),
        Operator::Max => ("ScalarMax", Level::Atom),
        Operator::Min => ("ScalarMin", Level::Atom),
    }
}

/// Returns an expression without parentheses around it.
fn expr(e: &Expr) -> String {
    match e {
        Expr::Number(n) => n.to_string(),
        Expr::Name(name) => name.clone(),
        Expr::Field(name) => format!("q.{name}"),
        Expr::Constant(name) => (*name).into(),
        Expr::Lane { of, n: 0 } => format!("static_cast<int32_t>({of})"),
        Expr::Lane { of, n } => format!("static_cast<int32_t>({of} >> {})", 32 * n),
        Expr::Negative(a) => format!("-{}", within(a, Level::Atom)),
        Expr::Not(a) => format!("!{}", within(a, Level::Atom)),
        Expr::PowerOfTwo(a) => format!("1 << {}", within(a, Level::Sum)),
        Expr::Binary(operator, a, b) => {
            let (sign, own) = sign(*operator);
            let product = |e: &Expr| matches!(e, Expr::Binary(Operator::Product, ..));
            let [left, right] = match own {
                Level::Atom => return format!("{sign}({}, {})", expr(a), expr(b)),
                // Integer multiplication is associative.
                Level::Product if product(e) && product(b) => [Level::Product; 2],
                Level::Product => [Level::Product, Level::Atom],
                Level::Sum => [Level::Sum, Level::Product],
                Level::Compare | Level::Shift => [Level::Sum; 2],
                Level::Either => [Level::Either; 2],
            };
            format!("{} {sign} {}", within(a, left), within(b, right))
        }
    }
}

/// Returns an expression, in parentheses if its precedence is lower than `least`.
fn within(e: &Expr, least: Level) -> String {
    if level(e) < least { format!("({})", expr(e)) } else { expr(e) }
}
