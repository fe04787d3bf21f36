//! The effects of a call: the unit that reads and writes which memory, and the waits of units for
//! each other.

/// A unit of a core. Each unit executes its own queue in order; only flags order two units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pipe {
    /// The scalar unit.
    S,
    /// The vector unit.
    V,
    /// The unit that copies from global memory to the unified buffer.
    Mte2,
    /// The unit that copies from the unified buffer to global memory.
    Mte3,
}

/// The part of a buffer that a call touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Any part of the buffer.
    Whole,
    /// The part that this round touches, and no other one: the tile of a sweep.
    Tile,
    /// The parts of earlier rounds. Only `sync` uses it; no call names it.
    Past,
    /// The bytes from the first number up to the second one, exclusive.
    Bytes(u32, u32),
}

/// A place in memory that a call touches.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A buffer in UB, by its name.
    Ub(String, Part),
    /// A temporary of a tile that has no register yet.
    Temp(usize),
    /// An array in global memory, by its name.
    Gm(String),
    /// The register with the count of the last GatherMask.
    Count,
}

/// One effect of a call; a call has a list of them, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Act {
    /// One unit reads and writes memory.
    Use { pipe: Pipe, reads: Vec<Place>, writes: Vec<Place> },
    /// A synchronisation inside of the function.
    Sync(Sync),
    /// Effects that depend on the data: either the first ones happen or the second ones.
    Either(Vec<Act>, Vec<Act>),
}

/// One synchronisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// `PipeBarrier`: the unit completes what was issued to it before it continues.
    Barrier(Pipe),
    /// `SetFlag` and `WaitFlag`: the second unit waits until the first has completed what was
    /// issued to it.
    Flag(Pipe, Pipe),
    /// `SetFlag` with the number of an event: the first half of a flag.
    Set(Pipe, Pipe, u8),
    /// `WaitFlag`: the second unit waits until the first has completed what was issued to it before the
    /// event was set.
    Wait(Pipe, Pipe, u8),
}

/// The name of the end of UB, which `Select` overwrites.
pub const SELECT_SCRATCH: &str = "184 KB and up";

/// Returns the place of a whole buffer in UB.
pub fn ub(name: &str) -> Place {
    Place::Ub(name.into(), Part::Whole)
}

/// Returns the name of the 32-byte block that repeats one word.
pub fn word(bits: u32) -> String {
    format!("WORD_{bits:X}")
}

impl Act {
    /// Returns the places that the effect touches, and whether it writes each.
    pub fn uses(&self) -> Vec<(&Place, bool)> {
        match self {
            Self::Use { reads, writes, .. } => {
                let reads = reads.iter().map(|place| (place, false));
                reads.chain(writes.iter().map(|place| (place, true))).collect()
            }
            Self::Either(a, b) => a.iter().chain(b).flat_map(Self::uses).collect(),
            Self::Sync(_) => Vec::new(),
        }
    }
}
