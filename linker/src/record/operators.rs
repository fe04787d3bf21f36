//! The recorder's vectors, masks and scalars, and their operators.

use super::{Defined, Recorder};
use crate::tape::{OpCode, Param, Range, Type, Value};
use std::ops::{Add, BitAnd, BitOr, Mul, Not, Sub};

macro_rules! values {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $name<'t> {
            m: Recorder<'t>,
            pub(super) value: Value,
        }

        impl<'t> Defined<'t> for $name<'t> {
            fn of(m: Recorder<'t>, value: Option<Value>) -> Self {
                Self { m, value: value.expect("this op defines a value") }
            }
        }
    )*};
}

values! {
    /// A vector: the number of a value of the tape.
    Vector;
    /// A mask: the number of a value of the tape.
    Mask;
    /// A run-time scalar: the number of a value of the tape.
    Scalar;
}

/// Implements an operator by its left type, its trait, and its right type, which is a type of the
/// tape or a constant.
macro_rules! operator {
    ($left:ident $trait:ident $f:ident i32 $code:ident) => {
        impl $trait<i32> for $left<'_> {
            type Output = Self;
            fn $f(self, right: i32) -> Self {
                self.m.op(OpCode::$code(right), &[self.value], &[])
            }
        }
    };
    ($left:ident $trait:ident $f:ident $right:ident $code:ident) => {
        impl<'t> $trait<$right<'t>> for $left<'t> {
            type Output = Self;
            fn $f(self, right: $right<'t>) -> Self {
                self.m.op(OpCode::$code, &[self.value, right.value], &[])
            }
        }
    };
}

operator!(Vector Add add Vector Add);
operator!(Vector Sub sub Vector Sub);
operator!(Vector Mul mul Vector Mul);
operator!(Vector BitAnd bitand Vector And);
operator!(Vector BitOr bitor Vector Or);
operator!(Vector Add add Scalar AddScalar);
operator!(Vector Sub sub Scalar SubScalar);
operator!(Vector Mul mul Scalar MulScalar);
operator!(Scalar Add add Scalar ScalarAdd);
operator!(Scalar Sub sub Scalar ScalarSub);
operator!(Scalar Mul mul Scalar ScalarMul);
operator!(Mask BitAnd bitand Mask MaskAnd);
operator!(Mask BitOr bitor Mask MaskOr);
operator!(Vector Add add i32 AddTo);
operator!(Vector Mul mul i32 MulTo);
operator!(Vector BitAnd bitand i32 AndTo);
operator!(Vector BitOr bitor i32 OrTo);
operator!(Scalar Add add i32 ScalarAddTo);

impl Not for Mask<'_> {
    type Output = Self;
    fn not(self) -> Self {
        self.m.op(OpCode::MaskNot, &[self.value], &[])
    }
}

impl<'t> Recorder<'t> {
    /// Declares a scalar that the caller passes.
    pub fn param(self, name: &str, doc: &'static str, range: Range) -> Scalar<'t> {
        let mut g = self.builder();
        let value = g.value(Type::Scalar);
        g.tape.params.push(Param { name: name.into(), doc, value, range });
        drop(g);
        self.scalar_of(value)
    }
    /// Returns a scalar by the number of its value.
    pub(super) fn scalar_of(self, value: Value) -> Scalar<'t> {
        Scalar { m: self, value }
    }
}
