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

/// One effect of a call; a call has a list of them, in order. `P` is how it names places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act<P = Place> {
    /// One unit touches places: first those that it reads, then those that it writes, which are marked.
    Use(Pipe, Vec<(P, bool)>),
    /// A synchronisation inside of the function.
    Sync(Sync),
    /// Effects that depend on the data: either the first ones happen or the second ones.
    Either(Vec<Self>, Vec<Self>),
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
    /// Returns the effect that a unit reads and writes memory.
    pub fn of(pipe: Pipe, reads: Vec<Place>, writes: Vec<Place>) -> Self {
        let reads = reads.into_iter().map(|place| (place, false));
        Self::Use(pipe, reads.chain(writes.into_iter().map(|place| (place, true))).collect())
    }
}

impl<P> Act<P> {
    /// Returns the places that the effect touches, and whether it writes each.
    pub fn uses(&self) -> Vec<&(P, bool)> {
        match self {
            Self::Use(_, touched) => touched.iter().collect(),
            Self::Either(a, b) => a.iter().chain(b).flat_map(Self::uses).collect(),
            Self::Sync(_) => Vec::new(),
        }
    }

    /// Returns the effect on the places that `place` returns for its places.
    pub fn with_places<Q>(&self, place: &impl Fn(&P) -> Q) -> Act<Q> {
        let all = |acts: &[Self]| acts.iter().map(|act| act.with_places(place)).collect();
        match self {
            Self::Use(pipe, touched) => {
                Act::Use(*pipe, touched.iter().map(|(p, write)| (place(p), *write)).collect())
            }
            Self::Sync(sync) => Act::Sync(*sync),
            Self::Either(a, b) => Act::Either(all(a), all(b)),
        }
    }
}
