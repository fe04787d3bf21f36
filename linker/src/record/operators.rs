//! What the recorder's vectors, masks and scalars are, and their operators.

use super::Recorder;
use crate::tape::{Code, Value};
use std::ops::{Add, BitAnd, BitOr, Mul, Not, Sub};

macro_rules! value {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $name<'t> {
            pub(super) m: Recorder<'t>,
            pub(super) value: Value,
        }
    };
}

value! {
    /// A vector: the number of the value that will be one.
    Vector
}
value! {
    /// A mask.
    Mask
}
value! {
    /// A run-time scalar.
    Scalar
}

/// An operator whose right side is a value of the tape.
macro_rules! operator {
    ($left:ident $trait:ident $f:ident $right:ident $code:ident) => {
        impl<'t> $trait<$right<'t>> for $left<'t> {
            type Output = Self;
            fn $f(self, right: $right<'t>) -> Self {
                let value = self.m.define(Code::$code, &[self.value, right.value], &[]);
                Self { value, ..self }
            }
        }
    };
}

/// An operator whose right side is a constant.
macro_rules! constant {
    ($left:ident $trait:ident $f:ident $code:ident) => {
        impl<'t> $trait<i32> for $left<'t> {
            type Output = Self;
            fn $f(self, right: i32) -> Self {
                Self { value: self.m.define(Code::$code(right), &[self.value], &[]), ..self }
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
constant!(Vector Add add AddTo);
constant!(Vector Mul mul MulTo);
constant!(Vector BitAnd bitand AndTo);
constant!(Vector BitOr bitor OrTo);
constant!(Scalar Add add ScalarAddTo);

impl Not for Mask<'_> {
    type Output = Self;
    fn not(self) -> Self {
        Self { value: self.m.define(Code::MaskNot, &[self.value], &[]), ..self }
    }
}
