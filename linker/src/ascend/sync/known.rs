//! The state of the analysis: which units wait for which accesses.

use super::overlap::Overlap;
use super::step::{NumberedAct, Step};
use crate::ascend::aiv::{Act, Call, CountRead, Loop, Node, Part, Pipe, Place, Sync};
use std::collections::{BTreeMap, BTreeSet};

/// All units, in the order of their declaration.
const PIPES: [Pipe; 4] = [Pipe::S, Pipe::V, Pipe::Mte2, Pipe::Mte3];

/// The state: for each access, a bit for each unit that starts nothing before the access is
/// complete.
pub type Known = Vec<u8>;

/// All units. It is the state of an access that has not happened, for which no unit has to wait.
const ALL: u8 = (1 << PIPES.len()) - 1;

/// The numbers of a kernel's places, and the places that conflict with each.
pub struct PlaceMap {
    places: BTreeMap<Place, usize>,
    overlap: Vec<Vec<usize>>,
    /// For each column that is swept, the numbers of three places: the tile of this round, the
    /// tiles of earlier rounds, and the whole column.
    tiles: BTreeSet<[usize; 3]>,
    count: CountRead,
}

fn bit(p: Pipe) -> u8 {
    1 << p as usize
}

/// Returns the number of an access by place, kind and unit.
fn key(place: usize, write: bool, pipe: Pipe) -> usize {
    (place * 2 + usize::from(write)) * PIPES.len() + pipe as usize
}

impl PlaceMap {
    pub fn new(nodes: &[Node], map: &impl Overlap, count: CountRead) -> Self {
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
        Self { places, overlap, tiles, count }
    }

    /// Returns the kernel with numbered places.
    pub fn steps(&self, nodes: &[Node]) -> Vec<Step> {
        let step = |node: &Node| match node {
            Node::Note(_) => None,
            Node::Call(call) => Some(Step::Call {
                acts: call.acts().iter().map(|act| self.numbered(act)).collect(),
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

    fn numbered(&self, act: &Act) -> NumberedAct {
        match act {
            Act::Sync(sync) => NumberedAct::Sync(*sync),
            Act::Count => NumberedAct::Sync(self.count.sync()),
            Act::Maybe(acts) => {
                NumberedAct::Maybe(acts.iter().map(|act| self.numbered(act)).collect())
            }
            Act::Use { pipe, .. } => {
                let uses = act.uses().into_iter();
                let touched = uses.map(|(place, write)| (self.places[place], write)).collect();
                NumberedAct::Use { pipe: *pipe, touched }
            }
        }
    }

    /// Returns the state before any access.
    pub fn initial(&self) -> Known {
        vec![ALL; self.places.len() * 2 * PIPES.len()]
    }

    /// Applies one effect to the state. A synchronisation that it lacks is passed to `lack` and
    /// then applied.
    pub fn apply(&self, known: &mut Known, act: &NumberedAct, lack: &mut dyn FnMut(Sync)) {
        let (pipe, touched) = match act {
            NumberedAct::Sync(sync) => return learn(known, *sync),
            NumberedAct::Maybe(acts) => {
                let not = known.clone();
                acts.iter().for_each(|act| self.apply(known, act, lack));
                *known = meet(&not, known);
                return;
            }
            NumberedAct::Use { pipe, touched } => (*pipe, touched),
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

    /// Ends a round: its tile becomes one of the earlier tiles.
    pub fn leave_tile(&self, known: &mut Known) {
        self.rename(known, |[tile, past, _]| [tile, past]);
    }

    /// Ends a loop: its tiles become a part of the whole column.
    pub fn leave_loop(&self, known: &mut Known) {
        self.rename(known, |[_, past, whole]| [past, whole]);
    }

    /// Moves the accesses of one place of each column to another place of the column.
    fn rename(&self, known: &mut Known, pair: fn([usize; 3]) -> [usize; 2]) {
        let kinds = 2 * PIPES.len();
        for (tile, kind) in
            self.tiles.iter().flat_map(|tile| (0..kinds).map(move |kind| (tile, kind)))
        {
            let [from, to] = pair(*tile).map(|place| place * kinds + kind);
            known[to] &= std::mem::replace(&mut known[from], ALL);
        }
    }
}

/// Applies a synchronisation to the state.
pub fn learn(known: &mut Known, sync: Sync) {
    let (from, to) = match sync {
        Sync::Barrier(p) => (p, p),
        Sync::Flag(a, b) => (a, b),
    };
    // All units wait for what the scalar unit has waited for, because it issues their later work.
    let waiting = if to == Pipe::S { ALL } else { bit(to) };
    for (n, units) in known.iter_mut().enumerate() {
        if n % PIPES.len() == from as usize || *units & bit(from) != 0 {
            *units |= waiting;
        }
    }
}

/// Returns the state where two paths meet. An access that happened on only one of them has the
/// state of that path.
pub fn meet(a: &Known, b: &Known) -> Known {
    a.iter().zip(b).map(|(a, b)| a & b).collect()
}
