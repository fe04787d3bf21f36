//! The recorder's vectors, masks and scalars, and their operators.

use super::{Defined, Recorder};
use crate::tape::operations::operations;
use crate::tape::{OpCode, Param, Range, Type, Value};
use avsg_device::machine::Lanes;
use std::ops::{Add, BitAnd, BitOr, Mul, Not, Sub};

macro_rules! values {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $name<'t> {
            m: Recorder<'t>,
            pub(super) value: Value,
        }

        impl $name<'_> {
            /// Records a name of the value.
            pub(super) fn named(self, name: &'static str) -> Self {
                self.m.builder().tape.names.push((self.value, name));
                self
            }
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

/// Implements the operators of the table.
macro_rules! operators {
    (operators { $(
        $code:ident = $operator:ident $f:ident($a:ident: $left:ident $(, $b:ident: $right:ident)?
            $(; $n:ident: $constant:ty)?) -> $out:ident, $text:literal;
    )* } $($rest:tt)*) => {$(
        impl<'t> $operator $(<$right<'t>>)? $(<$constant>)? for $left<'t> {
            type Output = Self;
            fn $f(self $(, $b: $right<'t>)? $(, $n: $constant)?) -> Self {
                self.m.op(OpCode::$code $(($n))?, &[self.value $(, $b.value)?], &[])
            }
        }
    )*};
}

operations!(operators);

impl<'t> Lanes<Scalar<'t>> for Vector<'t> {}

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
