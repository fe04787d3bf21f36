//! Laws 6, 7 and 9 of the kernel language (`avsg_device::machine`) by interval analysis: no int32
//! vector op of a tape overflows if memory and parameters are in their declared ranges, the
//! kernel keeps the declared ranges of what it writes, and no index is past a column that does not reduce it.
//!
//! Declared ranges are invariants of the columns, so one pass over the ops suffices: a load is in
//! the range, and a store must be. Values have no other way from round to round of a loop. Masks
//! carry facts: in lanes where `x - s < 0` holds, x is below the largest s. A `select`, or an
//! effect under a mask, uses them. Scalars run on the scalar unit and may be sums of numbers from
//! the host, so their overflow is not excluded here: a CPU panics in tests, and such a sum
//! counts as any word.

use super::{Refused, Why};
use crate::tape::{Block, ColumnId, Op, OpCode, Range, Tape, Value};
use avsg_device::learned::LIFETIMES;
use std::ops::{Add, Mul, Sub};

/// An interval whose bounds can represent a result that overflows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Interval {
    lo: i64,
    hi: i64,
}

const ANY: Interval = Interval { lo: i32::MIN as i64, hi: i32::MAX as i64 };

impl From<Range> for Interval {
    fn from(r: Range) -> Self {
        span(r.lo.into(), r.hi.into())
    }
}

fn span(lo: i64, hi: i64) -> Interval {
    Interval { lo, hi }
}

/// Returns the numbers of n rounds or lanes, and of at least one.
fn first(n: i64) -> Interval {
    span(0, (n - 1).max(0))
}

impl Interval {
    fn point(n: i32) -> Self {
        span(n.into(), n.into())
    }
    /// Returns the least interval that contains `f` of the bounds. It is exact where f is monotone
    /// in each operand.
    fn corners(self, o: Self, f: impl Fn(i64, i64) -> i64) -> Self {
        let all = [f(self.lo, o.lo), f(self.lo, o.hi), f(self.hi, o.lo), f(self.hi, o.hi)];
        all.into_iter().fold(span(all[0], all[0]), |a, n| span(a.lo.min(n), a.hi.max(n)))
    }
    fn join(self, o: Self) -> Self {
        span(self.lo.min(o.lo), self.hi.max(o.hi))
    }
    /// Returns the intersection. If it is empty, no lane satisfies both facts, and any interval is
    /// right.
    fn meet(self, o: Self) -> Self {
        let (lo, hi) = (self.lo.max(o.lo), self.hi.min(o.hi));
        if lo <= hi { span(lo, hi) } else { self }
    }
    fn within(self, o: Self) -> bool {
        self.lo >= o.lo && self.hi <= o.hi
    }
    /// Returns the interval as a range, clamped to words.
    fn range(self) -> Range {
        let cut = |n: i64| i32::try_from(n.clamp(ANY.lo, ANY.hi)).unwrap_or_default();
        Range { lo: cut(self.lo), hi: cut(self.hi) }
    }
}

/// Returns the number with all bits set up to the highest one of n.
fn bits_of(n: i64) -> i64 {
    i64::try_from((n.cast_unsigned() + 1).next_power_of_two() - 1).unwrap_or(i64::MAX)
}

fn and(a: Interval, b: Interval) -> Interval {
    match (a.lo < 0, b.lo < 0) {
        (false, false) => span(0, a.hi.min(b.hi)),
        (false, true) => span(0, a.hi),
        (true, false) => span(0, b.hi),
        (true, true) => ANY,
    }
}

fn or(a: Interval, b: Interval) -> Interval {
    if a.lo < 0 || b.lo < 0 { ANY } else { span(a.lo.max(b.lo), bits_of(a.hi.max(b.hi))) }
}

/// The facts about vectors in the lanes where a mask is set, and where it is not.
#[derive(Clone, Default)]
struct Facts {
    set: Vec<(Value, Interval)>,
    unset: Vec<(Value, Interval)>,
}

struct Pass<'t> {
    tape: &'t Tape,
    of: Vec<Interval>,
    facts: Vec<Facts>,
    /// (x, s) for every value x - s with a scalar s.
    differences: Vec<Option<(Value, Value)>>,
    /// The largest number of lanes of the sweep around the op.
    lanes: i64,
}

/// Checks every op of a tape whose structure is checked.
///
/// # Errors
/// Returns the first op that may overflow, leave the range of a column, or reach past its end.
pub fn check(tape: &Tape) -> Result<(), Refused> {
    of_values(tape).map(drop)
}

/// Returns the range of every vector and scalar of a tape whose structure is checked, by number.
///
/// # Errors
/// As [`check`].
pub fn of_values(tape: &Tape) -> Result<Vec<Range>, Refused> {
    let n = tape.types.len();
    let (of, facts) = (vec![ANY; n], vec![Facts::default(); n]);
    let mut pass = Pass { tape, of, facts, differences: vec![None; n], lanes: 0 };
    for p in &tape.params {
        pass.of[p.value.0 as usize] = p.range.into();
    }
    pass.block(&tape.body)?;
    Ok(pass.of.into_iter().map(Interval::range).collect())
}

impl Pass<'_> {
    fn block(&mut self, block: &Block) -> Result<(), Refused> {
        for op in &block.ops {
            for body in &op.blocks {
                let n = self.at(op.args[0]).hi.max(0);
                match (op.code, body.binds) {
                    (OpCode::Sweep, _) => self.lanes = n,
                    (OpCode::Repeat(max), Some(r)) => self.set(r, first(n.min(max.into()))),
                    _ => {}
                }
                self.block(body)?;
            }
            let result = self.define(op).and_then(|()| self.effect(op));
            result.map_err(|why| Refused::new(self.tape, op, why))?;
        }
        Ok(())
    }

    fn at(&self, value: Value) -> Interval {
        self.of[value.0 as usize]
    }

    fn set(&mut self, value: Value, interval: Interval) {
        self.of[value.0 as usize] = interval;
    }

    /// Returns the interval of a vector in lanes where facts hold.
    fn in_lanes(&self, value: Value, facts: &[(Value, Interval)]) -> Interval {
        let known = facts.iter().filter(|fact| fact.0 == value);
        known.fold(self.at(value), |interval, fact| interval.meet(fact.1))
    }

    fn declared(&self, id: ColumnId, column: usize) -> Interval {
        self.tape.column(id).ranges[column].into()
    }

    /// Finds the interval of the value that an op defines, or the facts of a mask.
    fn define(&mut self, op: &Op) -> Result<(), Why> {
        let Some(out) = op.out else { return Ok(()) };
        if op.code == OpCode::SubScalar {
            self.differences[out.0 as usize] = Some((op.args[0], op.args[1]));
        }
        let arg = |n: usize| self.at(op.args[n]);
        let second = || op.code.constant().map_or_else(|| arg(1), Interval::point);
        let len = || i64::from(self.tape.column(op.columns[0]).len);
        let point = Interval::point;
        let interval = match op.code {
            OpCode::Constant(n) | OpCode::Splat(n) => point(n),
            OpCode::Add | OpCode::AddScalar | OpCode::AddTo(_) => {
                arg(0).corners(second(), Add::add)
            }
            OpCode::ScalarAdd | OpCode::ScalarAddTo(_) => arg(0).corners(second(), Add::add),
            OpCode::Sub | OpCode::SubScalar | OpCode::ScalarSub => arg(0).corners(arg(1), Sub::sub),
            OpCode::Mul | OpCode::MulScalar | OpCode::MulTo(_) => {
                arg(0).corners(second(), Mul::mul)
            }
            OpCode::ScalarMul => arg(0).corners(arg(1), Mul::mul),
            OpCode::Max => arg(0).corners(arg(1), i64::max),
            OpCode::Min => arg(0).corners(arg(1), i64::min),
            OpCode::ScalarNe | OpCode::ScalarGt => span(0, 1),
            OpCode::Threshold | OpCode::GatherLife => Range::LIFETIME.into(),
            OpCode::Iota => first(self.lanes),
            OpCode::Or | OpCode::OrTo(_) => or(arg(0), second()),
            OpCode::And | OpCode::AndTo(_) => and(arg(0), second()),
            OpCode::Shr(0) => arg(0),
            OpCode::Shr(n) if arg(0).lo < 0 => span(0, (1 << (32 - n)) - 1),
            OpCode::Shr(n) => span(arg(0).lo >> n, arg(0).hi >> n),
            OpCode::Below(n) => arg(0).meet(first(n.into())),
            OpCode::Madd(p, q) => {
                let low = span(-(1 << 15), (1 << 15) - 1).corners(point(p), Mul::mul);
                low.corners(span(0, (1 << 8) - 1).corners(point(q), Mul::mul), Add::add)
            }
            OpCode::Select => {
                let facts = &self.facts[op.args[0].0 as usize];
                let yes = self.in_lanes(op.args[1], &facts.set);
                yes.join(self.in_lanes(op.args[2], &facts.unset))
            }
            OpCode::Load | OpCode::Gather | OpCode::ReadOutput => self.declared(op.columns[0], 0),
            OpCode::Lookup => self.declared(op.columns[0], 0).join(point(-1)),
            OpCode::Item(n) => self.declared(op.columns[0], n),
            OpCode::Len => span(0, len()),
            _ => {
                self.facts[out.0 as usize] = self.learn(op);
                return Ok(());
            }
        };
        // A vector must not overflow; a scalar that may overflow counts as any word.
        let fits = interval.within(ANY);
        if !fits && op.code.on_lanes() {
            return Err(Why::Overflow(interval.lo, interval.hi));
        }
        self.set(out, if fits { interval } else { ANY });
        Ok(())
    }

    /// Returns the facts that a mask states about vectors.
    fn learn(&self, op: &Op) -> Facts {
        let facts = |n: usize| self.facts[op.args[n].0 as usize].clone();
        let both = |a: Vec<_>, b: Vec<_>| [a, b].concat();
        match op.code {
            OpCode::IsNegative => {
                let x = op.args[0];
                let mut facts =
                    Facts { set: vec![(x, span(ANY.lo, -1))], unset: vec![(x, span(0, ANY.hi))] };
                if let Some((x, s)) = self.differences[x.0 as usize] {
                    facts.set.push((x, span(ANY.lo, self.at(s).hi - 1)));
                    facts.unset.push((x, span(self.at(s).lo, ANY.hi)));
                }
                facts
            }
            OpCode::Eq => {
                let [a, b] = [op.args[0], op.args[1]];
                Facts { set: vec![(a, self.at(b)), (b, self.at(a))], unset: Vec::new() }
            }
            OpCode::MaskNot => Facts { set: facts(0).unset, unset: facts(0).set },
            OpCode::MaskAnd => Facts { set: both(facts(0).set, facts(1).set), unset: Vec::new() },
            OpCode::MaskOr => {
                Facts { set: Vec::new(), unset: both(facts(0).unset, facts(1).unset) }
            }
            _ => Facts::default(),
        }
    }

    /// Checks that the words that an op writes are in range, and that the words that it reaches
    /// exist.
    fn effect(&self, op: &Op) -> Result<(), Why> {
        let (arg, lanes) = (|n: usize| self.at(op.args[n]), self.lanes);
        let set = |mask: usize| &self.facts[op.args[mask].0 as usize].set;
        match op.code {
            OpCode::Load | OpCode::Item(_) => self.check_length(op.columns[0], lanes),
            OpCode::Store => {
                self.check_length(op.columns[0], lanes)?;
                self.check_range(op.columns[0], 0, arg(1))
            }
            OpCode::Gather | OpCode::GatherLife => self.check_index(op.columns[0], arg(0)),
            OpCode::SetLife(_) | OpCode::StepLife(_) => {
                self.check_index(op.columns[0], self.in_lanes(op.args[1], set(2)))
            }
            OpCode::Scatter => {
                self.check_index(op.columns[0], self.in_lanes(op.args[1], set(3)))?;
                self.check_range(op.columns[0], 0, self.in_lanes(op.args[2], set(3)))
            }
            OpCode::Append => op.args[2..].iter().enumerate().try_for_each(|(n, &v)| {
                self.check_range(op.columns[0], n, self.in_lanes(v, set(1)))
            }),
            OpCode::Find(_) | OpCode::FindFree(_) => {
                let n = op.columns.len() - 2;
                op.columns[..n].iter().try_for_each(|&id| self.check_length(id, arg(0).hi))?;
                // The positions of a probe sequence are masked before they are added.
                check_argument(self.declared(op.columns[1], 0), Range::new(0, i32::MAX))?;
                // A search for ids returns a slot, and one for free links the position of a link.
                let mut found = op.columns[n];
                if let [_, _, id, _, held] = op.columns[..] {
                    let [held_ids, ids] = [held, id].map(|id| self.declared(id, 0));
                    let difference = held_ids.corners(ids, Sub::sub);
                    if !difference.within(ANY) {
                        return Err(Why::Overflow(difference.lo, difference.hi));
                    }
                    found = held;
                }
                let len = i64::from(self.tape.column(found).len);
                self.check_range(op.columns[0], 0, span(-1, len - 1))
            }
            OpCode::When => check_argument(arg(0), CONDITION),
            OpCode::Age => check_argument(arg(0), Range::new(0, 128)),
            OpCode::MapLife => {
                self.check_length(op.columns[2], LIFETIMES as i64)?;
                check_argument(self.declared(op.columns[2], 0), Range::new(0, u8::MAX.into()))
            }
            OpCode::AppendLife(_) => {
                check_argument(arg(0), Range::LIFETIME)?;
                self.check_length(op.columns[0], arg(1).hi)?;
                let slots = i64::from(self.tape.column(op.columns[1]).len);
                self.check_range(op.columns[0], 0, span(0, slots - 1))
            }
            OpCode::WriteOutput => self.check_range(op.columns[0], 0, arg(1)),
            OpCode::CopyIn => {
                self.check_length(op.columns[0], arg(1).hi)?;
                self.check_range(op.columns[0], 0, self.declared(op.columns[1], 0))
            }
            OpCode::CopyOut => {
                self.check_length(op.columns[1], arg(1).hi)?;
                self.check_range(op.columns[0], 0, self.declared(op.columns[1], 0))
            }
            OpCode::CopyOutList(n) => {
                self.check_range(op.columns[0], 0, self.declared(op.columns[1], n))
            }
            OpCode::MoveList => {
                let (to, from) = (self.tape.column(op.columns[0]), self.tape.column(op.columns[1]));
                let same = (to.kind, to.len, &to.ranges) == (from.kind, from.len, &from.ranges);
                if same { Ok(()) } else { Err(Why::Memory(from.name.clone())) }
            }
            _ => Ok(()),
        }
    }

    fn check_range(&self, id: ColumnId, column: usize, interval: Interval) -> Result<(), Why> {
        let (of, fits) = (self.tape.column(id), interval.within(self.declared(id, column)));
        let why = || Why::Range(of.name.clone(), of.ranges[column], interval.range());
        fits.then_some(()).ok_or_else(why)
    }

    /// Checks an index of a column whose length is no power of two, because nothing reduces it.
    fn check_index(&self, id: ColumnId, index: Interval) -> Result<(), Why> {
        let column = self.tape.column(id);
        let fits = column.len.is_power_of_two() || index.within(first(column.len.into()));
        let why = || Why::Index(column.name.clone(), column.len, index.range());
        fits.then_some(()).ok_or_else(why)
    }

    fn check_length(&self, id: ColumnId, n: i64) -> Result<(), Why> {
        let column = self.tape.column(id);
        let fits = column.is_global() || n <= i64::from(column.len);
        let why = || Why::TooLong(column.name.clone(), span(0, n - 1).range().hi, column.len);
        fits.then_some(()).ok_or_else(why)
    }
}

/// The range of a condition.
const CONDITION: Range = Range { lo: 0, hi: 1 };

fn check_argument(interval: Interval, range: Range) -> Result<(), Why> {
    let fits = interval.within(range.into());
    fits.then_some(()).ok_or_else(|| Why::Argument(range, interval.range()))
}

#[cfg(test)]
mod tests;
