//! The ops: which there are, and what each takes. The checker and every back-end read this table.

use avsg_device::machine::phase::Phase;

use super::Type::{self, Mask as M, Scalar as S, Tile as T, Vector as V};

/// Which op. Constants are part of it: on Ascend they are immediate forms.
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
    // Conditions: 1 or 0.
    ScalarNe,
    ScalarGt,
    ScalarNot,
    // Control.
    Sweep,
    Repeat { max: u32 },
    When,
    Bisect,
    // A heading of the text that a tape becomes.
    Phase(Phase, &'static str),
    // Lanes. `..To` forms take a constant, `..Scalar` forms a run-time scalar.
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
    // All links at once, with so many retries.
    Find(u32),
    FindFree(u32),
    // Lifetimes. `StepLife` names its rule by its number in the tape.
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

/// What memory an operand must be.
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
    /// Global memory to read.
    Input,
    /// Global memory to write.
    Output,
}

/// How an op touches a column. In one sweep every column has one of the first four.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Lane i at word i.
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
    /// Whether it changes a column; a stream may or may not.
    pub fn writes(self) -> bool {
        matches!(self, Self::Scattered | Self::Appended | Self::WholeWrite)
    }
}

/// What an op takes and gives.
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    /// Types of the values it reads. An append takes its list's width of vectors more.
    pub args: &'static [Type],
    /// Its columns.
    pub columns: &'static [(Need, Role)],
    /// Type of the value it defines.
    pub out: Option<Type>,
    /// Type of the value its block binds.
    pub binds: Option<Type>,
}

/// The columns of a search: what it writes; ways, the ids themselves, links, ids of slots.
const FIND: [(Need, Role); 5] = [
    (Need::Words, Role::WholeWrite),
    (Need::Words, Role::WholeRead),
    (Need::Words, Role::WholeRead),
    (Need::Words, Role::WholeRead),
    (Need::Words, Role::WholeRead),
];
/// The same without the ids.
const FIND_FREE: [(Need, Role); 4] = [FIND[0], FIND[1], FIND[3], FIND[4]];

impl OpCode {
    /// What it takes and gives.
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

    /// Whether an op has a block that it runs.
    pub fn controls(self) -> bool {
        matches!(self, Self::Sweep | Self::Repeat { .. } | Self::When | Self::Bisect)
    }

    /// Whether an op works on lanes, and so stands in a sweep.
    pub fn on_lanes(self) -> bool {
        let s = self.signature();
        s.out == Some(V) || s.args.iter().any(|t| matches!(t, T | V | M))
    }

    /// Whether it changes a column.
    pub fn writes(self) -> bool {
        self == Self::Store || self.signature().columns.iter().any(|(_, role)| role.writes())
    }
}
