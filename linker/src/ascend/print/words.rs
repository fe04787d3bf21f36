//! Prints the instructions over 32-bit lanes for which `avsg_instructions.h` has a function that is called.

use super::{length, tensor};
use crate::ascend::aiv::{Comparison, Expr, Length, Scalar, Tensor, Type, Vector, VectorOp, View};
use crate::ascend::print::scalar as scalar_text;

/// Returns the call of such a function, if there is one for the instruction.
pub fn call(Vector { op, to, from, scalar, over }: &Vector) -> Option<String> {
    let ty = scalar.as_ref().map(|scalar| scalar.ty);
    let all = |view| [to].into_iter().chain(from).all(|tensor| tensor.view == view);
    let last = from.last();
    let is_sign = |s: &Scalar| s.value == Expr::Number(31);
    let name = match (op, ty) {
        (VectorOp::Adds, Some(Type::I32)) => "AddsWords",
        (VectorOp::Muls, Some(Type::I32)) => "MulsWords",
        (VectorOp::ShiftLeft, _) if all(View::U32) => "ShiftLeftWords",
        (VectorOp::ShiftRight, _) if all(View::U32) => "ShiftRightWords",
        (VectorOp::ShiftRight, _) if scalar.as_ref().is_some_and(is_sign) => "SignWords",
        (VectorOp::Compares(Comparison::Equal), Some(Type::I32)) => "EqualWords",
        (VectorOp::Select, None)
            if to.view == View::F32 && last.is_some_and(|t| t.view == View::F32) =>
        {
            "SelectWords"
        }
        (VectorOp::Or, _) if all(View::U16) && words_of_halves(over).is_some() => "OrWords",
        _ => return None,
    };
    // The function has the views.
    let words = |t: &Tensor| match t.view {
        View::U32 | View::F32 | View::U16 => tensor(&Tensor { view: View::Own, ..t.clone() }),
        _ => tensor(t),
    };
    let mut args: Vec<_> = [to].into_iter().chain(from).map(words).collect();
    args.extend(scalar.as_ref().filter(|_| name != "SignWords").map(scalar_text));
    let halves = words_of_halves(over).filter(|_| name == "OrWords");
    args.push(length(&halves.unwrap_or_else(|| over.clone())));
    Some(format!("{name}({});", args.join(", ")))
}

/// Returns the number of 32-bit lanes of a length that counts their 16-bit halves.
fn words_of_halves(over: &Length) -> Option<Length> {
    match over {
        Length::HalfLanes => Some(Length::Lanes),
        Length::Of(Expr::Product(n, two)) if **two == Expr::Number(2) => {
            Some(Length::Of((**n).clone()))
        }
        _ => None,
    }
}
