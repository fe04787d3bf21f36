//! The least synchronisation that a kernel needs.
//!
//! The analysis tracks a state: for each place, kind of access and unit, the set of units that
//! start nothing before the last such access is complete. A `PipeBarrier` adds the unit of the
//! access; a flag from Q to P adds P to every access of Q, and to every access whose set contains
//! Q. If an effect touches a place before the unit is in the required sets, a synchronisation is
//! inserted before the call. A flag that a loop needs only for accesses before the loop is inserted
//! before the loop, and so is a barrier if the loop is short. A loop is walked until its state does
//! not change. Where two paths meet, the sets are intersected. The body of a function is synchronised
//! once, on its own; a call of it counts as the statements of the body, whose own synchronisation does
//! not change. At the end, every synchronisation that the others make redundant is removed; a mutation
//! test shows that each remaining one is needed.
//!
//! In a kernel, flags are then split where the first unit gets other work before the second one needs the
//! flag. At last the analysis follows scalars: paths on which a scalar has other bounds stay apart as long
//! as a later branch or loop tests it (`paths`), and what no path needs is removed, too.

mod facts;
mod known;
mod overlap;
mod paths;
mod scalars;
mod split;
mod step;

use overlap::Apart;
pub use overlap::Overlap;

use crate::ascend::aiv::{CountRead, Expr, Function, Node, Relation, Sync, syncs};
use known::PlaceMap;
use paths::Paths;
use scalars::Steps;
use step::{Rounds, Step};

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
    let start = || Paths::start(map.initial());
    let ordered = |steps: &mut [Step]| walk(&map, steps, &mut start(), false).is_empty();
    let mut steps = Steps { map: &map, follow: false }.of(nodes);
    while !walk(&map, &mut steps, &mut start(), true).is_empty() {}
    remove_redundant(&mut steps, &ordered);
    if early {
        split::flags(nodes, &mut steps, &ordered);
        // A flag that was split may leave a later one its work, so scalars are followed only now.
        let mut followed = Steps { map: &map, follow: true }.of(nodes);
        for (to, from) in step::syncs(&mut followed).into_iter().zip(step::syncs(&mut steps)) {
            *to = std::mem::take(from);
        }
        steps = followed;
        remove_redundant(&mut steps, &ordered);
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

/// Removes synchronisation that the other one makes redundant, from the last to the first, because an early
/// flag often makes a later one redundant.
fn remove_redundant(steps: &mut [Step], ordered: &impl Fn(&mut [Step]) -> bool) {
    for n in (0..step::syncs(steps).len()).rev() {
        for i in (0..step::syncs(steps)[n].len()).rev() {
            let sync = step::syncs(steps)[n][i];
            if matches!(sync, Sync::Set(..) | Sync::Wait(..)) {
                continue;
            }
            step::syncs(steps)[n].remove(i);
            if !ordered(steps) {
                step::syncs(steps)[n].insert(i, sync);
            }
        }
    }
}

/// Walks over code, loops and branches. Returns the synchronisation that is missing, and inserts it
/// if `add` is set.
fn walk(map: &PlaceMap<'_>, steps: &mut [Step], paths: &mut Paths, add: bool) -> Vec<Sync> {
    let mut lacking = Vec::new();
    for step in steps {
        match step {
            Step::Call { acts, sets, sync } => {
                lacking.extend(call(map, acts, sync, paths, add));
                if let Some((name, value)) = sets {
                    paths.set(name, value.as_ref());
                }
            }
            Step::If { condition, body, otherwise } => {
                let [mut taken, mut other] = branch(std::mem::take(paths), condition.as_ref());
                lacking.extend(walk(map, body, &mut taken, add));
                lacking.extend(walk(map, otherwise, &mut other, add));
                *paths = taken;
                paths.join(other);
            }
            Step::Loop { rounds, sync, body } => {
                sync.iter().for_each(|&s| paths.learn(s));
                let some = rounds.bound.clone().map(|n| Expr::test(Relation::Above, n, 0));
                let enter = |paths| {
                    if rounds.always {
                        [paths, Paths::default()]
                    } else {
                        branch(paths, some.as_ref())
                    }
                };
                // A flag before an outer loop would make its units wait before they do other work, and so
                // would one before a loop whose rounds differ.
                if add && !rounds.outer && !rounds.differ {
                    let [mut entered, _] = enter(paths.clone());
                    let more = hoist(map, body, rounds.short, &mut entered, sync);
                    more.iter().for_each(|&s| paths.learn(s));
                    // An outer loop may need it before its first round only.
                    lacking.extend(more);
                }
                let [mut entered, skipped] = enter(std::mem::take(paths));
                lacking.extend(run(map, rounds, body, &mut entered, add));
                *paths = entered;
                paths.join(skipped);
            }
            Step::Keep(names) => paths.keep(names),
        }
    }
    lacking
}

/// Returns the ways that a branch leads on if its condition holds, and if it does not. One without a
/// condition may go either way.
fn branch(paths: Paths, condition: Option<&Expr>) -> [Paths; 2] {
    match condition {
        Some(condition) => paths.split(condition),
        None => [paths.clone(), paths],
    }
}

/// Walks over the rounds of a loop that runs at least one.
fn run(
    map: &PlaceMap<'_>,
    rounds: &Rounds,
    body: &mut [Step],
    paths: &mut Paths,
    add: bool,
) -> Vec<Sync> {
    let mut lacking = Vec::new();
    let mut round = |paths: &mut Paths| {
        lacking.extend(walk(map, body, paths, add));
        // The tiles of this round are not those of the next round or of another loop.
        paths.each(|known| map.leave_tile(known));
    };
    if let Some(n) = rounds.each {
        for number in 0..n {
            paths.set(rounds.variable, Some(&number.into()));
            round(paths);
        }
    } else {
        paths.set(rounds.variable, None);
        let another = rounds.bound.clone().map(|n| Expr::test(Relation::Above, n, rounds.step));
        let once = another.is_some_and(|another| paths.never(&another));
        loop {
            let head = paths.clone();
            round(paths);
            // The next round starts with the state at the end of this one.
            let mut next = head.clone();
            next.join(paths.clone());
            if once || next == head {
                break;
            }
            *paths = next;
        }
    }
    paths.set(rounds.variable, None);
    paths.each(|known| map.leave_loop(known));
    lacking
}

fn call(
    map: &PlaceMap<'_>,
    acts: &[step::NumberedAct],
    sync: &mut Vec<Sync>,
    paths: &mut Paths,
    add: bool,
) -> Vec<Sync> {
    sync.iter().for_each(|&s| paths.learn(s));
    let (start, mut more) = (paths.clone(), Vec::new());
    paths.apply(map, acts, &mut |s| {
        if !more.contains(&s) {
            more.push(s);
        }
    });
    if add && !more.is_empty() {
        // The missing synchronisation is applied before the call, and then no effect inside of it
        // may lack any.
        *paths = start;
        more.iter().for_each(|&s| paths.learn(s));
        sync.extend(&more);
        paths.apply(map, acts, &mut |s| panic!("{acts:?} lack {s:?} inside"));
    }
    more
}

/// Inserts synchronisation before a loop that the loop needs for accesses before it, and returns it.
fn hoist(
    map: &PlaceMap<'_>,
    body: &[Step],
    short: bool,
    paths: &mut Paths,
    before: &mut Vec<Sync>,
) -> Vec<Sync> {
    let mut more = Vec::new();
    for sync in walk(map, &mut body.to_vec(), &mut paths.clone(), true) {
        if matches!(sync, Sync::Barrier(_)) && !short {
            continue;
        }
        let mut after = paths.clone();
        after.learn(sync);
        let count = |paths: &Paths| {
            let all = walk(map, &mut body.to_vec(), &mut paths.clone(), false);
            all.iter().filter(|&&s| s == sync).count()
        };
        if !before.contains(&sync) && count(&after) < count(paths) {
            before.push(sync);
            more.push(sync);
            *paths = after;
        }
    }
    more
}

#[cfg(test)]
mod tests;
