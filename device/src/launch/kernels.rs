//! The device kernels' parameter lists: declared here once, for the text that is emitted and for the host
//! that launches it.

/// An address that a kernel takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arg {
    /// Selected ids, row by row: int32 `[rows, stride]`.
    Ids,
    /// First row of each request, and the number of rows: int32 `[requests + 1]`.
    CuQ,
    /// State of each request, -1 for a padded one: int32 `[requests]`.
    State,
    /// Generation of each request: int32 `[requests]`.
    Generation,
    /// Final tokens of each request before the step, or -1: int32 `[requests]`.
    StableLen,
    /// Sequence length of each request: int32 `[requests]`.
    SeqLen,
    /// Host blocks: int32 `[requests, stride]`.
    BlockTable,
    /// The tables of all states.
    Tables,
    /// The lifetime rule as half-precision numbers, where the table has one.
    Rules,
    /// Addresses of one layer's host chunks, segment by segment: 64-bit.
    HostChunks,
    /// One layer's slots, first segment.
    Kv0,
    /// One layer's slots, second segment.
    Kv1,
    /// The rows of this step, first segment.
    Fresh0,
    /// The rows of this step, second segment.
    Fresh1,
    /// Returned slots: int32 `[rows, K]`.
    Slot,
    /// Valid ids of each row: int32 `[rows]`.
    Valid,
    /// Miss list, positions: int32 `[rows * K]`.
    MissPos,
    /// Miss list, ids.
    MissId,
    /// Miss list, slots.
    MissSlot,
    /// Miss list, host rows.
    MissRow,
    /// Records, 16 words each: int32 `[requests, 16]`.
    Record,
}

impl Arg {
    /// The parameter's name in the emitted text.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ids => "ids",
            Self::CuQ => "cuQ",
            Self::State => "state",
            Self::Generation => "generation",
            Self::StableLen => "stableLen",
            Self::SeqLen => "seqLen",
            Self::BlockTable => "blockTable",
            Self::Tables => "tables",
            Self::Rules => "rules",
            Self::HostChunks => "hostChunks",
            Self::Kv0 => "kv0",
            Self::Kv1 => "kv1",
            Self::Fresh0 => "fresh0",
            Self::Fresh1 => "fresh1",
            Self::Slot => "slot",
            Self::Valid => "valid",
            Self::MissPos => "missPos",
            Self::MissId => "missId",
            Self::MissSlot => "missSlot",
            Self::MissRow => "missRow",
            Self::Record => "record",
        }
    }
}

/// The kernels of a geometry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelName {
    /// Stage One.
    Plan,
    /// Stage Two of one layer.
    Transfer,
    /// Stage One, SyncAll, Stage Two.
    Step,
    /// Fresh rows to the host pool.
    Append,
    /// Empties every table.
    Reset,
}

impl KernelName {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Plan, Self::Transfer, Self::Step, Self::Append, Self::Reset];

    /// The entry point, which is also the name of its file.
    pub fn entry(self) -> &'static core::ffi::CStr {
        match self {
            Self::Plan => c"avsg_plan",
            Self::Transfer => c"avsg_transfer",
            Self::Step => c"avsg_step",
            Self::Append => c"avsg_append",
            Self::Reset => c"avsg_reset",
        }
    }

    /// Its parameters in order. Behind them come a workspace, which is null, and the launch's scalars.
    pub fn args(self) -> &'static [Arg] {
        match self {
            Self::Plan => &PLAN,
            Self::Transfer => &TRANSFER,
            Self::Step => &STEP,
            Self::Append => &APPEND,
            Self::Reset => &RESET,
        }
    }

    /// Which of its parameters it only writes.
    pub fn outputs(self) -> &'static [Arg] {
        match self {
            Self::Plan | Self::Step => &OUTPUTS,
            Self::Transfer | Self::Append | Self::Reset => &[],
        }
    }

    /// Which of its parameters an operator package passes once more as outputs: they are updated in place.
    pub fn updated(self) -> &'static [Arg] {
        match self {
            Self::Plan | Self::Reset => &[Arg::Tables],
            Self::Transfer => &[Arg::Kv0, Arg::Kv1],
            Self::Step => &[Arg::Tables, Arg::Kv0, Arg::Kv1],
            Self::Append => &[Arg::HostChunks],
        }
    }
}

use Arg::{
    BlockTable, CuQ, Fresh0, Fresh1, Generation, HostChunks, Ids, Kv0, Kv1, MissId, MissPos,
    MissRow, MissSlot, Record, Rules, SeqLen, Slot, StableLen, State, Tables, Valid,
};

const OUTPUTS: [Arg; 7] = [Slot, Valid, MissPos, MissId, MissSlot, MissRow, Record];
const PLAN: [Arg; 16] = [
    Ids, CuQ, State, Generation, StableLen, SeqLen, BlockTable, Tables, Rules, Slot, Valid,
    MissPos, MissId, MissSlot, MissRow, Record,
];
const TRANSFER: [Arg; 10] =
    [CuQ, State, MissSlot, MissRow, Record, HostChunks, Kv0, Kv1, Fresh0, Fresh1];
const STEP: [Arg; 21] = [
    Ids, CuQ, State, Generation, StableLen, SeqLen, BlockTable, Tables, Rules, HostChunks, Kv0,
    Kv1, Fresh0, Fresh1, Slot, Valid, MissPos, MissId, MissSlot, MissRow, Record,
];
const APPEND: [Arg; 8] = [CuQ, State, StableLen, SeqLen, BlockTable, HostChunks, Fresh0, Fresh1];
const RESET: [Arg; 1] = [Tables];

/// Parameters of the kernel with the most, the workspace included.
pub const MAX_ARGS: usize = STEP.len() + 1;
