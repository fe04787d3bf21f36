//! Prints calls as C++.

mod definition;
mod words;

pub use definition::definition;

use crate::ascend::aiv::{
    Argument, Buffer, Call, Comparison, Copy, Element, Expr, FunctionCall, Global, Length, Loop,
    Node, Operation, Outcome, Pipe, Relation, Rounding, Scalar, Step, Sync, Temp, Tensor, Type,
    Vector, VectorOp, View, word,
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

fn head(Loop { variable, from, bound, only, step, .. }: &Loop) -> String {
    let step = match step {
        Step::By(Expr::Number(1)) => "++".into(),
        Step::By(n) => format!(" += {}", expr(n)),
        Step::Double => " *= 2".into(),
        Step::Sweep(width) => format!(" += {}", expr(&width.constant())),
    };
    let (from, bound) = (expr(from), within(bound, Level::Sum));
    let only =
        only.as_ref().map_or(String::new(), |e| format!(" && {}", within(e, Level::Compare)));
    format!("for (int32_t {variable} = {from}; {variable} < {bound}{only}; {variable}{step})")
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
        Sync::Set(a, b, n) => format!("SetFlag<HardEvent::{}_{}>(EVENT_ID{n});", pipe(a), pipe(b)),
        Sync::Wait(a, b, n) => {
            format!("WaitFlag<HardEvent::{}_{}>(EVENT_ID{n});", pipe(a), pipe(b))
        }
    }
}

/// Returns a call as a statement, without the synchronisation before it.
pub fn statement(call: &Call) -> String {
    match &call.operation {
        Operation::Let(name, value) => format!("const int32_t {name} = {};", expr(value)),
        Operation::Variable(name, value) => format!("int32_t {name} = {};", expr(value)),
        Operation::Assign(name, value) => format!("{name} = {};", expr(value)),
        Operation::Read { name, ty, from, at } => {
            let at = expr(at);
            format!("const {} {name} = {}.GetValue({at});", scalar_type(*ty), tensor(from))
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
        Operation::Copy(Copy { out: true, ub, gm, n }) => {
            format!("CopyOut({}, {}, {});", global(gm), tensor(ub), expr(n))
        }
        Operation::Copy(Copy { ub, gm, n, .. }) if is_half(ub) => {
            format!("CopyElementsIn({}, {}, {});", tensor(ub), global(gm), expr(n))
        }
        Operation::Copy(Copy { out: false, ub, gm, n }) => {
            format!("CopyIn({}, {}, {});", tensor(ub), global(gm), expr(n))
        }
        Operation::Function(call) => call_text(call),
    }
}

/// Returns whether a buffer consists of halfs.
fn is_half(tensor: &Tensor) -> bool {
    matches!(tensor.buffer, Buffer::Placed { element: Element::Half, .. })
}

fn call_text(FunctionCall { function, args, outcome, .. }: &FunctionCall) -> String {
    let args: Vec<_> = args.iter().map(argument).collect();
    let call = format!("{}({})", function.name, args.join(", "));
    match outcome {
        Outcome::None => format!("{call};"),
        Outcome::Let(name) => format!("const int32_t {name} = {call};"),
        Outcome::Assign(name) => format!("{name} = {call};"),
        Outcome::Increase(name) => format!("{name} += {call};"),
    }
}

fn argument(argument: &Argument) -> String {
    match argument {
        Argument::Tensor(t) => tensor(t),
        Argument::Global(gm) => global(gm),
        Argument::Scalar(s) => scalar(s),
        Argument::Length(l) => length(l),
        Argument::Comparison(how) => comparison(*how).into(),
    }
}

/// Returns an instruction: its name, its destination and sources, and then the other arguments of
/// AscendC.
fn instruction(vector: &Vector) -> String {
    if let Some(call) = words::call(vector) {
        return call;
    }
    let Vector { op, to, from, scalar: s, over } = vector;
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
    args.push(length(over));
    format!("{}({});", op.name(), args.join(", "))
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
        (Type::Bool, Expr::Number(n)) => (*n != 0).to_string(),
        // The template of a call takes the type from its operands.
        (Type::I32, _) if value.is_condition() => format!("static_cast<int32_t>({})", expr(value)),
        (Type::I32 | Type::Bool | Type::U64, _) => expr(value),
        (Type::F32, _) => format!("{}.0f", expr(value)),
        (Type::U32, Expr::Constant(_)) => expr(value),
        (Type::U32, _) => format!("{}u", expr(value)),
        (Type::U16, Expr::Number(n)) if *n > 9 => format!("static_cast<uint16_t>({n:#x})"),
        (Type::U16, _) => format!("static_cast<uint16_t>({})", expr(value)),
        (Type::I16, _) => format!("static_cast<int16_t>({})", expr(value)),
        (Type::F16, Expr::Number(n)) => format!("static_cast<half>({n}.0f)"),
        (Type::F16, _) => format!("static_cast<half>(static_cast<float>({}))", expr(value)),
    }
}

fn global(Global { array, at, .. }: &Global) -> String {
    match at {
        Some(at) => format!("{array}[{}]", expr(at)),
        None => array.clone(),
    }
}

fn tensor(Tensor { buffer, tile, at, view }: &Tensor) -> String {
    let local = |element: Element, name: &str, len: &Expr| {
        format!("Local<{element}>({}, {})", address(name), expr(len))
    };
    let text = match buffer {
        Buffer::Named(name) | Buffer::Temp(Temp { name, .. }) => name.clone(),
        Buffer::Placed { called: Some(name), .. } => (*name).into(),
        Buffer::Placed { name, element, len, called: None } => local(*element, name, len),
        Buffer::Word(bits) => local(Element::Word, &word(*bits), &8.into()),
    };
    let text = match at {
        Some(at) => format!("{text}[{}]", expr(at)),
        None if *tile => format!("{text}[base]"),
        None => text,
    };
    match view {
        View::Own => text,
        View::I32 => format!("{text}.ReinterpretCast<int32_t>()"),
        View::I16 => format!("{text}.ReinterpretCast<int16_t>()"),
        View::U32 => format!("U32({text})"),
        View::U16 => format!("U16({text})"),
        View::F32 => format!("F32({text})"),
        View::F16 => format!("F16({text})"),
        View::U64 => format!("U64({text})"),
        View::U8 => format!("{text}.ReinterpretCast<uint8_t>()"),
    }
}

fn scalar_type(ty: Type) -> &'static str {
    match ty {
        Type::I32 => "int32_t",
        Type::U32 => "uint32_t",
        Type::U16 => "uint16_t",
        Type::F16 => "half",
        Type::F32 => "float",
        Type::I16 => "int16_t",
        Type::U64 => "uint64_t",
        Type::Bool => "bool",
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
    Shift,
    Sum,
    Product,
    Atom,
}

fn level(e: &Expr) -> Level {
    match e {
        Expr::Either(..) => Level::Either,
        Expr::Test(..) => Level::Compare,
        Expr::PowerOfTwo(..) => Level::Shift,
        Expr::Sum(..) | Expr::Difference(..) => Level::Sum,
        Expr::Product(..) | Expr::Quotient(..) | Expr::Remainder(..) => Level::Product,
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
        Expr::Negative(a) => format!("-{}", within(a, Level::Atom)),
        Expr::Sum(a, b) => {
            format!("{} + {}", within(a, Level::Sum), within(b, Level::Product))
        }
        Expr::Difference(a, b) => {
            format!("{} - {}", within(a, Level::Sum), within(b, Level::Product))
        }
        // A product on the right needs no parentheses, because integer multiplication is
        // associative.
        Expr::Product(a, b) if matches!(**b, Expr::Product(..)) => {
            format!("{} * {}", within(a, Level::Product), expr(b))
        }
        Expr::Product(a, b) => {
            format!("{} * {}", within(a, Level::Product), within(b, Level::Atom))
        }
        Expr::Quotient(a, b) => {
            format!("{} / {}", within(a, Level::Product), within(b, Level::Atom))
        }
        Expr::Remainder(a, b) => {
            format!("{} % {}", within(a, Level::Product), within(b, Level::Atom))
        }
        Expr::PowerOfTwo(a) => format!("1 << {}", within(a, Level::Sum)),
        Expr::Lane { of, n: 0 } => format!("static_cast<int32_t>({of})"),
        Expr::Lane { of, n } => format!("static_cast<int32_t>({of} >> {})", 32 * n),
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

/// Returns an expression, in parentheses if its precedence is lower than `least`.
fn within(e: &Expr, least: Level) -> String {
    if level(e) < least { format!("({})", expr(e)) } else { expr(e) }
}
