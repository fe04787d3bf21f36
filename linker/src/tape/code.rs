//! The ops and their signatures. The checker and every back-end read this table.

use avsg_device::machine::phase::Phase;

use super::Type::{self, Mask as M, Scalar as S, Tile as T, Vector as V};

/// An op. Constants are a part of it, because on Ascend they are immediate operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the method or operator of `Machine` of the same name")]
pub enum OpCode {
    // Scalars.
    Constant(i32),
    ScalarAdd,
    ScalarSub,
    ScalarMul,
    ScalarAddTo(i32),
    Max,
    Min,
    // Conditions, which are 0 or 1.
    ScalarNe,
    ScalarGt,
    ScalarNot,
    // Control.
    Sweep,
    Repeat { max: u32 },
    When,
    Bisect,
    // The heading of a phase in the emitted text.
    Phase(Phase, &'static str),
    // Lanes. `..To` forms take a constant, and `..Scalar` forms a run-time scalar.
    Iota,
    Splat(i32),
    Add,
    Sub,
    Mul,
    And,
    Or,
    AddTo(i32),
    MulTo(i32),
    AndTo(i32),
    OrTo(i32),
    AddScalar,
    SubScalar,
    MulScalar,
    Shr(u32),
    LowBits(u32),
    Madd(i32, i32),
    Select,
    Eq,
    EqTo(i32),
    IsNegative,
    MaskAnd,
    MaskOr,
    MaskNot,
    // Columns.
    Load,
    Store,
    Gather,
    Scatter,
    // Lists.
    Len,
    Clear,
    Item(usize),
    Append,
    Take,
    // Searches over all links, with the number of retries.
    Find(u32),
    FindFree(u32),
    // Lifetimes. `StepLife` refers to its rule by the number in the tape.
    Age { settle: bool },
    CountLe,
    AppendLt,
    AppendEq,
    GatherLife,
    SetLife(i8),
    StepLife(usize),
    // Global memory.
    ReadInput,
    ReadOutput,
    WriteOutput,
    Fetch,
    Publish,
    PublishList(usize),
    Share,
    Lookup,
}

/// The kind of memory that an operand must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A column of words.
    Words,
    /// The lifetimes.
    Life,
    /// A list.
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

/// The operands and the result of an op.
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    /// The types of its operands. An append has as many more vectors as its list has columns.
    pub args: &'static [Type],
    /// The columns that it touches.
    pub columns: &'static [(Need, Role)],
    /// The type of the value that it defines.
    pub out: Option<Type>,
    /// The type of the value that its block binds.
    pub binds: Option<Type>,
}

/// The columns of a search: the result, probe sequences, ids, links, and the ids of slots.
const FIND: [(Need, Role); 5] = [
    (Need::Words, Role::WholeWrite),
    (Need::Words, Role::WholeRead),
    (Need::Words, Role::WholeRead),
    (Need::Words, Role::WholeRead),
    (Need::Words, Role::WholeRead),
];
/// The columns of a search without ids.
const FIND_FREE: [(Need, Role); 4] = [FIND[0], FIND[1], FIND[3], FIND[4]];

impl OpCode {
    /// Returns the signature of the op.
    pub fn signature(self) -> Signature {
        use Need::{Input, Life, List, Output, Single, Words};
        use Role::{Appended, Gathered, Scattered, Streamed, WholeRead, WholeWrite};
        let (args, columns, out): (&[Type], &[(Need, Role)], Option<Type>) = match self {
            Self::Constant(_) => (&[], &[], Some(S)),
            Self::ScalarAdd | Self::ScalarSub | Self::ScalarMul => (&[S, S], &[], Some(S)),
            Self::Max | Self::Min | Self::ScalarNe | Self::ScalarGt => (&[S, S], &[], Some(S)),
            Self::ScalarAddTo(_) | Self::ScalarNot => (&[S], &[], Some(S)),
            Self::Sweep | Self::Repeat { .. } | Self::When => (&[S], &[], None),
            Self::Phase(..) => (&[], &[], None),
            Self::Bisect => (&[S, S], &[], Some(S)),
            Self::Iota => (&[T], &[], Some(V)),
            Self::Splat(_) => (&[], &[], Some(V)),
            Self::Add | Self::Sub | Self::Mul | Self::And | Self::Or => (&[V, V], &[], Some(V)),
            Self::AddTo(_) | Self::MulTo(_) | Self::AndTo(_) | Self::OrTo(_) => {
                (&[V], &[], Some(V))
            }
            Self::Shr(_) | Self::LowBits(_) | Self::Madd(..) => (&[V], &[], Some(V)),
            Self::AddScalar | Self::SubScalar | Self::MulScalar => (&[V, S], &[], Some(V)),
            Self::Select => (&[M, V, V], &[], Some(V)),
            Self::Eq => (&[V, V], &[], Some(M)),
            Self::EqTo(_) | Self::IsNegative => (&[V], &[], Some(M)),
            Self::MaskAnd | Self::MaskOr => (&[M, M], &[], Some(M)),
            Self::MaskNot => (&[M], &[], Some(M)),
            Self::Load => (&[T], &[(Words, Streamed)], Some(V)),
            Self::Store => (&[T, V], &[(Words, Streamed)], None),
            Self::Gather => (&[V], &[(Words, Gathered)], Some(V)),
            Self::Scatter => (&[T, V, V, M], &[(Words, Scattered)], None),
            Self::Len => (&[], &[(List, WholeRead)], Some(S)),
            Self::Clear => (&[], &[(List, WholeWrite)], None),
            Self::Item(_) => (&[T], &[(List, Streamed)], Some(V)),
            Self::Append => (&[T, M], &[(List, Appended)], None),
            Self::Take => (&[], &[(List, WholeWrite), (List, WholeWrite)], None),
            Self::Find(_) => (&[S], &FIND, None),
            Self::FindFree(_) => (&[S], &FIND_FREE, None),
            Self::Age { .. } => (&[S], &[(Life, WholeWrite)], None),
            Self::CountLe => (&[S], &[(Life, WholeRead)], Some(S)),
            Self::AppendLt | Self::AppendEq => {
                (&[S, S], &[(Single, WholeWrite), (Life, WholeRead)], None)
            }
            Self::GatherLife => (&[V], &[(Life, Gathered)], Some(V)),
            Self::SetLife(_) | Self::StepLife(_) => (&[T, V, M], &[(Life, Scattered)], None),
            Self::ReadInput => (&[S], &[(Input, WholeRead)], Some(S)),
            Self::ReadOutput => (&[S], &[(Output, WholeRead)], Some(S)),
            Self::WriteOutput => (&[S, S], &[(Output, WholeWrite)], None),
            Self::Fetch => (&[S, S], &[(Words, WholeWrite), (Input, WholeRead)], None),
            Self::Publish => (&[S, S], &[(Output, WholeWrite), (Words, WholeRead)], None),
            Self::PublishList(_) => (&[S], &[(Output, WholeWrite), (List, WholeRead)], None),
            Self::Share => (&[S, S, S, S], &[(Words, WholeWrite), (Output, WholeWrite)], None),
            Self::Lookup => (&[T, S, S, V, M], &[(Input, Gathered)], Some(V)),
        };
        let binds = match self {
            Self::Sweep => Some(T),
            Self::Repeat { .. } | Self::Bisect => Some(S),
            _ => None,
        };
        Signature { args, columns, out, binds }
    }

    /// Returns whether the op has a block that it runs.
    pub fn controls(self) -> bool {
        matches!(self, Self::Sweep | Self::Repeat { .. } | Self::When | Self::Bisect)
    }

    /// Returns whether the op works on lanes, and so belongs inside of a sweep.
    pub fn on_lanes(self) -> bool {
        let s = self.signature();
        s.out == Some(V) || s.args.iter().any(|t| matches!(t, T | V | M))
    }

    /// Returns whether the op changes a column.
    pub fn writes(self) -> bool {
        self == Self::Store || self.signature().columns.iter().any(|(_, role)| role.writes())
    }
}
