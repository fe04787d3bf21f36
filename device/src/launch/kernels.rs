//! The parameter lists of the device kernels, declared here once for the emitted text and for the
//! host that launches it.

/// Defines the parameters with their names.
macro_rules! args {
    ($($(#[doc = $doc:literal])* $arg:ident = $name:literal,)*) => {
        /// An address that a kernel takes as a parameter.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Arg {
            $($(#[doc = $doc])* $arg,)*
        }

        impl Arg {
            /// Returns the name of the parameter in the emitted text.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$arg => $name,)*
                }
            }
        }
    };
}

args! {
    /// The selected ids, row by row: int32 `[rows, stride]`.
    Ids = "ids",
    /// The first row of each request, and the number of rows: int32 `[requests + 1]`.
    CuQ = "cuQ",
    /// The state of each request, -1 for a padded one: int32 `[requests]`.
    State = "state",
    /// The generation of each request: int32 `[requests]`.
    Generation = "generation",
    /// The number of tokens of each request that were final before the step, or -1: int32
    /// `[requests]`.
    StableLen = "stableLen",
    /// The sequence length of each request: int32 `[requests]`.
    SeqLen = "seqLen",
    /// The host blocks: int32 `[requests, stride]`.
    BlockTable = "blockTable",
    /// The tables of all states.
    Tables = "tables",
    /// The lifetime rule as half-precision numbers, for a table that has one.
    Rules = "rules",
    /// The addresses of one layer's host chunks, segment by segment: 64-bit.
    HostChunks = "hostChunks",
    /// The first segment of one layer's slots.
    Kv0 = "kv0",
    /// The second segment of one layer's slots.
    Kv1 = "kv1",
    /// The blocks of the device buffer that hold the slots of each state: int32 `[states, S / B]` for
    /// blocks of B slots; null if slots are found by strides alone.
    SlotBlocks = "slotBlocks",
    /// The first segment of the rows of this step.
    Fresh0 = "fresh0",
    /// The second segment of the rows of this step.
    Fresh1 = "fresh1",
    /// The returned slots: int32 `[rows, K]`.
    Slot = "slot",
    /// The number of valid ids of each row: int32 `[rows]`.
    Valid = "valid",
    /// The positions of the miss list: int32 `[rows * K]`.
    MissPos = "missPos",
    /// The ids of the miss list, with the shape of the positions.
    MissId = "missId",
    /// The slots of the miss list, with the shape of the positions.
    MissSlot = "missSlot",
    /// The host rows of the miss list, with the shape of the positions.
    MissRow = "missRow",
    /// The summaries, 16 words each: int32 `[requests, 16]`.
    Summary = "summary",
}

/// The kernels of a geometry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelName {
    /// Stage One.
    Plan,
    /// Stage Two, for one layer.
    Transfer,
    /// Stage One, SyncAll, and Stage Two.
    Step,
    /// Copies fresh rows to the host pool.
    Append,
    /// Empties every table.
    Reset,
}

impl KernelName {
    /// All kernels.
    pub const ALL: [Self; 5] = [Self::Plan, Self::Transfer, Self::Step, Self::Append, Self::Reset];

    /// Returns the name of the entry point, which is also the name of its file.
    pub fn entry(self) -> &'static core::ffi::CStr {
        match self {
            Self::Plan => c"avsg_plan",
            Self::Transfer => c"avsg_transfer",
            Self::Step => c"avsg_step",
            Self::Append => c"avsg_append",
            Self::Reset => c"avsg_reset",
        }
    }

    /// Returns the parameters in order. After them a launch passes a workspace, which is null, and
    /// the scalars.
    pub fn args(self) -> &'static [Arg] {
        match self {
            Self::Plan => &PLAN,
            Self::Transfer => &TRANSFER,
            Self::Step => &STEP,
            Self::Append => &APPEND,
            Self::Reset => &RESET,
        }
    }

    /// Returns the parameters that the kernel only writes.
    pub fn outputs(self) -> &'static [Arg] {
        match self {
            Self::Plan | Self::Step => &OUTPUTS,
            Self::Transfer | Self::Append | Self::Reset => &[],
        }
    }

    /// Returns the parameters that the kernel updates in place. An operator package passes them
    /// once more as outputs.
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
    MissRow, MissSlot, Rules, SeqLen, Slot, SlotBlocks, StableLen, State, Summary, Tables, Valid,
};

const OUTPUTS: [Arg; 7] = [Slot, Valid, MissPos, MissId, MissSlot, MissRow, Summary];
const PLAN: [Arg; 17] = [
    Ids, CuQ, State, Generation, StableLen, SeqLen, BlockTable, Tables, Rules, SlotBlocks, Slot,
    Valid, MissPos, MissId, MissSlot, MissRow, Summary,
];
const TRANSFER: [Arg; 11] =
    [CuQ, State, MissSlot, MissRow, Summary, HostChunks, Kv0, Kv1, SlotBlocks, Fresh0, Fresh1];
const STEP: [Arg; 22] = [
    Ids, CuQ, State, Generation, StableLen, SeqLen, BlockTable, Tables, Rules, HostChunks, Kv0,
    Kv1, SlotBlocks, Fresh0, Fresh1, Slot, Valid, MissPos, MissId, MissSlot, MissRow, Summary,
];
const APPEND: [Arg; 8] = [CuQ, State, StableLen, SeqLen, BlockTable, HostChunks, Fresh0, Fresh1];
const RESET: [Arg; 1] = [Tables];

/// The number of parameters of the kernel with the most, including the workspace.
pub const MAX_ARGS: usize = STEP.len() + 1;
