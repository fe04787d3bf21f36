//! A kernel for one vector core (AIV) before it is text: calls over named buffers, in loops.
//!
//! A call says what its units read and write, so that `sync` can order them and
//! [`crate::ub`] can place the buffers. A call of a helper function lists all that happens inside it,
//! its own synchronisation included.

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

impl Pipe {
    /// As AscendC calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::S => "S",
            Self::V => "V",
            Self::Mte2 => "MTE2",
            Self::Mte3 => "MTE3",
        }
    }
}

/// Memory that a call touches.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A buffer in UB, by name.
    Ub(String),
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

impl Sync {
    /// The statement.
    pub fn text(self) -> String {
        match self {
            Self::Barrier(p) => format!("PipeBarrier<PIPE_{}>();", p.name()),
            Self::Flag(a, b) => format!("After<HardEvent::{}_{}>(EVENT_ID0);", a.name(), b.name()),
        }
    }
}

/// One statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// C++; a temporary stands as `@number@`.
    pub text: String,
    /// What happens.
    pub acts: Vec<Act>,
    /// Synchronisation before it.
    pub sync: Vec<Sync>,
}

/// A piece of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A statement.
    Call(Call),
    /// A loop.
    Loop(Loop),
    /// A comment: a step of the paper.
    Note(String),
}

/// A loop from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loop {
    /// What counts.
    pub variable: &'static str,
    /// Where it ends: C++.
    pub bound: String,
    /// Whether it goes over the tiles of a sweep, not one by one.
    pub tiles: bool,
    /// Whether it runs at all, whatever the data.
    pub always: bool,
    /// Synchronisation before it.
    pub sync: Vec<Sync>,
    /// What runs.
    pub body: Vec<Node>,
}

impl Loop {
    /// The head, as C++.
    pub fn head(&self) -> String {
        let Self { variable, bound, .. } = self;
        let step = if self.tiles { " += TILE" } else { "++" };
        format!("for (int32_t {variable} = 0; {variable} < {bound}; {variable}{step})")
    }
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

impl Call {
    /// A call of one unit.
    pub fn new(pipe: Pipe, text: String, reads: Vec<Place>, writes: Vec<Place>) -> Self {
        Self { text, acts: vec![Act::Use { pipe, reads, writes }], ..Self::default() }
    }

    /// The places that it touches, and whether it writes them.
    pub fn uses(&self) -> impl Iterator<Item = (&Place, bool)> {
        self.acts.iter().flat_map(Act::uses)
    }
}

impl Node {
    /// The statement, if it is one.
    pub fn call(&self) -> Option<&Call> {
        if let Self::Call(call) = self { Some(call) } else { None }
    }

    /// The node, and those in it, in text order.
    pub fn all(&self) -> Box<dyn Iterator<Item = &Self> + '_> {
        let body = if let Self::Loop(l) = self { &l.body[..] } else { &[] };
        Box::new(std::iter::once(self).chain(body.iter().flat_map(Self::all)))
    }
}

/// Where the units can be synchronised, in text order.
pub fn syncs(nodes: &mut [Node]) -> Vec<&mut Vec<Sync>> {
    let mut all = Vec::new();
    for node in nodes {
        match node {
            Node::Call(call) => all.push(&mut call.sync),
            Node::Loop(l) => {
                all.push(&mut l.sync);
                all.extend(syncs(&mut l.body));
            }
            Node::Note(_) => {}
        }
    }
    all
}
