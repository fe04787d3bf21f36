//! Flags to the scalar unit whose event is set before the statement that needs the flag.
//!
//! A flag that is set and waited for at once makes the scalar unit wait for all that the first unit got
//! before, also for work that it does not need. Where other work of the first unit stands between, the
//! event is set behind the last access that needs the flag.

use super::step::{self, Step};
use crate::ascend::aiv::{Call, If, Loop, Node, Operation, Pipe, Sync};

/// The largest number of an event that kernels without a `TPipe` may use. Number 0 belongs to flags that
/// are set and waited for at once, and number 5 to those that a kernel sets itself.
const LAST_EVENT: u8 = 4;

/// A place for synchronisation, before another one in the same block.
struct Earlier {
    /// The number of the place.
    place: usize,
    /// The units that get work between the two places.
    busy: Vec<Pipe>,
}

/// A flag that was split: its units, its event, and the places of both halves.
struct Split {
    flag: [Pipe; 2],
    event: u8,
    set: usize,
    wait: usize,
}

/// Splits the flags of a kernel. `ordered` returns whether nothing lacks synchronisation.
pub fn flags(nodes: &[Node], steps: &mut [Step], ordered: &impl Fn(&mut [Step]) -> bool) {
    let mut earlier = Vec::new();
    find_earlier(nodes, &mut earlier);
    let mut done: Vec<Split> = Vec::new();
    for (wait, earlier) in earlier.iter().enumerate() {
        for i in 0..step::syncs(steps)[wait].len() {
            // Any other unit that waits longer than it must delays only itself.
            let Sync::Flag(from, to @ Pipe::S) = step::syncs(steps)[wait][i] else { continue };
            let (mut best, mut beside) = (None, 0);
            for Earlier { place: set, busy } in earlier {
                // Only work of the first unit behind the event makes a difference.
                let work = busy.iter().filter(|unit| **unit == from).count();
                if work == beside {
                    continue;
                }
                beside = work;
                let taken = |event: &u8| {
                    let overlaps = |s: &Split| s.set <= wait && *set <= s.wait;
                    done.iter().any(|s| s.flag == [from, to] && s.event == *event && overlaps(s))
                };
                let Some(event) = (1..=LAST_EVENT).find(|event| !taken(event)) else { break };
                put(steps, wait, i, Sync::Wait(from, to, event));
                step::syncs(steps)[*set].insert(0, Sync::Set(from, to, event));
                let enough = ordered(steps);
                step::syncs(steps)[*set].remove(0);
                put(steps, wait, i, Sync::Flag(from, to));
                if !enough {
                    break;
                }
                best = Some(Split { flag: [from, to], event, set: *set, wait });
            }
            if let Some(split) = best {
                put(steps, wait, i, Sync::Wait(from, to, split.event));
                step::syncs(steps)[split.set].insert(0, Sync::Set(from, to, split.event));
                done.push(split);
            }
        }
    }
}

fn put(steps: &mut [Step], place: usize, i: usize, sync: Sync) {
    step::syncs(steps)[place][i] = sync;
}

/// Lists, for each place for synchronisation in text order, the places before it in its block, the
/// nearest one first. A flag is not split around a statement that may end the kernel or waits for other
/// cores.
fn find_earlier(nodes: &[Node], all: &mut Vec<Vec<Earlier>>) {
    let mut before: Vec<Earlier> = Vec::new();
    for node in nodes {
        let place = all.len();
        if matches!(node, Node::Call(_) | Node::Loop(_)) {
            let nearest = before.iter().rev();
            let copy = |e: &Earlier| Earlier { place: e.place, busy: e.busy.clone() };
            all.push(nearest.map(copy).collect());
            before.push(Earlier { place, busy: Vec::new() });
        }
        match node {
            Node::Loop(Loop { body, .. }) => find_earlier(body, all),
            Node::If(If { body, otherwise, .. }) => {
                find_earlier(body, all);
                find_earlier(otherwise, all);
            }
            Node::Call(_) | Node::Note(_) => {}
        }
        let calls = || node.all().filter_map(Node::call);
        if calls().any(|call| matches!(call.operation, Operation::Leave | Operation::WaitForAll)) {
            before.clear();
        }
        let busy: Vec<Pipe> = calls().flat_map(Call::acts).flat_map(|act| act.units()).collect();
        before.iter_mut().for_each(|earlier| earlier.busy.extend(&busy));
    }
}
