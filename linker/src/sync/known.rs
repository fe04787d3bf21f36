//! Which unit knows which accesses to be complete.

use super::overlap::Overlap;
use super::step::{Deed, Step};
use crate::aiv::{Act, Call, Loop, Node, Part, Pipe, Place, Sync};
use std::collections::{BTreeMap, BTreeSet};

/// All units, in the order of their declaration.
const PIPES: [Pipe; 4] = [Pipe::S, Pipe::V, Pipe::Mte2, Pipe::Mte3];

/// Who knows of an access, a bit per unit.
pub type Known = Vec<u8>;

/// Every unit: of an access that there was not, nobody must learn.
const ALL: u8 = (1 << PIPES.len()) - 1;

/// A kernel's places, by number, and which of them conflict.
pub struct Map {
    places: BTreeMap<Place, usize>,
    overlap: Vec<Vec<usize>>,
    /// Of every column that is swept: the tile at hand, those that earlier rounds were at, and all of it.
    tiles: BTreeSet<[usize; 3]>,
}

fn bit(p: Pipe) -> u8 {
    1 << p as usize
}

/// The number of an access: place, way, unit.
fn key(place: usize, write: bool, pipe: Pipe) -> usize {
    (place * 2 + usize::from(write)) * PIPES.len() + pipe as usize
}

impl Map {
    pub fn new(nodes: &[Node], map: &impl Overlap) -> Self {
        let (mut places, mut tiles) = (BTreeMap::new(), BTreeSet::new());
        let mut number = |place: Place| {
            let next = places.len();
            *places.entry(place).or_insert(next)
        };
        let calls = nodes.iter().flat_map(Node::all).filter_map(Node::call);
        let acts: Vec<Act> = calls.flat_map(Call::acts).collect();
        for (place, _) in acts.iter().flat_map(Act::uses) {
            number(place.clone());
            if let Place::Ub(column, Part::Tile) = place {
                let parts = [Part::Tile, Part::Past, Part::Whole];
                tiles.insert(parts.map(|part| number(Place::Ub(column.clone(), part))));
            }
        }
        let mut overlap = vec![Vec::new(); places.len()];
        for (a, &n) in &places {
            let with = places.iter().filter(|(b, _)| map.overlap(a, b));
            overlap[n] = with.map(|(_, &m)| m).collect();
        }
        Self { places, overlap, tiles }
    }

    /// The kernel by numbers.
    pub fn steps(&self, nodes: &[Node]) -> Vec<Step> {
        let step = |node: &Node| match node {
            Node::Note(_) => None,
            Node::Call(call) => Some(Step::Call {
                deeds: call.acts().iter().map(|act| self.numbered(act)).collect(),
                sync: Vec::new(),
            }),
            Node::Loop(Loop { always, body, .. }) => {
                let body = self.steps(body);
                Some(Step::Loop { always: *always, sync: Vec::new(), body })
            }
            Node::If(branch) => Some(Step::If {
                body: self.steps(&branch.body),
                otherwise: self.steps(&branch.otherwise),
            }),
        };
        nodes.iter().filter_map(step).collect()
    }

    fn numbered(&self, act: &Act) -> Deed {
        match act {
            Act::Sync(sync) => Deed::Sync(*sync),
            Act::Maybe(acts) => Deed::Maybe(acts.iter().map(|act| self.numbered(act)).collect()),
            Act::Use { pipe, .. } => {
                let uses = act.uses().into_iter();
                let touched = uses.map(|(place, write)| (self.places[place], write)).collect();
                Deed::Use { pipe: *pipe, touched }
            }
        }
    }

    /// What is known before anything happened.
    pub fn nothing(&self) -> Known {
        vec![ALL; self.places.len() * 2 * PIPES.len()]
    }

    /// One deed; what it lacks goes to `lack`.
    pub fn deed(&self, known: &mut Known, deed: &Deed, lack: &mut dyn FnMut(Sync)) {
        let (pipe, touched) = match deed {
            Deed::Sync(sync) => return learn(known, *sync),
            Deed::Maybe(deeds) => {
                let not = known.clone();
                deeds.iter().for_each(|deed| self.deed(known, deed, lack));
                *known = meet(&not, known);
                return;
            }
            Deed::Use { pipe, touched } => (*pipe, touched),
        };
        for &(place, write) in touched {
            for &other in &self.overlap[place] {
                for (wrote, q) in [false, true].into_iter().flat_map(|w| PIPES.map(|q| (w, q))) {
                    let orders = (write || wrote) && !(q == Pipe::S && pipe == Pipe::S);
                    if orders && known[key(other, wrote, q)] & bit(pipe) == 0 {
                        let sync = if q == pipe { Sync::Barrier(q) } else { Sync::Flag(q, pipe) };
                        lack(sync);
                        learn(known, sync);
                    }
                }
            }
        }
        for &(place, write) in touched {
            known[key(place, write, pipe)] = 0;
        }
    }

    /// A round is over: its tile is one of the earlier ones.
    pub fn leave_tile(&self, known: &mut Known) {
        self.rename(known, |[tile, past, _]| [tile, past]);
    }

    /// A loop is over: its tiles are all of their column.
    pub fn leave_loop(&self, known: &mut Known) {
        self.rename(known, |[_, past, whole]| [past, whole]);
    }

    /// Books accesses of one kind of a column's places under another.
    fn rename(&self, known: &mut Known, pair: fn([usize; 3]) -> [usize; 2]) {
        let ways = 2 * PIPES.len();
        for (tile, way) in self.tiles.iter().flat_map(|tile| (0..ways).map(move |way| (tile, way)))
        {
            let [from, to] = pair(*tile).map(|place| place * ways + way);
            known[to] &= std::mem::replace(&mut known[from], ALL);
        }
    }
}

/// What the units know after a synchronisation.
pub fn learn(known: &mut Known, sync: Sync) {
    let (from, to) = match sync {
        Sync::Barrier(p) => (p, p),
        Sync::Flag(a, b) => (a, b),
    };
    // What the scalar unit waits for, everything waits for that it issues afterwards.
    let told = if to == Pipe::S { ALL } else { bit(to) };
    for (n, who) in known.iter_mut().enumerate() {
        if n % PIPES.len() == from as usize || *who & bit(from) != 0 {
            *who |= told;
        }
    }
}

/// Where paths meet: what both know. An access that only one of them made is that one's to say.
pub fn meet(a: &Known, b: &Known) -> Known {
    a.iter().zip(b).map(|(a, b)| a & b).collect()
}
