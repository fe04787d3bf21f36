//! Adds the barriers of a block: before an operation that touches memory which another thread has touched
//! since the last barrier, if one of them writes.
//!
//! A sweep that makes a list, or in which lanes may write one word, has barriers of its own. It has them only
//! if it has lanes, so what was touched before it counts as ordered for others that have work under the same
//! condition: sweeps of the same length, and branches on it.

use super::access::{By, accesses, exchanged, repeats, waits};
use super::place::Plan;
use crate::tape::{Block, ColumnId, Kind, Op, OpCode, Range, Tape, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Memory in which two places are either apart or overlap.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Space {
    /// Bytes of shared memory.
    Shared(u32, u32),
    /// A column that is elsewhere, or a plane of the table.
    Column(ColumnId),
    /// Words of one.
    Words(ColumnId, i32, i32),
}

/// Memory that some thread has touched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Touch {
    space: Space,
    by: By,
    write: bool,
}

/// What was touched since the last barrier, each with numbers: there was a barrier since then if one of them is
/// above 0.
type Touched = BTreeMap<Touch, BTreeSet<Value>>;

#[derive(Clone, Copy)]
struct Walk<'t> {
    tape: &'t Tape,
    plan: &'t Plan,
    ranges: &'t [Range],
    defs: &'t BTreeMap<Value, Op>,
    /// The lengths of lists of slots with their limits: a list is empty if its limit is not above 0.
    limits: &'t BTreeMap<Value, Value>,
    /// Whether each branch that touches memory ends with a barrier, needed or not.
    cautious: bool,
}

/// Returns the fused tape with the barriers of a block as `Synchronise`. One with an operand is a barrier
/// only if the operand is above 0, and one with the number of a round and that of all rounds only if another
/// round follows.
pub fn order(tape: &Tape, plan: &Plan, ranges: &[Range]) -> Tape {
    let def = |op: &Op| Some((op.out?, Op { blocks: Vec::new(), ..op.clone() }));
    let defs: BTreeMap<_, _> = tape.body.all().filter_map(def).collect();
    let limits = limits(&tape.body, &mut BTreeMap::new());
    let walk = Walk { tape, plan, ranges, defs: &defs, limits: &limits, cautious: false };
    let body = walk.block(&tape.body, &mut Touched::new());
    Tape { body, ..tape.clone() }
}

impl Walk<'_> {
    fn block(&self, block: &Block, touched: &mut Touched) -> Block {
        let mut ops = Vec::new();
        for (at, op) in block.ops.iter().enumerate() {
            match op.code {
                OpCode::Repeat(_) => {
                    let body = self.repeat(op, touched);
                    ops.push(Op { blocks: vec![body], ..op.clone() });
                }
                OpCode::When => {
                    let (mut open, mut closed) = (touched.clone(), touched.clone());
                    let without = self.when(op, &mut open, false);
                    let with = self.when(op, &mut closed, true);
                    let rest = Block { binds: None, ops: block.ops[at + 1..].to_vec() };
                    let rest = |mut touched: Touched| {
                        Walk { cautious: true, ..*self }.block(&rest, &mut touched)
                    };
                    let needless = || rest(open.clone()) == rest(closed.clone());
                    let ends = self.cautious || !needless();
                    *touched = if ends { closed } else { open };
                    ops.push(if ends { with } else { without });
                }
                _ => self.op(op, touched, &mut ops),
            }
        }
        Block { binds: block.binds, ops }
    }

    /// Orders the two ways of a branch.
    fn when(&self, op: &Op, touched: &mut Touched, ends: bool) -> Op {
        let mut yes = touched.clone();
        if let Some(n) = self.above_zero(op.args[0]) {
            yes.retain(|_, unless| !unless.contains(&n));
        }
        let yes_block = self.way(&op.blocks[0], &mut yes, ends);
        let blocks = vec![yes_block, self.way(&op.blocks[1], touched, ends)];
        join(touched, &yes);
        Op { blocks, ..op.clone() }
    }

    /// Orders one way of a branch. If it touches memory it may end with a barrier, so that the other way needs
    /// none.
    fn way(&self, block: &Block, touched: &mut Touched, ends: bool) -> Block {
        let before = touched.clone();
        let mut ordered = self.block(block, touched);
        if ends && touched.keys().any(|touch| !before.contains_key(touch)) {
            ordered.ops.push(Op::new(OpCode::Synchronise));
            touched.clear();
        }
        ordered
    }

    /// Orders a loop. If a round needs a barrier because of what the round before it has touched, it is at
    /// the end of a round behind which there is another one.
    fn repeat(&self, op: &Op, touched: &mut Touched) -> Block {
        let body = &op.blocks[0];
        let inside: BTreeSet<Value> =
            body.all().filter_map(|op| op.out).chain(body.binds).collect();
        let mut end = touched.clone();
        let mut first = self.block(body, &mut end);
        // A length of the next round is another number.
        end.values_mut().for_each(|unless| unless.retain(|n| !inside.contains(n)));
        let mut next = end.clone();
        let another = self.range(op.args[0]).hi > 1;
        if another && self.block(body, &mut next) != first {
            let args = body.binds.into_iter().chain(op.args.clone()).collect();
            first.ops.push(Op { args, ..Op::new(OpCode::Synchronise) });
        }
        join(touched, &end);
        first
    }

    /// Adds an operation with the barrier that it needs.
    fn op(&self, op: &Op, touched: &mut Touched, ops: &mut Vec<Op>) {
        let [before, after] = self.touches(op);
        let condition = self.condition(op).filter(|n| self.range(*n).lo <= 0);
        let conflicts = |(old, unless): (&Touch, &BTreeSet<Value>)| {
            let ordered = condition.is_some_and(|n| unless.contains(&n));
            !ordered && before.iter().any(|new| conflict(old, new))
        };
        if touched.iter().any(conflicts) {
            let args = condition.into_iter().collect();
            ops.push(Op { args, ..Op::new(OpCode::Synchronise) });
            barrier(touched, condition);
        }
        let now = |touches: Vec<Touch>| touches.into_iter().map(|touch| (touch, BTreeSet::new()));
        if has_barrier(op) {
            // What is touched before this barrier is ordered by it.
            barrier(touched, condition);
        } else {
            touched.extend(now(before));
        }
        touched.extend(now(after));
        ops.push(op.clone());
    }

    /// Returns a number that is above 0 if an operation does anything.
    fn condition(&self, op: &Op) -> Option<Value> {
        match op.code {
            OpCode::Sweep => Some(*self.limits.get(&op.args[0]).unwrap_or(&op.args[0])),
            OpCode::Threshold | OpCode::AppendLife(_) => Some(op.args[1]),
            _ => None,
        }
    }

    fn range(&self, n: Value) -> Range {
        self.ranges[n.0 as usize]
    }

    /// Returns the number of which a condition says that it is above 0.
    fn above_zero(&self, condition: Value) -> Option<Value> {
        let op = self.defs.get(&condition).filter(|op| op.code == OpCode::ScalarGt)?;
        let zero = self.defs.get(&op.args[1])?.code == OpCode::Constant(0);
        zero.then_some(op.args[0])
    }

    /// Returns what an operation touches up to its first barrier, and what after its last one.
    fn touches(&self, op: &Op) -> [Vec<Touch>; 2] {
        let any = |n: usize, write| self.touch(op.columns[n], 0..1, By::Any, write);
        let quarters = |n: usize, write| self.touch(op.columns[n], 0..1, By::Quarter, write);
        match op.code {
            OpCode::Age => [quarters(0, true), Vec::new()],
            OpCode::MapLife => {
                let read = [quarters(1, false), any(2, false)].concat();
                [[quarters(0, true), read].concat(), Vec::new()]
            }
            OpCode::Threshold => [quarters(0, false), Vec::new()],
            OpCode::AppendLife(_) => [any(1, false), any(0, true)],
            OpCode::WriteOutput => [any(0, true), Vec::new()],
            OpCode::Sweep => {
                let n = self.range(op.args[0]).hi;
                let [mut before, mut after] = [Vec::new(), Vec::new()];
                for op in &op.blocks[0].ops {
                    let late = |write: bool| write && waits(op);
                    for a in accesses(op, self.ranges) {
                        let mut touches = self.touch(a.column, a.parts, a.by, a.write);
                        if let By::Lane(first) = a.by {
                            touches.iter_mut().for_each(|touch| self.narrow(touch, first, n));
                        }
                        if repeats(op) {
                            before.extend(touches.clone());
                        }
                        if late(a.write) { &mut after } else { &mut before }.extend(touches);
                    }
                }
                [before, after]
            }
            _ => Default::default(),
        }
    }

    /// Narrows an access to global memory by lanes to the `n` words from `first` on.
    fn narrow(&self, touch: &mut Touch, first: i32, n: i32) {
        match touch.space {
            Space::Column(id) if self.tape.column(id).kind == Kind::Output => {
                touch.space = Space::Words(id, first, first.saturating_add(n));
            }
            _ => {}
        }
    }

    /// Returns the memory of some columns of a column; none if its words are in registers.
    fn touch(
        &self,
        id: ColumnId,
        parts: std::ops::Range<usize>,
        by: By,
        write: bool,
    ) -> Vec<Touch> {
        let column = self.tape.column(id);
        match (column.is_global(), column.resident) {
            // The words of a line are in registers of all threads.
            (true, true) => return Vec::new(),
            (false, false) => {}
            _ => return vec![Touch { space: Space::Column(id), by, write }],
        }
        let exchanged = exchanged(self.tape, id);
        let places = self.plan.columns.iter().filter_map(|((other, n), at)| {
            let space = Space::Shared(at.start, at.end);
            if exchanged.contains(other) {
                // The list may be in the memory of either.
                return Some(Touch { space, by: By::Any, write });
            }
            (*other == id && parts.contains(n)).then_some(Touch { space, by, write })
        });
        places.collect()
    }
}

/// Returns whether an operation has a barrier of its own. A search for victims has none that counts, because
/// a full list gets no slot, and then there is no barrier.
fn has_barrier(op: &Op) -> bool {
    op.code == OpCode::Threshold || op.all().any(waits)
}

/// Returns the lengths of lists that only slots by their lifetimes were added to since they were empty.
fn limits(block: &Block, last: &mut BTreeMap<ColumnId, Value>) -> BTreeMap<Value, Value> {
    let mut all = BTreeMap::new();
    for op in &block.ops {
        match (op.code, op.out) {
            (OpCode::AppendLife(_), _) => {
                last.insert(op.columns[0], op.args[1]);
            }
            (OpCode::Len, Some(out)) => all.extend(last.get(&op.columns[0]).map(|n| (out, *n))),
            _ => {
                let writes =
                    |id: &ColumnId| op.all().any(|op| op.code.writes() && op.columns.contains(id));
                last.retain(|id, _| !writes(id));
                op.blocks.iter().for_each(|block| all.extend(limits(block, &mut BTreeMap::new())));
            }
        }
    }
    all
}

/// Orders what was touched: surely, or if a number is above 0.
fn barrier(touched: &mut Touched, condition: Option<Value>) {
    match condition {
        None => touched.clear(),
        Some(n) => touched.values_mut().for_each(|unless| {
            unless.insert(n);
        }),
    }
}

/// Adds what was touched on another path to the same place, where only barriers on both paths count.
fn join(touched: &mut Touched, other: &Touched) {
    for (touch, unless) in other {
        let known = touched.entry(touch.clone()).or_insert_with(|| unless.clone());
        known.retain(|n| unless.contains(n));
    }
}

fn conflict(a: &Touch, b: &Touch) -> bool {
    let overlap = match (&a.space, &b.space) {
        (Space::Shared(a, a_end), Space::Shared(b, b_end)) => a < b_end && b < a_end,
        (Space::Words(one, a, a_end), Space::Words(other, b, b_end)) => {
            one == other && a < b_end && b < a_end
        }
        (Space::Words(one, ..), Space::Column(other))
        | (Space::Column(other), Space::Words(one, ..)) => one == other,
        (a, b) => a == b,
    };
    let same_thread = a.by == b.by && a.by != By::Any && a.space == b.space;
    overlap && (a.write || b.write) && !same_thread
}
