//! Macros that implement the operators of scalars, vectors and masks.

/// Implements operators of a type: each is an expression of the operands `$a` and `$b`.
macro_rules! operators {
    ($g:tt $t:ty, |$a:ident, $b:ident| $($tr:ident $f:ident $e:expr;)*) => {
        $($crate::machine::operators::operators! { @one $g $t, $t, |$a, $b| $tr $f $e })*
    };
    (@one [$($g:tt)*] $t:ty, $rhs:ty, |$a:ident, $b:ident| $tr:ident $f:ident $e:expr) => {
        impl<$($g)*> core::ops::$tr<$rhs> for $t {
            type Output = Self;
            #[inline(always)]
            fn $f(self, $b: $rhs) -> Self {
                let $a = self;
                $e
            }
        }
    };
}

/// Implements the operators of a register type, of which those of two registers are given. `$m` is an
/// expression that makes the token of the machine: a value of `$v` exists, so the machine was detected.
macro_rules! vector_operators {
    ($g:tt $v:ty, $m:expr, $($given:tt)*) => {
        $crate::machine::operators::operators! { $g $v, $($given)* }
        $crate::machine::operators::vector_operators! { @with $g $v, i32, $m, b => b;
            Add add; Mul mul; BitAnd bitand; BitOr bitor;
        }
        $crate::machine::operators::vector_operators! { @with $g $v, Scalar, $m, b => b.0;
            Add add; Sub sub; Mul mul;
        }
        $crate::machine::operators::vector_operators! { @lanes $g $v }
    };
    (@with $g:tt $v:ty, $rhs:ty, $m:expr, $b:ident => $value:expr; $($tr:ident $f:ident;)*) => {
        $($crate::machine::operators::operators! {
            @one $g $v, $rhs, |a, $b| $tr $f core::ops::$tr::$f(a, Cpu::splat($m, $value))
        })*
    };
    (@lanes [$($g:tt)*] $v:ty) => {
        impl<$($g)*> $crate::machine::lanes::Lanes<Scalar> for $v {}
    };
}

/// Implements the operators of a mask type: each is an expression of the masks `$a` and `$b`.
macro_rules! mask_operators {
    ($g:tt $k:ty, |$a:ident, $b:ident| $and:expr, $or:expr, $not:expr) => {
        $crate::machine::operators::operators! { $g $k, |$a, $b| BitAnd bitand $and; BitOr bitor $or; }
        $crate::machine::operators::mask_operators! { @not $g $k, $a $not }
    };
    (@not [$($g:tt)*] $k:ty, $a:ident $not:expr) => {
        impl<$($g)*> core::ops::Not for $k {
            type Output = Self;
            #[inline(always)]
            fn not(self) -> Self {
                let $a = self;
                $not
            }
        }
    };
}

pub(super) use {mask_operators, operators, vector_operators};
