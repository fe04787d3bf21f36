//! The ops and their signatures. The checker and every back-end read them.

use super::Type;
use super::operations::operations;
use avsg_device::machine::links::Links;
use avsg_device::machine::phase::Phase;

/// The kind of memory that an operand must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Need {
    Words,
    Life,
    List,
    /// A list of exactly one column.
    Single,
    /// Read-only global memory.
    Input,
    /// Global memory that is written and read back.
    Output,
}

/// The way in which an op touches a column. In one sweep every column has one of the first four.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Lane i reads or writes word i.
    Streamed,
    /// Read at computed indices.
    Gathered,
    /// Written at computed indices.
    Scattered,
    /// Grown by the lanes under a mask.
    Appended,
    /// Read as a whole, outside sweeps.
    WholeRead,
    /// Written as a whole, outside sweeps.
    WholeWrite,
}

impl Role {
    /// Returns whether the role changes a column. A streamed column may be changed or not.
    pub fn writes(self) -> bool {
        matches!(self, Self::Scattered | Self::Appended | Self::WholeWrite)
    }
}

/// An operand of an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Operand {
    Value(Type),
    /// One vector for each column of the op's list.
    Values,
    Column(Need, Role),
}

/// The operands and the result of an op.
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    /// The operands in one order. An [`super::Op`] has its values and its columns apart.
    pub operands: &'static [Operand],
    /// The type of the value that it defines.
    pub out: Option<Type>,
    /// The type of the value that its block binds.
    pub binds: Option<Type>,
}

impl Signature {
    /// Returns the types of its values without [`Operand::Values`].
    pub fn args(self) -> impl Iterator<Item = Type> {
        self.operands.iter().filter_map(|operand| match operand {
            Operand::Value(ty) => Some(*ty),
            _ => None,
        })
    }

    /// Returns the columns that it touches.
    pub fn columns(self) -> impl Iterator<Item = (Need, Role)> {
        self.operands.iter().filter_map(|operand| match operand {
            Operand::Column(need, role) => Some((*need, *role)),
            _ => None,
        })
    }
}

/// The rule of a step of lifetimes: the next byte, indexed by the byte + 128.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule(pub [i8; 256]);

impl Rule {
    /// Returns the byte that follows.
    pub fn next(&self, byte: i8) -> i8 {
        self.0[usize::from(byte.cast_unsigned() ^ 128)]
    }
}

/// Makes an operand of the notation of the table.
macro_rules! operand {
    ([Vector; W]) => {
        Operand::Values
    };
    (($role:ident &$(mut)? List<1>)) => {
        Operand::Column(Need::Single, Role::$role)
    };
    (($role:ident &$(mut)? List<W>)) => {
        Operand::Column(Need::List, Role::$role)
    };
    (($role:ident &mut $need:ident)) => {
        Operand::Column(Need::$need, Role::$role)
    };
    (($role:ident &$need:ident)) => {
        Operand::Column(Need::$need, Role::$role)
    };
    ($ty:ident) => {
        Operand::Value(Type::$ty)
    };
}

/// Defines the codes and their signatures.
macro_rules! codes {
    ($($section:ident { $(
        $code:ident = $($method:ident)* $([$($generic:tt)*])?
            ($($arg:ident: $kind:tt),* $(; $($constant:ident: $ty:ty),+)?)
            $(-> $out:ident)? $(|$bound:ident: $binds:ident|)?, $($text:expr),+;
    )* })*) => {
        /// An op. Constants are a part of it, because on Ascend they are immediate operands.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "each is the method or operator of `Machine` of the same name")]
        #[expect(clippy::large_enum_variant, reason = "a rule is a constant like all others")]
        pub enum OpCode {
            $($($code $(($($ty),+))?,)*)*
        }

        impl OpCode {
            /// The names of all ops.
            pub const NAMES: &[&str] = &[$($(stringify!($code)),*),*];

            /// Returns the signature of the op.
            pub fn signature(self) -> Signature {
                let (operands, out, binds): (&[Operand], &[Type], &[Type]) = match self {
                    $($(Self::$code { .. } => (
                        &[$(operand!($kind)),*], &[$(Type::$out)?], &[$(Type::$binds)?],
                    ),)*)*
                };
                Signature { operands, out: out.first().copied(), binds: binds.first().copied() }
            }
        }
    };
}

operations!(codes);

impl OpCode {
    /// Returns the number of blocks that the op has.
    pub fn blocks(self) -> usize {
        match self {
            Self::Sweep | Self::Repeat(_) => 1,
            Self::When => 2,
            _ => 0,
        }
    }

    /// Returns the constant that is its second operand, if it has one.
    pub fn constant(self) -> Option<i32> {
        match self {
            Self::AddTo(n) | Self::ScalarAddTo(n) | Self::MulTo(n) => Some(n),
            Self::AndTo(n) | Self::OrTo(n) => Some(n),
            Self::Shr(bits) => Some(bits.cast_signed()),
            _ => None,
        }
    }

    /// Returns whether the op works on lanes, and so belongs inside of a sweep.
    pub fn on_lanes(self) -> bool {
        let s = self.signature();
        let lanes = |ty| matches!(ty, Type::Tile | Type::Vector | Type::Mask);
        s.out == Some(Type::Vector) || s.args().any(lanes)
    }

    /// Returns whether the op changes a column.
    pub fn writes(self) -> bool {
        self == Self::Store || self.signature().columns().any(|(_, role)| role.writes())
    }
}
