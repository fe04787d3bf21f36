//! Functions that the emitted text defines, and the arguments of their calls.

use super::expr::Expr;
use super::node::{Argument, Function, FunctionCall, Node, Use};
use super::tensor::{Buffer, Global, Tensor};
use super::types::Type;
use super::vector::{Comparison, Scalar};
use super::walk::expressions;

/// Returns the entities that some statements refer to, and those that the functions refer to which they call.
pub fn uses(nodes: &[Node]) -> Vec<Use> {
    let constant = |e: &Expr| if let Expr::Constant(name) = e { Some(*name) } else { None };
    let mut all: Vec<_> = expressions(nodes).filter_map(constant).map(Use::Constant).collect();
    for call in nodes.iter().flat_map(Node::all).filter_map(Node::call) {
        if let Some(FunctionCall { function, words, .. }) = call.function() {
            all.push(Use::Function(function));
            all.extend(words.iter().copied().map(Use::Word));
            all.extend(uses(&function.definition.nodes));
        }
        all.extend(call.tensors().into_iter().filter_map(|tensor| match tensor.buffer {
            Buffer::Placed { name, .. } => Some(Use::Buffer(name)),
            Buffer::Word(bits) => Some(Use::Word(bits)),
            _ => None,
        }));
    }
    all
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Function {}

impl Argument {
    /// Returns the tensor, if the argument is one.
    pub fn tensor(&self) -> Option<&Tensor> {
        if let Self::Tensor(tensor) = self { Some(tensor) } else { None }
    }

    /// Returns the tensor for changing it, if the argument is one.
    pub fn tensor_mut(&mut self) -> Option<&mut Tensor> {
        if let Self::Tensor(tensor) = self { Some(tensor) } else { None }
    }

    /// Returns the scalar expression of the argument, if it has one.
    pub fn expression(&self) -> Option<&Expr> {
        match self {
            Self::Scalar(scalar) => Some(&scalar.value),
            Self::Global(gm) => gm.at.as_ref(),
            _ => None,
        }
    }
}

macro_rules! arguments {
    ($($ty:ty => |$value:ident| $argument:expr;)*) => {$(
        impl From<$ty> for Argument {
            fn from($value: $ty) -> Self {
                $argument
            }
        }
    )*};
}

arguments! {
    Tensor => |tensor| Self::Tensor(tensor);
    &Tensor => |tensor| Self::Tensor(tensor.clone());
    Global => |global| Self::Global(global);
    Scalar => |scalar| Self::Scalar(scalar);
    Comparison => |how| Self::Comparison(how);
    String => |buffer| Self::Tensor(Tensor::named(buffer));
    Expr => |value| Self::Scalar(value.into());
    bool => |value| Self::Scalar(Scalar::new(i32::from(value), Type::Bool));
}
