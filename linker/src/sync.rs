//! The least synchronisation that a kernel needs.
//!
//! What is known: for every buffer, way of access and unit, which units start nothing before that
//! access is complete. A `PipeBarrier` tells the unit about its own accesses; a flag from Q to P tells P
//! all that Q did and knew. Where a call would touch what it may not yet, the order is put before it, and
//! a flag that a loop needs only for what lies before the loop is put there. Loops run until nothing
//! changes; a branch is taken or not; where paths meet, only what both know is known. In the end every synchronisation that the
//! others make needless goes: what is left, a mutation test shows to be needed.

mod known;
mod overlap;
mod step;

pub use overlap::Overlap;

use crate::aiv::{Node, Sync, syncs};
use known::{Known, Map, learn, meet};
use step::Step;

/// Puts the synchronisation into a kernel that starts and ends with all units idle.
///
/// # Panics
/// If a helper's own synchronisation does not order what is inside it.
pub fn synchronise(nodes: &mut [Node], map: &impl Overlap) {
    let map = Map::new(nodes, map);
    let mut steps = map.steps(nodes);
    while !walk(&map, &mut steps, &mut map.nothing(), true).is_empty() {}
    // From the last to the first: a flag that came early often does a later one's work.
    for n in (0..step::syncs(&mut steps).len()).rev() {
        for i in (0..step::syncs(&mut steps)[n].len()).rev() {
            let sync = step::syncs(&mut steps)[n].remove(i);
            if !walk(&map, &mut steps, &mut map.nothing(), false).is_empty() {
                step::syncs(&mut steps)[n].insert(i, sync);
            }
        }
    }
    for (to, from) in syncs(nodes).into_iter().zip(step::syncs(&mut steps)) {
        to.append(from);
    }
}

/// Walks straight code, loops and branches; returns what was lacking and, with `add`, puts it there.
fn walk(map: &Map, steps: &mut [Step], known: &mut Known, add: bool) -> Vec<Sync> {
    let mut lacking = Vec::new();
    for step in steps {
        match step {
            Step::Call { deeds, sync } => lacking.extend(call(map, deeds, sync, known, add)),
            Step::If { body, otherwise } => {
                let mut taken = known.clone();
                lacking.extend(walk(map, body, &mut taken, add));
                lacking.extend(walk(map, otherwise, known, add));
                *known = meet(known, &taken);
            }
            Step::Loop { always, sync, body } => {
                sync.iter().for_each(|&s| learn(known, s));
                if add {
                    hoist(map, body, known, sync);
                }
                loop {
                    let mut end = known.clone();
                    lacking.extend(walk(map, body, &mut end, add));
                    // A round's tiles are not the next one's, nor any other loop's.
                    map.leave_tile(&mut end);
                    // A round ends where the next one starts.
                    let head = meet(known, &end);
                    if head == *known {
                        // No round at all leaves the entry.
                        if *always {
                            *known = end;
                        }
                        map.leave_loop(known);
                        break;
                    }
                    *known = head;
                }
            }
        }
    }
    lacking
}

fn call(
    map: &Map,
    deeds: &[step::Deed],
    sync: &mut Vec<Sync>,
    known: &mut Known,
    add: bool,
) -> Vec<Sync> {
    sync.iter().for_each(|&s| learn(known, s));
    let (start, mut more) = (known.clone(), Vec::new());
    for deed in deeds {
        map.deed(known, deed, &mut |s| {
            if !more.contains(&s) {
                more.push(s);
            }
        });
    }
    if add && !more.is_empty() {
        // What an act inside a helper lacks, it must know before the call.
        *known = start;
        more.iter().for_each(|&s| learn(known, s));
        sync.extend(&more);
        for deed in deeds {
            map.deed(known, deed, &mut |s| panic!("{deeds:?} lack {s:?} inside"));
        }
    }
    more
}

/// Puts flags that a loop needs for what happened before it there.
fn hoist(map: &Map, body: &[Step], known: &mut Known, before: &mut Vec<Sync>) {
    for sync in walk(map, &mut body.to_vec(), &mut known.clone(), true) {
        let Sync::Flag(..) = sync else { continue };
        let mut after = known.clone();
        learn(&mut after, sync);
        let count = |known: &Known| {
            let all = walk(map, &mut body.to_vec(), &mut known.clone(), false);
            all.iter().filter(|&&s| s == sync).count()
        };
        if !before.contains(&sync) && count(&after) < count(known) {
            before.push(sync);
            *known = after;
        }
    }
}

#[cfg(test)]
mod tests;
