//! The least synchronisation that a kernel needs.
//!
//! The analysis tracks a state: for each place, kind of access and unit, the set of units that
//! start nothing before the last such access is complete. A `PipeBarrier` adds the unit of the
//! access; a flag from Q to P adds P to every access of Q, and to every access whose set contains
//! Q. If an effect touches a place before the unit is in the required sets, a synchronisation is
//! inserted before the call. A flag that a loop needs only for accesses before the loop is inserted
//! before the loop, and so is a barrier if the loop is short. A loop is walked until its state does
//! not change. Where two paths meet, the sets are intersected. The body of a function is synchronised
//! once, on its own; a call of it counts as the statements of the body, whose own synchronisation
//! does not change. At the end, every synchronisation that the others make redundant is removed; a
//! mutation test shows that each remaining one is needed. Then flags of the kernel itself are split
//! where the first unit gets other work before the second one needs the flag.

mod known;
mod overlap;
mod split;
mod step;

use overlap::Apart;
pub use overlap::Overlap;

use crate::ascend::aiv::{CountRead, Function, Node, Sync, syncs};
use known::{Known, PlaceMap, learn, meet};
use step::Step;

/// Returns the statements of a function with the synchronisation inside of it. Its callers order what
/// happens before the function with what happens in it.
pub fn ordered(function: &'static Function, count: CountRead) -> &'static [Node] {
    function.ordered(count, |nodes| synchronise(nodes, &Apart, count))
}

/// Inserts the synchronisation into a kernel, which reads counts by `count`. All units are idle when
/// the kernel starts.
///
/// # Panics
/// If a function's own synchronisation does not order the effects inside of it.
pub fn synchronise(nodes: &mut [Node], map: &impl Overlap, count: CountRead) {
    place(nodes, map, count, false);
}

/// Synchronises a kernel as [`synchronise`] does, and sets its flags as early as possible.
pub fn synchronise_early(nodes: &mut [Node], map: &impl Overlap, count: CountRead) {
    place(nodes, map, count, true);
}

fn place(nodes: &mut [Node], map: &impl Overlap, count: CountRead, early: bool) {
    let statements = |function: &'static Function| ordered(function, count);
    let map = PlaceMap::new(nodes, map, count, &statements);
    let mut steps = map.steps(nodes);
    while !walk(&map, &mut steps, &mut map.initial(), true).is_empty() {}
    // Redundant ones are removed from the last to the first, because an early flag often makes a
    // later one redundant.
    for n in (0..step::syncs(&mut steps).len()).rev() {
        for i in (0..step::syncs(&mut steps)[n].len()).rev() {
            let sync = step::syncs(&mut steps)[n][i];
            if matches!(sync, Sync::Set(..) | Sync::Wait(..)) {
                continue;
            }
            step::syncs(&mut steps)[n].remove(i);
            if !walk(&map, &mut steps, &mut map.initial(), false).is_empty() {
                step::syncs(&mut steps)[n].insert(i, sync);
            }
        }
    }
    if early {
        let ordered = |steps: &mut [Step]| walk(&map, steps, &mut map.initial(), false).is_empty();
        split::flags(nodes, &mut steps, &ordered);
    }
    for (to, from) in syncs(nodes).into_iter().zip(step::syncs(&mut steps)) {
        *to = std::mem::take(from);
        order_waits(to);
    }
}

/// Orders neighbouring waits of one unit by the unit that they wait for, because the analysis finds them in
/// an order that depends on the names of buffers.
fn order_waits(sync: &mut [Sync]) {
    let wait = |sync: Sync| match sync {
        Sync::Flag(from, to) | Sync::Wait(from, to, _) => Some((to, from)),
        Sync::Barrier(_) | Sync::Set(..) => None,
    };
    let swapped = |a: Sync, b: Sync| match (wait(a), wait(b)) {
        (Some((to, from)), Some((other, earlier))) => to == other && earlier < from,
        _ => false,
    };
    while let Some(n) = (1..sync.len()).find(|&n| swapped(sync[n - 1], sync[n])) {
        sync.swap(n - 1, n);
    }
}

/// Walks over code, loops and branches. Returns the synchronisation that is missing, and inserts it
/// if `add` is set.
fn walk(map: &PlaceMap<'_>, steps: &mut [Step], known: &mut Known, add: bool) -> Vec<Sync> {
    let mut lacking = Vec::new();
    for step in steps {
        match step {
            Step::Call { acts, sync } => lacking.extend(call(map, acts, sync, known, add)),
            Step::If { body, otherwise } => {
                let mut taken = known.clone();
                lacking.extend(walk(map, body, &mut taken, add));
                lacking.extend(walk(map, otherwise, known, add));
                *known = meet(known, &taken);
            }
            Step::Loop { always, short, outer, sync, body } => {
                sync.iter().for_each(|&s| learn(known, s));
                // A flag before an outer loop would make its units wait before they do other work.
                if add && !*outer {
                    hoist(map, body, *short, known, sync);
                }
                loop {
                    let mut end = known.clone();
                    lacking.extend(walk(map, body, &mut end, add));
                    // The tiles of this round are not those of the next round or of another loop.
                    map.leave_tile(&mut end);
                    // The next round starts with the state at the end of this one.
                    let head = meet(known, &end);
                    if head == *known {
                        // A loop that may run no round keeps the state of its entry.
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
    map: &PlaceMap<'_>,
    acts: &[step::NumberedAct],
    sync: &mut Vec<Sync>,
    known: &mut Known,
    add: bool,
) -> Vec<Sync> {
    sync.iter().for_each(|&s| learn(known, s));
    let (start, mut more) = (known.clone(), Vec::new());
    for act in acts {
        map.apply(known, act, &mut |s| {
            if !more.contains(&s) {
                more.push(s);
            }
        });
    }
    if add && !more.is_empty() {
        // The missing synchronisation is applied before the call, and then no effect inside of it
        // may lack any.
        *known = start;
        more.iter().for_each(|&s| learn(known, s));
        sync.extend(&more);
        for act in acts {
            map.apply(known, act, &mut |s| panic!("{acts:?} lack {s:?} inside"));
        }
    }
    more
}

/// Inserts synchronisation before a loop that the loop needs for accesses before it.
fn hoist(
    map: &PlaceMap<'_>,
    body: &[Step],
    short: bool,
    known: &mut Known,
    before: &mut Vec<Sync>,
) {
    for sync in walk(map, &mut body.to_vec(), &mut known.clone(), true) {
        if matches!(sync, Sync::Barrier(_)) && !short {
            continue;
        }
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
