//! The state of the analysis: which units wait for which accesses.

use super::overlap::Overlap;
use crate::ascend::aiv::{Act, Call, Node, Part, Pipe, Place, Sync};
use std::collections::{BTreeMap, BTreeSet};

/// All units, in the order of their declaration.
const PIPES: [Pipe; 4] = [Pipe::S, Pipe::V, Pipe::Mte2, Pipe::Mte3];

/// The state of the analysis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// For each access, a bit for each unit that starts nothing before the access is complete.
    units: Vec<u8>,
    /// For each event that is set and not yet waited for, whether each access is complete when it is set.
    set: BTreeMap<(Pipe, Pipe, u8), Vec<bool>>,
}

/// All units. It is the state of an access that has not happened, for which no unit has to wait.
const ALL: u8 = (1 << PIPES.len()) - 1;

/// The numbers of a kernel's places, and the places that conflict with each.
pub struct PlaceMap {
    places: BTreeMap<Place, usize>,
    overlap: Vec<Vec<usize>>,
    /// For each column that is swept, the numbers of three places: the tile of this round, the
    /// tiles of earlier rounds, and the whole column.
    tiles: BTreeSet<[usize; 3]>,
    /// The number of the register with the count of the last GatherMask.
    register: Option<usize>,
}

fn bit(p: Pipe) -> u8 {
    1 << p as usize
}

/// Returns the units that wait if a unit waits. All units wait for what the scalar unit has waited for,
/// because it issues their later work.
fn waiting(unit: Pipe) -> u8 {
    if unit == Pipe::S { ALL } else { bit(unit) }
}

/// Returns the number of an access by place, kind and unit.
fn key(place: usize, write: bool, pipe: Pipe) -> usize {
    (place * 2 + usize::from(write)) * PIPES.len() + pipe as usize
}

impl PlaceMap {
    /// Numbers the places of a kernel.
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
        let register = places.get(&Place::Count).copied();
        Self { places, overlap, tiles, register }
    }

    /// Returns the effects of a call with numbered places.
    pub fn acts(&self, call: &Call) -> Vec<Act<usize>> {
        call.acts().iter().map(|act| act.with_places(&|place| self.places[place])).collect()
    }

    /// Returns the state before any access.
    pub fn initial(&self) -> Known {
        Known { units: vec![ALL; self.places.len() * 2 * PIPES.len()], set: BTreeMap::new() }
    }

    /// Applies one effect to the state. A synchronisation that it lacks is passed to `lack` and then
    /// applied.
    pub fn apply(&self, known: &mut Known, act: &Act<usize>, lack: &mut dyn FnMut(Sync)) {
        let (pipe, touched) = match act {
            Act::Sync(sync) => return learn(known, *sync),
            Act::Either(a, b) => {
                let mut other = known.clone();
                a.iter().for_each(|act| self.apply(known, act, lack));
                b.iter().for_each(|act| self.apply(&mut other, act, lack));
                *known = meet(&other, known);
                return;
            }
            Act::Use(pipe, touched) => (*pipe, touched),
        };
        for &(place, write) in touched {
            for &other in &self.overlap[place] {
                // Nearly always there is no access of the place that this unit would have to wait for.
                let accesses = &known.units[key(other, false, PIPES[0])..][..2 * PIPES.len()];
                if accesses.iter().all(|units| units & bit(pipe) != 0) {
                    continue;
                }
                for (wrote, q) in [false, true].into_iter().flat_map(|w| PIPES.map(|q| (w, q))) {
                    // The vector unit sets the register of counts in order, and reads take no time.
                    let orders = if Some(place) == self.register {
                        wrote && !write
                    } else {
                        (write || wrote) && !(q == Pipe::S && pipe == Pipe::S)
                    };
                    if orders && known.units[key(other, wrote, q)] & bit(pipe) == 0 {
                        let sync = if q == pipe { Sync::Barrier(q) } else { Sync::Flag(q, pipe) };
                        lack(sync);
                        learn(known, sync);
                    }
                }
            }
        }
        for &(place, write) in touched {
            known.touch(key(place, write, pipe));
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
            known.units[to] &= std::mem::replace(&mut known.units[from], ALL);
            for complete in known.set.values_mut() {
                complete[to] &= std::mem::replace(&mut complete[from], true);
            }
        }
    }
}

impl Known {
    /// Records an access that no other unit has waited for.
    fn touch(&mut self, access: usize) {
        self.units[access] = 0;
        self.set.values_mut().for_each(|complete| complete[access] = false);
    }

    /// Returns whether each access is complete when a unit completes what was issued to it.
    fn complete(&self, unit: Pipe) -> Vec<bool> {
        let own = |n: usize| n % PIPES.len() == unit as usize;
        self.units.iter().enumerate().map(|(n, units)| own(n) || units & bit(unit) != 0).collect()
    }

    /// Makes a unit wait for all that another unit completes: [`Self::wait`] for what is [`Self::complete`], in
    /// one pass, because the analysis does nothing else as often.
    fn wait_for(&mut self, unit: Pipe, other: Pipe) {
        let (waiting, own) = (u32::from(waiting(unit)), u32::from(ALL) << (8 * other as usize));
        // The accesses of a place by all units follow each other: four bytes, which are one word.
        let (accesses, _) = self.units.as_chunks_mut::<{ PIPES.len() }>();
        for units in accesses {
            let word = u32::from_le_bytes(*units);
            let complete = ((word | own) >> other as u32) & 0x0101_0101;
            // A byte that is 0 or 1, times four bits, stays a byte.
            *units = (word | (complete * waiting)).to_le_bytes();
        }
    }

    /// Makes a unit wait for those accesses.
    fn wait(&mut self, unit: Pipe, complete: &[bool]) {
        let waiting = waiting(unit);
        for (units, _) in self.units.iter_mut().zip(complete).filter(|(_, complete)| **complete) {
            *units |= waiting;
        }
    }
}

/// Applies a synchronisation to the state.
pub fn learn(known: &mut Known, sync: Sync) {
    match sync {
        Sync::Barrier(p) => known.wait_for(p, p),
        Sync::Flag(a, b) => known.wait_for(b, a),
        Sync::Set(a, b, event) => {
            let complete = known.complete(a);
            known.set.insert((a, b, event), complete);
        }
        Sync::Wait(a, b, event) => {
            let complete = known.set.remove(&(a, b, event)).unwrap_or_default();
            known.wait(b, &complete);
        }
    }
}

/// Returns the state where two paths meet. An access that happened on only one of them has the
/// state of that path. Both have set the same events.
pub fn meet(a: &Known, b: &Known) -> Known {
    let units = a.units.iter().zip(&b.units).map(|(a, b)| a & b).collect();
    let both = |(event, complete): (&(Pipe, Pipe, u8), &Vec<bool>)| {
        let other = b.set.get(event)?;
        Some((*event, complete.iter().zip(other).map(|(a, b)| *a && *b).collect()))
    };
    Known { units, set: a.set.iter().filter_map(both).collect() }
}
