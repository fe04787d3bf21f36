//! The least synchronisation that a kernel needs.
//!
//! What is known: for every buffer, way of access and unit, which units start nothing before that
//! access is complete. A `PipeBarrier` tells the unit about its own accesses; a flag from Q to P tells P
//! all that Q did and knew. Where a call would touch what it may not yet, the order is put before it, and
//! a flag that a loop needs only for what lies before the loop is put there. Loops run until nothing
//! changes; where paths meet, only what both know is known. In the end every synchronisation that the
//! others make needless goes: what is left, a mutation test shows to be needed.

use crate::aiv::{Act, Call, Loop, Node, Pipe, Place, Sync, syncs};
use std::collections::{BTreeMap, BTreeSet};

/// Where buffers lie, as [`crate::ub`] placed them: two that share bytes conflict.
pub trait Overlap {
    /// Whether two places share a byte.
    fn overlap(&self, a: &Place, b: &Place) -> bool;
}

/// All units, in the order of their declaration.
const PIPES: [Pipe; 4] = [Pipe::S, Pipe::V, Pipe::Mte2, Pipe::Mte3];

/// Who knows of an access, a bit per unit.
type Known = Vec<u8>;

/// Every unit: of an access that there was not, nobody must learn.
const ALL: u8 = (1 << PIPES.len()) - 1;

/// A kernel's places, by number, and which of them conflict.
struct Map {
    places: BTreeMap<Place, usize>,
    overlap: Vec<Vec<usize>>,
    /// Of every column that is swept: the tile at hand, those that earlier rounds were at, and all of it.
    tiles: BTreeSet<[usize; 3]>,
}

/// Numbers of a column's places in [`Map::tiles`].
const BASE: usize = 0;
const PAST: usize = 1;
const WHOLE: usize = 2;

fn bit(p: Pipe) -> u8 {
    1 << p as usize
}

/// The number of an access: place, way, unit.
fn key(place: usize, write: bool, pipe: Pipe) -> usize {
    (place * 2 + usize::from(write)) * PIPES.len() + pipe as usize
}

impl Map {
    fn new(nodes: &[Node], map: &impl Overlap) -> Self {
        let (mut places, mut tiles) = (BTreeMap::new(), BTreeSet::new());
        let mut number = |place: Place| {
            let next = places.len();
            *places.entry(place).or_insert(next)
        };
        let calls = nodes.iter().flat_map(Node::all).filter_map(Node::call);
        for (place, _) in calls.flat_map(Call::uses) {
            number(place.clone());
            if let Place::Ub(name) = place
                && let Some(column) = name.strip_suffix("[base]")
            {
                let names = ["[base]", "[past]", ""].map(|tile| format!("{column}{tile}"));
                tiles.insert(names.map(|name| number(Place::Ub(name))));
            }
        }
        let mut overlap = vec![Vec::new(); places.len()];
        for (a, &n) in &places {
            let with = places.iter().filter(|(b, _)| map.overlap(a, b));
            overlap[n] = with.map(|(_, &m)| m).collect();
        }
        Self { places, overlap, tiles }
    }

    fn nothing(&self) -> Known {
        vec![ALL; self.places.len() * 2 * PIPES.len()]
    }

    /// One act; what it lacks goes to `lack`.
    fn act(&self, known: &mut Known, act: &Act, lack: &mut dyn FnMut(Sync)) {
        let pipe = match act {
            Act::Sync(sync) => return learn(known, *sync),
            Act::Maybe(acts) => {
                let not = known.clone();
                acts.iter().for_each(|act| self.act(known, act, lack));
                *known = meet(&not, known);
                return;
            }
            Act::Use { pipe, .. } => *pipe,
        };
        let numbers = act.uses().into_iter().map(|(place, write)| (self.places[place], write));
        let touched: Vec<_> = numbers.collect();
        for &(place, write) in &touched {
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
        for (place, write) in touched {
            known[key(place, write, pipe)] = 0;
        }
    }

    /// Walks straight code and loops; returns what was lacking and, with `add`, puts it there.
    fn walk(&self, nodes: &mut [Node], known: &mut Known, add: bool) -> Vec<Sync> {
        let mut lacking = Vec::new();
        for node in nodes {
            match node {
                Node::Note(_) => {}
                Node::Call(call) => lacking.extend(self.call(call, known, add)),
                Node::Loop(Loop { always, sync, body, .. }) => {
                    sync.iter().for_each(|&s| learn(known, s));
                    if add {
                        self.hoist(body, known, sync);
                    }
                    loop {
                        let mut end = known.clone();
                        lacking.extend(self.walk(body, &mut end, add));
                        // A round's tiles are not the next one's, nor any other loop's.
                        self.rename(&mut end, BASE, PAST);
                        // A round ends where the next one starts.
                        let head = meet(known, &end);
                        if head == *known {
                            // No round at all leaves the entry.
                            if *always {
                                *known = end;
                            }
                            self.rename(known, PAST, WHOLE);
                            break;
                        }
                        *known = head;
                    }
                }
            }
        }
        lacking
    }

    /// Books accesses of one kind of a column's places under another.
    fn rename(&self, known: &mut Known, from: usize, to: usize) {
        let ways = 2 * PIPES.len();
        for (tile, way) in self.tiles.iter().flat_map(|tile| (0..ways).map(move |way| (tile, way)))
        {
            let [from, to] = [from, to].map(|n| tile[n] * ways + way);
            known[to] &= std::mem::replace(&mut known[from], ALL);
        }
    }

    fn call(&self, call: &mut Call, known: &mut Known, add: bool) -> Vec<Sync> {
        call.sync.iter().for_each(|&s| learn(known, s));
        let (start, mut more) = (known.clone(), Vec::new());
        for act in &call.acts {
            self.act(known, act, &mut |s| {
                if !more.contains(&s) {
                    more.push(s);
                }
            });
        }
        if add && !more.is_empty() {
            // What an act inside a helper lacks, it must know before the call.
            *known = start;
            more.iter().for_each(|&s| learn(known, s));
            call.sync.extend(&more);
            for act in &call.acts {
                self.act(known, act, &mut |s| panic!("{} lacks {s:?} inside", call.text));
            }
        }
        more
    }

    /// Puts flags that a loop needs for what happened before it there.
    fn hoist(&self, body: &[Node], known: &mut Known, before: &mut Vec<Sync>) {
        for sync in self.walk(&mut body.to_vec(), &mut known.clone(), true) {
            let Sync::Flag(..) = sync else { continue };
            let mut after = known.clone();
            learn(&mut after, sync);
            let count = |known: &Known| {
                let all = self.walk(&mut body.to_vec(), &mut known.clone(), false);
                all.iter().filter(|&&s| s == sync).count()
            };
            if !before.contains(&sync) && count(&after) < count(known) {
                before.push(sync);
                *known = after;
            }
        }
    }
}

fn learn(known: &mut Known, sync: Sync) {
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
fn meet(a: &Known, b: &Known) -> Known {
    a.iter().zip(b).map(|(a, b)| a & b).collect()
}

/// Puts the synchronisation into a kernel that starts and ends with all units idle.
///
/// # Panics
/// If a helper's own synchronisation does not order what is inside it.
pub fn synchronise(nodes: &mut [Node], map: &impl Overlap) {
    let map = Map::new(nodes, map);
    while !map.walk(nodes, &mut map.nothing(), true).is_empty() {}
    // From the last to the first: a flag that came early often does a later one's work.
    for n in (0..syncs(nodes).len()).rev() {
        for i in (0..syncs(nodes)[n].len()).rev() {
            let sync = syncs(nodes)[n].remove(i);
            if !map.walk(nodes, &mut map.nothing(), false).is_empty() {
                syncs(nodes)[n].insert(i, sync);
            }
        }
    }
}
