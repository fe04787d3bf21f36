//! Prints the instructions over 32-bit lanes for which `avsg_instructions.h` has a function that is called.

use super::{expr, scalar as scalar_text, tensor};
use crate::ascend::aiv::{Comparison, Expr, Operator, Scalar, Tensor, Type, Vector, VectorOp};

/// Returns the call of such a function, if there is one for the instruction.
pub fn call(Vector { op, to, from, scalar, n }: &Vector) -> Option<String> {
    let ty = scalar.as_ref().map(|scalar| scalar.ty);
    let all = |view| [to].into_iter().chain(from).all(|tensor| tensor.view == Some(view));
    let is_sign = |s: &Scalar| s.value == Expr::Number(31);
    let name = match (op, ty) {
        (VectorOp::Adds, Some(Type::I32)) => "AddsWords",
        (VectorOp::Muls, Some(Type::I32)) => "MulsWords",
        (VectorOp::ShiftLeft, _) if all(Type::U32) => "ShiftLeftWords",
        (VectorOp::ShiftRight, _) if all(Type::U32) => "ShiftRightWords",
        (VectorOp::ShiftRight, _) if scalar.as_ref().is_some_and(is_sign) => "SignWords",
        (VectorOp::Compares(Comparison::Equal), Some(Type::I32)) => "EqualWords",
        (VectorOp::Select, None)
            if [Some(to), from.last()].iter().flatten().all(|t| t.view == Some(Type::F32)) =>
        {
            "SelectWords"
        }
        (VectorOp::Or, _) if all(Type::U16) && words_of_halves(n).is_some() => "OrWords",
        _ => return None,
    };
    // The function has the views.
    let words = |t: &Tensor| match t.view {
        Some(Type::U32 | Type::F32 | Type::U16) => tensor(&Tensor { view: None, ..t.clone() }),
        _ => tensor(t),
    };
    let mut args: Vec<_> = [to].into_iter().chain(from).map(words).collect();
    args.extend(scalar.as_ref().filter(|_| name != "SignWords").map(scalar_text));
    let halves = words_of_halves(n).filter(|_| name == "OrWords");
    args.push(expr(halves.unwrap_or(n)));
    Some(format!("{name}({});", args.join(", ")))
}

/// Returns the number of 32-bit lanes, if `n` is the number of their 16-bit halves.
fn words_of_halves(n: &Expr) -> Option<&Expr> {
    match n {
        Expr::Binary(Operator::Product, two, words) if **two == Expr::Number(2) => Some(words),
        _ => None,
    }
}
