//! Ops that define a value: arithmetic and conditions, of the lanes of a tile or of one lane of a scalar,
//! and reads of columns. They propagate poison.

use super::fault::{Lane, POISON};
use super::{Replay, Tile};
use avsg_linker::tape::{Op, OpCode, Value};

impl Replay<'_> {
    /// Executes an op that defines the value `out`.
    pub(super) fn define(&mut self, op: &Op, out: Value) -> Result<(), String> {
        // The lanes are taken out while the operands are read, because no op reads what it defines.
        // So their memory is reused.
        let mut lanes = std::mem::take(&mut self.values[out.0 as usize]);
        lanes.clear();
        let done = if op.columns.is_empty() {
            self.arithmetic(op, &mut lanes)
        } else {
            self.read(op, &mut lanes)
        };
        self.values[out.0 as usize] = lanes;
        done
    }

    fn arithmetic(&self, op: &Op, out: &mut Vec<Lane>) -> Result<(), String> {
        let Tile { at, live } = self.tile;
        let lanes = |n: usize| self.lanes(op.args[n]);
        let operator: &dyn Fn(i32, i32) -> Option<i32> = match op.code {
            OpCode::Iota => {
                out.extend((at..at + live).map(Some));
                return Ok(());
            }
            OpCode::Splat(n) => {
                out.resize(live as usize, Some(n));
                return Ok(());
            }
            OpCode::Constant(n) => {
                out.push(Some(n));
                return Ok(());
            }
            OpCode::Select => {
                let lanes = lanes(0).iter().zip(lanes(1)).zip(lanes(2));
                out.extend(lanes.map(|((mask, &yes), &no)| if (*mask)? == 1 { yes } else { no }));
                return Ok(());
            }
            OpCode::Add | OpCode::AddTo(_) | OpCode::AddScalar => &i32::checked_add,
            OpCode::ScalarAdd | OpCode::ScalarAddTo(_) => &i32::checked_add,
            OpCode::Sub | OpCode::SubScalar | OpCode::ScalarSub => &i32::checked_sub,
            OpCode::Mul | OpCode::MulTo(_) | OpCode::MulScalar => &i32::checked_mul,
            OpCode::ScalarMul => &i32::checked_mul,
            OpCode::And | OpCode::AndTo(_) | OpCode::MaskAnd => &|a, b| Some(a & b),
            OpCode::Or | OpCode::OrTo(_) | OpCode::MaskOr => &|a, b| Some(a | b),
            OpCode::MaskNot => &|a, _| Some(1 - a),
            OpCode::Max => &|a, b| Some(a.max(b)),
            OpCode::Min => &|a, b| Some(a.min(b)),
            OpCode::Eq => &|a, b| Some((a == b).into()),
            OpCode::ScalarNe => &|a, b| Some((a != b).into()),
            OpCode::ScalarGt => &|a, b| Some((a > b).into()),
            OpCode::IsNegative => &|a, _| Some((a < 0).into()),
            OpCode::Shr(_) => &|a, bits| Some((a.cast_unsigned() >> bits).cast_signed()),
            OpCode::Madd(p, q) => &move |a, _| {
                let (low, high) = ((a & 0xFFFF) - 0x8000, (a >> 16) & 0xFF);
                low.checked_mul(p)?.checked_add(high.checked_mul(q)?)
            },
            OpCode::Below(n) => &move |a, _| u32::try_from(a).is_ok_and(|a| a < n).then_some(a),
            _ => return Err("not an op on values".into()),
        };
        let constant = [Some(op.code.constant().unwrap_or(0))];
        let b = op.args.get(1).map_or(&constant[..], |&b| self.lanes(b));
        // A scalar operand is the same in all lanes.
        for (a, b) in lanes(0).iter().zip(b.iter().cycle()) {
            let why = |a, b| match op.code {
                OpCode::Below(n) => format!("{a} is not below {n}, as the kernel says"),
                _ => format!("a scalar or a live lane overflows on {a} and {b}"),
            };
            let lane = a.zip(*b).map(|(a, b)| operator(a, b).ok_or_else(|| why(a, b)));
            out.push(lane.transpose()?);
        }
        Ok(())
    }

    /// Reads a column. Words past the length of a list are poison, and words past a column are a
    /// fault.
    fn read(&mut self, op: &Op, out: &mut Vec<Lane>) -> Result<(), String> {
        let Self { tape, memory, values, tile: Tile { at, live }, .. } = self;
        let lanes = |n: usize| values[op.args[n].0 as usize].as_slice();
        let scalar = |n: usize| lanes(n)[0].unwrap_or_default();
        let id = op.columns[0];
        match op.code {
            OpCode::Load => out.extend_from_slice(memory.window(id, *at, *live)?),
            OpCode::Item(column) => {
                let words = &memory.contents[id.0 as usize][column];
                out.extend((*at..*at + *live).map(|i| words.get(i as usize).copied().flatten()));
            }
            OpCode::Gather | OpCode::GatherLife => {
                let words = memory.words(id);
                for &i in lanes(0) {
                    let at = i.map(|i| reduced(i, words.len())).transpose()?;
                    out.push(at.and_then(|at| words[at]));
                }
            }
            OpCode::Lookup => {
                let window = memory.window(id, scalar(1), scalar(2))?;
                for (index, mask) in lanes(3).iter().zip(lanes(4)) {
                    let set = mask.ok_or(POISON)? == 1;
                    let index = if set { index.ok_or(POISON)? } else { -1 };
                    let word = usize::try_from(index).ok().and_then(|i| window.get(i).copied());
                    out.push(word.unwrap_or(Some(-1)));
                }
            }
            OpCode::Len => out.push(Some(memory.len(id))),
            OpCode::Threshold => {
                let need = usize::try_from(scalar(1)).unwrap_or(0);
                // Without a need the lifetimes may be undefined.
                let threshold = need.checked_sub(1).map_or(Some(i8::MIN.into()), |last| {
                    let mut life: Vec<i32> =
                        memory.words(id).iter().copied().collect::<Option<_>>()?;
                    life.sort_unstable();
                    Some(life.get(last).copied().unwrap_or(i8::MAX.into()))
                });
                out.push(Some(threshold.ok_or(POISON)?));
            }
            OpCode::ReadOutput => {
                let (word, range) =
                    (memory.window(id, scalar(0), 1)?[0], tape.column(id).ranges[0]);
                if let Some(bad) = word.filter(|word| !range.holds(*word)) {
                    return Err(format!("the word {bad} is not in its range {range}"));
                }
                out.push(word);
            }
            _ => return Err("not an op that reads".into()),
        }
        Ok(())
    }
}

/// Returns an index reduced into a column of `len` words if that is a power of two.
///
/// # Errors
/// If it is none, and the index is not below it.
pub(super) fn reduced(index: i32, len: usize) -> Result<usize, String> {
    let at = index.cast_unsigned() as usize;
    if len.is_power_of_two() {
        Ok(at & (len - 1))
    } else if at < len {
        Ok(at)
    } else {
        Err(format!("index {index} is outside of a column of {len}, which does not reduce it"))
    }
}
