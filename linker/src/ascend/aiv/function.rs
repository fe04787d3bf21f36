//! Functions that the emitted text defines, and the arguments of their calls.

use super::node::{Argument, Definition, Function, Node, Use};
use super::tensor::{Buffer, Global, Tensor};
use super::vector::{Length, Scalar, Type};
use crate::expr::Expr;
use std::sync::OnceLock;

impl Function {
    /// Returns a function.
    pub const fn new(name: &'static str, about: &'static str, build: fn() -> Definition) -> Self {
        Self { name, about, build, made: OnceLock::new(), ordered: OnceLock::new() }
    }

    /// Returns the parameters and statements.
    pub fn definition(&self) -> &Definition {
        self.made.get_or_init(self.build)
    }

    /// Returns the statements with the synchronisation that `order` inserts.
    pub fn ordered(&self, order: impl FnOnce(&mut [Node])) -> &[Node] {
        self.ordered.get_or_init(|| {
            let mut nodes = self.definition().nodes.clone();
            order(&mut nodes);
            nodes
        })
    }

    /// Returns the entities that the definition refers to.
    pub fn uses(&self) -> Vec<Use> {
        let mut all = Vec::new();
        for node in self.definition().nodes.iter().flat_map(Node::all) {
            for expression in node.expressions() {
                expression.each(&mut |e| {
                    if let Expr::Constant(name) = e {
                        all.push(Use::Constant(name));
                    }
                });
            }
            let Node::Call(call) = node else { continue };
            all.extend(call.function().map(|call| Use::Function(call.function)));
            all.extend(call.tensors().into_iter().filter_map(|tensor| match tensor.buffer {
                Buffer::Placed { name, .. } => Some(Use::Buffer(name)),
                Buffer::Word(bits) => Some(Use::Word(bits)),
                _ => None,
            }));
        }
        all
    }

    /// Returns the words whose blocks the function reads.
    pub fn words(&self) -> Vec<u32> {
        let words = |used| match used {
            Use::Word(bits) => vec![bits],
            Use::Function(function) => function.words(),
            Use::Buffer(_) | Use::Constant(_) => Vec::new(),
        };
        self.uses().into_iter().flat_map(words).collect()
    }
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

    /// Returns the length, if the argument is one.
    pub fn length(&self) -> Option<&Length> {
        if let Self::Length(length) = self { Some(length) } else { None }
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
    Expr => |value| Self::Scalar(value.into());
    bool => |value| Self::Scalar(Scalar::new(i32::from(value), Type::Bool));
}
