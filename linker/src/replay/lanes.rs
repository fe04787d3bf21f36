//! Ops on the lanes of a tile.
//!
//! Pure ops propagate poison, and effects refuse it. Lanes outside of the mask of an effect may be
//! poison.

use super::{Lane, Replay, Tile};
use crate::tape::{ColumnId, Op, OpCode, Value};
use avsg_device::machine::Indices;

impl Replay<'_> {
    /// Executes an op inside of a sweep on the live lanes.
    pub(super) fn lanes(&mut self, op: &Op) -> Result<(), String> {
        let Some(Value(out)) = op.out else { return self.effect(op) };
        // The lanes are taken out while the operands are read, because no op reads what it defines.
        // So their memory is reused.
        let mut lanes = std::mem::take(&mut self.vectors[out as usize]);
        lanes.clear();
        let done = if op.columns.is_empty() {
            self.arithmetic(op, &mut lanes)
        } else {
            self.read(op, &mut lanes)
        };
        self.vectors[out as usize] = lanes;
        done
    }

    fn vector(&self, value: Value) -> &[Lane] {
        &self.vectors[value.0 as usize]
    }

    fn arithmetic(&self, op: &Op, out: &mut Vec<Lane>) -> Result<(), String> {
        let Tile { at, live } = self.tile;
        let (add, sub, mul) = (i32::checked_add, i32::checked_sub, i32::checked_mul);
        let a = || self.vector(op.args[0]);
        let b = || self.vector(op.args[1]).iter().copied();
        let s = || self.scalar(op.args[1]);
        match op.code {
            OpCode::Iota => {
                let first = i32::try_from(at).map_err(|_| "the sweep is too long")?;
                out.extend((first..).take(live).map(Some));
                Ok(())
            }
            OpCode::Splat(n) => {
                out.resize(live, Some(n));
                Ok(())
            }
            OpCode::Add => zip(out, a(), b(), add),
            OpCode::Sub => zip(out, a(), b(), sub),
            OpCode::Mul => zip(out, a(), b(), mul),
            OpCode::And | OpCode::MaskAnd => zip(out, a(), b(), |a, b| Some(a & b)),
            OpCode::Or | OpCode::MaskOr => zip(out, a(), b(), |a, b| Some(a | b)),
            OpCode::AddScalar => with(out, a(), s(), add),
            OpCode::SubScalar => with(out, a(), s(), sub),
            OpCode::MulScalar => with(out, a(), s(), mul),
            OpCode::AddTo(n) => with(out, a(), n, add),
            OpCode::MulTo(n) => with(out, a(), n, mul),
            OpCode::AndTo(n) => with(out, a(), n, |a, n| Some(a & n)),
            OpCode::OrTo(n) => with(out, a(), n, |a, n| Some(a | n)),
            OpCode::Shr(n) => {
                with(out, a(), 0, |a, _| Some((a.cast_unsigned() >> n).cast_signed()))
            }
            OpCode::Below(n) => {
                let past =
                    |lane: &&Lane| lane.is_some_and(|a| u32::try_from(a).map_or(true, |a| a >= n));
                if let Some(lane) = a().iter().find(past) {
                    return Err(format!("{lane:?} is not below {n}, as the kernel says"));
                }
                out.extend_from_slice(a());
                Ok(())
            }
            OpCode::Madd(p, q) => with(out, a(), p, |a, p| {
                let (low, high) = ((a & 0xFFFF) - 0x8000, (a >> 16) & 0xFF);
                low.checked_mul(p)?.checked_add(high.checked_mul(q)?)
            }),
            OpCode::Select => {
                let lanes = a().iter().zip(b()).zip(self.vector(op.args[2]));
                out.extend(lanes.map(|((mask, yes), &no)| if (*mask)? == 1 { yes } else { no }));
                Ok(())
            }
            OpCode::Eq => zip(out, a(), b(), |a, b| bit(a == b)),
            OpCode::IsNegative => with(out, a(), 0, |a, _| bit(a < 0)),
            OpCode::MaskNot => with(out, a(), 1, |a, one| Some(a ^ one)),
            _ => Err("not an op on lanes".into()),
        }
    }

    /// Reads a column. Words past the length of a list are poison, and words past a column are a
    /// fault.
    fn read(&mut self, op: &Op, out: &mut Vec<Lane>) -> Result<(), String> {
        let Tile { at, live } = self.tile;
        let Self { memory, vectors, scalars, .. } = self;
        let vector = |n: usize| vectors[op.args[n].0 as usize].iter();
        let scalar = |n: usize| scalars[op.args[n].0 as usize].unwrap_or_default();
        match op.code {
            OpCode::Load => out.extend_from_slice(memory.tile(op.columns[0], at, live)?),
            OpCode::Item(column) => {
                let words = &memory.list(op.columns[0])?.columns[column];
                out.extend((at..at + live).map(|i| words.get(i).copied()));
            }
            OpCode::Gather => {
                let words = memory.words(op.columns[0])?;
                for &i in vector(0) {
                    out.push(match i {
                        Some(i) => words[reduced(i, words.len())?],
                        None => None,
                    });
                }
            }
            OpCode::GatherLife => {
                let life = memory.life(op.columns[0])?;
                for &i in vector(0) {
                    out.push(match i {
                        Some(i) => Some(life[reduced(i, life.len())?].into()),
                        None => None,
                    });
                }
            }
            _ => {
                let window = memory.window(op.columns[0], scalar(1), scalar(2).into())?;
                let at = |i: i32| usize::try_from(i).ok().and_then(|i| window.get(i)).copied();
                for (&index, &bit) in vector(3).zip(vector(4)) {
                    let index = if bit.ok_or(POISON)? == 1 { index.ok_or(POISON)? } else { -1 };
                    out.push(Some(at(index).unwrap_or(-1)));
                }
            }
        }
        Ok(())
    }

    fn effect(&mut self, op: &Op) -> Result<(), String> {
        let Tile { at, live } = self.tile;
        let Self { memory, vectors, scattered, .. } = self;
        let lanes = |n: usize| vectors[op.args[n].0 as usize].as_slice();
        let mask = |n: usize| set_lanes(lanes(n));
        let id: ColumnId = op.columns[0];
        match op.code {
            OpCode::Store => {
                if lanes(1).iter().any(Option::is_none) {
                    return Err(POISON.into());
                }
                memory.tile(id, at, live)?.copy_from_slice(lanes(1));
            }
            OpCode::Scatter(indices) => {
                let words = memory.words(id)?;
                for lane in mask(3)? {
                    let index = reduced(lanes(1)[lane].ok_or(POISON)?, words.len())?;
                    words[index] = Some(lanes(2)[lane].ok_or(POISON)?);
                    if indices == Indices::Distinct && !scattered.insert((id, index)) {
                        return Err(format!("index {index} is written twice"));
                    }
                }
            }
            OpCode::Append => {
                let list = memory.list(id)?;
                for lane in mask(1)? {
                    let entry = op.args[2..].iter().map(|v| vectors[v.0 as usize][lane]);
                    list.push(entry.collect::<Option<Vec<_>>>().ok_or(POISON)?);
                }
                memory.check_len(id)?;
            }
            OpCode::SetLife(_) | OpCode::StepLife(_) => {
                let life = memory.life(id)?;
                for lane in mask(2)? {
                    let slot = reduced(lanes(1)[lane].ok_or(POISON)?, life.len())?;
                    let byte = &mut life[slot];
                    *byte = match op.code {
                        OpCode::StepLife(rule) => rule.next(*byte),
                        OpCode::SetLife(value) => value,
                        _ => *byte,
                    };
                }
            }
            _ => return Err("not an effect on lanes".into()),
        }
        Ok(())
    }
}

const POISON: &str =
    "a live lane uses poison: a word that nothing wrote, or past the end of a list or sweep";

/// Returns a lane of a mask: 0 or 1.
fn bit(set: bool) -> Lane {
    Some(set.into())
}

/// Returns the lanes that a mask selects, in order.
fn set_lanes(mask: &[Lane]) -> Result<Vec<usize>, String> {
    let mut lanes = Vec::with_capacity(mask.len());
    for (lane, bit) in mask.iter().enumerate() {
        if bit.ok_or(POISON)? == 1 {
            lanes.push(lane);
        }
    }
    Ok(lanes)
}

/// Returns an index reduced into a column of `len` words if that is a power of two.
///
/// # Errors
/// If it is none, and the index is not below it.
fn reduced(index: i32, len: usize) -> Result<usize, String> {
    let at = index.cast_unsigned() as usize;
    if len.is_power_of_two() {
        Ok(at & (len - 1))
    } else if at < len {
        Ok(at)
    } else {
        Err(format!("index {index} is outside of a column of {len}, which does not reduce it"))
    }
}

fn zip(
    out: &mut Vec<Lane>,
    a: &[Lane],
    b: impl IntoIterator<Item = Lane>,
    f: impl Fn(i32, i32) -> Option<i32>,
) -> Result<(), String> {
    for (a, b) in a.iter().copied().zip(b) {
        let lane = a.zip(b).map(|(a, b)| f(a, b).ok_or_else(|| overflow(a, b)));
        out.push(lane.transpose()?);
    }
    Ok(())
}

fn with(
    out: &mut Vec<Lane>,
    a: &[Lane],
    b: i32,
    f: impl Fn(i32, i32) -> Option<i32>,
) -> Result<(), String> {
    zip(out, a, std::iter::repeat(Some(b)), f)
}

fn overflow(a: i32, b: i32) -> String {
    format!("a live lane overflows on {a} and {b}")
}
