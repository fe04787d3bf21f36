//! Prints emitted functions.

use super::{address, expr, lines};
use crate::ascend::aiv::{Buffer, Call, Definition, Function, Node, Operation, Param, ParamType};

/// Returns the definition of a function with the synchronisation inside of it. A function that several
/// statements of a kernel call is not copied to each of them.
pub fn definition(function: &'static Function, several: bool) -> String {
    let Definition { params, nodes } = &*function.definition;
    let calls = || nodes.iter().flat_map(Node::all).filter_map(Node::call);
    let returns = |call: &Call| matches!(call.operation, Operation::Return(_));
    let result = if calls().any(returns) { "int32_t" } else { "void" };
    let qualifiers = if several { "AVSG_NOINLINE" } else { "__aicore__ inline" };
    let mut head = format!("{qualifiers} {result} {}(", function.name);
    for (n, Param { name, ty }) in params.iter().enumerate() {
        let param = match ty {
            ParamType::Ub(element) => format!("const LocalTensor<{element}> &{name}"),
            ParamType::Gm => format!("const GlobalTensor<int32_t> &{name}"),
            ParamType::Scalar(ty) => format!("{ty} {name}"),
            ParamType::Comparison => format!("CMPMODE {name}"),
        };
        let line = head.len() - head.rfind('\n').unwrap_or(0);
        head += match n {
            0 => "",
            _ if line + param.len() > 116 => ",\n    ",
            _ => ", ",
        };
        head += &param;
    }
    let mut locals = Vec::new();
    for t in calls().flat_map(Call::tensors) {
        let Buffer::Placed { name, element, len, called: Some(called) } = &t.buffer else {
            continue;
        };
        let at = address(name);
        let ty = format!("const LocalTensor<{element}>");
        let local = format!("    {ty} {called} = Local<{element}>({at}, {});\n", expr(len));
        if !locals.contains(&local) {
            locals.push(local);
        }
    }
    format!("{}{head})\n{{\n{}{}}}\n", function.about, locals.concat(), lines(nodes, 1))
}
