//! What happens in a call: which unit reads and writes which memory, and how units wait.

/// A unit of a core. Each works through its own queue; nothing orders two of them but flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pipe {
    /// Scalar.
    S,
    /// Vector.
    V,
    /// Global memory to unified buffer.
    Mte2,
    /// Unified buffer to global memory.
    Mte3,
}

/// How much of a buffer a call touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Any of it.
    Whole,
    /// The tile at hand.
    Tile,
    /// The tiles of earlier rounds; no call names them, `sync` does.
    Past,
}

/// Memory that a call touches.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A buffer in UB, by name.
    Ub(String, Part),
    /// A tile's temporary that has no register yet.
    Temp(usize),
    /// An array in global memory, by name.
    Gm(String),
}

/// What happens in a call, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// One unit reads and writes.
    Use {
        /// Which unit.
        pipe: Pipe,
        /// What it reads.
        reads: Vec<Place>,
        /// What it writes.
        writes: Vec<Place>,
    },
    /// Synchronisation that the helper does itself.
    Sync(Sync),
    /// What the helper does only if there is something to do.
    Maybe(Vec<Act>),
}

/// One synchronisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// `PipeBarrier`: the unit finishes what it has before it goes on.
    Barrier(Pipe),
    /// `SetFlag` and `WaitFlag`: the second unit waits for what the first has.
    Flag(Pipe, Pipe),
}

/// A vector unit's wait for itself.
pub const BARRIER: Act = Act::Sync(Sync::Barrier(Pipe::V));
/// The scalar unit's wait for the vector unit.
pub const TO_S: Act = Act::Sync(Sync::Flag(Pipe::V, Pipe::S));
/// The vector unit's wait for the scalar unit.
pub const FROM_S: Act = Act::Sync(Sync::Flag(Pipe::S, Pipe::V));

/// The end of UB, which `Select` writes over.
pub const SELECT_SCRATCH: &str = "184 KB and up";

/// A whole buffer in UB.
pub fn ub(name: &str) -> Place {
    Place::Ub(name.into(), Part::Whole)
}

/// The name of the block that holds one word over and over.
pub fn word(bits: u32) -> String {
    format!("WORD_{bits:X}")
}

/// A vector unit's use.
pub fn v(reads: &[&Place], writes: &[&Place]) -> Act {
    of(Pipe::V, reads, writes)
}

/// A scalar unit's use.
pub fn s(reads: &[&Place], writes: &[&Place]) -> Act {
    of(Pipe::S, reads, writes)
}

fn of(pipe: Pipe, reads: &[&Place], writes: &[&Place]) -> Act {
    let all = |places: &[&Place]| places.iter().map(|&p| p.clone()).collect();
    Act::Use { pipe, reads: all(reads), writes: all(writes) }
}

impl Act {
    /// The places that it touches, and whether it writes them.
    pub fn uses(&self) -> Vec<(&Place, bool)> {
        match self {
            Self::Use { reads, writes, .. } => {
                let reads = reads.iter().map(|place| (place, false));
                reads.chain(writes.iter().map(|place| (place, true))).collect()
            }
            Self::Maybe(acts) => acts.iter().flat_map(Self::uses).collect(),
            Self::Sync(_) => Vec::new(),
        }
    }
}
