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

mod known;
mod overlap;

use overlap::Apart;
pub use overlap::Overlap;

use crate::ascend::aiv::{Act, Call, Definition, Loop, Node, Sync, syncs};
use known::{Known, PlaceMap, learn, meet};

/// The effects of a statement, whose places are numbers.
type Effects = Vec<Act<usize>>;

/// Inserts the synchronisation inside of a function into its definition. Its callers order what happens before
/// the function with what happens in it.
pub fn synchronised(mut function: Definition) -> Definition {
    synchronise(&mut function.nodes, &Apart);
    function
}

/// Inserts the synchronisation into a kernel. All units are idle when the kernel starts.
///
/// # Panics
/// If a function's own synchronisation does not order the effects inside of it.
pub fn synchronise(nodes: &mut [Node], map: &impl Overlap) {
    let map = PlaceMap::new(nodes, map);
    let mut steps = steps(&map, nodes);
    while !walk(&map, &mut steps, &mut map.initial(), true).is_empty() {}
    remove_redundant(&map, &mut steps);
    for (to, from) in syncs(nodes).into_iter().zip(syncs(&mut steps)) {
        *to = std::mem::take(from);
        order_waits(to);
    }
}

/// Returns the steps of a kernel, without synchronisation before its loops.
fn steps(map: &PlaceMap, nodes: &[Node]) -> Vec<Node<Effects>> {
    let step = |node: &Node| match node {
        Node::Note(note) => Node::Note(note.clone()),
        Node::Call(call) => Node::Call(Call { operation: map.acts(call), sync: call.sync.clone() }),
        Node::If { condition, body, otherwise } => {
            let [body, otherwise] = [body, otherwise].map(|nodes| steps(map, nodes));
            Node::If { condition: condition.clone(), body, otherwise }
        }
        Node::Loop(Loop { variable, step, always, body, .. }) => {
            let (step, always, body) = (step.clone(), *always, steps(map, body));
            Node::Loop(Loop { step, always, body, ..Loop::over(variable, 0) })
        }
    };
    nodes.iter().map(step).collect()
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
fn remove_redundant(map: &PlaceMap, steps: &mut [Node<Effects>]) {
    for n in (0..syncs(steps).len()).rev() {
        for i in (0..syncs(steps)[n].len()).rev() {
            let sync = syncs(steps)[n][i];
            if matches!(sync, Sync::Set(..) | Sync::Wait(..)) {
                continue;
            }
            syncs(steps)[n].remove(i);
            if !walk(map, steps, &mut map.initial(), false).is_empty() {
                syncs(steps)[n].insert(i, sync);
            }
        }
    }
}

/// Walks over code, loops and branches. Returns the synchronisation that is missing, and inserts it
/// if `add` is set.
fn walk(map: &PlaceMap, steps: &mut [Node<Effects>], known: &mut Known, add: bool) -> Vec<Sync> {
    let mut lacking = Vec::new();
    for step in steps {
        match step {
            Node::Note(_) => {}
            Node::Call(step) => lacking.extend(call(map, step, known, add)),
            Node::If { body, otherwise, .. } => {
                let mut other = known.clone();
                lacking.extend(walk(map, body, known, add));
                lacking.extend(walk(map, otherwise, &mut other, add));
                *known = meet(known, &other);
            }
            Node::Loop(step) => {
                step.sync.iter().for_each(|&s| learn(known, s));
                // A flag before an outer loop would make its units wait before they do other work.
                if add && !is_outer(step) {
                    // An outer loop may need it before its first round only.
                    lacking.extend(hoist(map, step, known));
                }
                let skipped = known.clone();
                lacking.extend(run(map, &mut step.body, known, add));
                if !step.always {
                    *known = meet(known, &skipped);
                }
            }
        }
    }
    lacking
}

/// Returns whether a node is a loop.
fn is_loop(node: &Node<Effects>) -> bool {
    matches!(node, Node::Loop(_))
}

/// Returns whether a loop contains loops that contain loops.
fn is_outer(step: &Loop<Effects>) -> bool {
    let nested = |node: &Node<Effects>| node.bodies().flat_map(Node::all).any(is_loop);
    step.body.iter().flat_map(Node::all).any(|node| is_loop(node) && nested(node))
}

/// Walks over the rounds of a loop that runs at least one.
fn run(map: &PlaceMap, body: &mut [Node<Effects>], known: &mut Known, add: bool) -> Vec<Sync> {
    let mut lacking = Vec::new();
    loop {
        let head = known.clone();
        lacking.extend(walk(map, body, known, add));
        // The tiles of this round are not those of the next round or of another loop.
        map.leave_tile(known);
        // The next round starts with the state at the end of this one.
        let next = meet(&head, known);
        if next == head {
            break;
        }
        *known = next;
    }
    map.leave_loop(known);
    lacking
}

fn call(
    map: &PlaceMap,
    Call { operation: acts, sync }: &mut Call<Effects>,
    known: &mut Known,
    add: bool,
) -> Vec<Sync> {
    sync.iter().for_each(|&s| learn(known, s));
    let (start, mut more) = (known.clone(), Vec::new());
    let mut lack = |s| {
        if !more.contains(&s) {
            more.push(s);
        }
    };
    acts.iter().for_each(|act| map.apply(known, act, &mut lack));
    if add && !more.is_empty() {
        // The missing synchronisation is applied before the call, and then no effect inside of it
        // may lack any.
        *known = start;
        more.iter().for_each(|&s| learn(known, s));
        sync.extend(&more);
        let mut inside = |s| panic!("{acts:?} lack {s:?} inside");
        acts.iter().for_each(|act| map.apply(known, act, &mut inside));
    }
    more
}

/// Inserts synchronisation before a loop that the loop needs for accesses before it, and returns it.
fn hoist(map: &PlaceMap, of: &mut Loop<Effects>, known: &mut Known) -> Vec<Sync> {
    let short = of.width().is_none() && !of.body.iter().flat_map(Node::all).any(is_loop);
    let mut more = Vec::new();
    for sync in walk(map, &mut of.body.clone(), &mut known.clone(), true) {
        if matches!(sync, Sync::Barrier(_)) && !short {
            continue;
        }
        let mut after = known.clone();
        learn(&mut after, sync);
        let count = |known: &Known| {
            let all = walk(map, &mut of.body.clone(), &mut known.clone(), false);
            all.iter().filter(|&&s| s == sync).count()
        };
        if !of.sync.contains(&sync) && count(&after) < count(known) {
            of.sync.push(sync);
            more.push(sync);
            *known = after;
        }
    }
    more
}

#[cfg(test)]
mod tests;
