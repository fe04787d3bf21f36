//! Ops on scalars, and ops on whole columns.

use super::Replay;
use crate::tape::{Op, OpCode};

impl Replay<'_> {
    /// Executes an op on scalars, or one outside of sweeps.
    pub(super) fn whole(&mut self, op: &Op) -> Result<(), String> {
        let arg = |n: usize| self.scalar(op.args[n]);
        let value = match op.code {
            OpCode::Constant(n) => n,
            OpCode::ScalarAdd => sum(arg(0).checked_add(arg(1)))?,
            OpCode::ScalarSub => sum(arg(0).checked_sub(arg(1)))?,
            OpCode::ScalarMul => sum(arg(0).checked_mul(arg(1)))?,
            OpCode::ScalarAddTo(n) => sum(arg(0).checked_add(n))?,
            OpCode::Max => arg(0).max(arg(1)),
            OpCode::Min => arg(0).min(arg(1)),
            OpCode::ScalarNe => i32::from(arg(0) != arg(1)),
            OpCode::ScalarGt => i32::from(arg(0) > arg(1)),
            OpCode::Len => count(self.memory.list(op.columns[0])?.len)?,
            OpCode::Threshold => {
                let need = usize::try_from(arg(1)).unwrap_or(0);
                // Without a need the lifetimes may be undefined.
                if let Some(last) = need.checked_sub(1) {
                    let mut life = self.memory.life(op.columns[0])?.to_vec();
                    life.sort_unstable();
                    life.get(last).copied().unwrap_or(i8::MAX).into()
                } else {
                    i8::MIN.into()
                }
            }
            OpCode::ReadOutput => {
                let (at, range) = (arg(0), self.tape.column(op.columns[0]).ranges[0]);
                let word = self.memory.window(op.columns[0], at, 1)?[0];
                if !range.holds(word) {
                    return Err(format!("the word {word} is not in its range {range}"));
                }
                word
            }
            _ => return self.change(op),
        };
        self.define(op.out, value);
        Ok(())
    }

    /// Executes an op that defines no value.
    fn change(&mut self, op: &Op) -> Result<(), String> {
        let args: Vec<i32> = op.args.iter().map(|&v| self.scalar(v)).collect();
        let memory = &mut self.memory;
        match op.code {
            OpCode::Clear => memory.list(op.columns[0])?.clear(),
            OpCode::MoveList => {
                *memory.list(op.columns[0])? = memory.list(op.columns[1])?.clone();
                memory.list(op.columns[1])?.clear();
                memory.check_len(op.columns[0])?;
            }
            OpCode::Find(links) | OpCode::FindFree(links) => self.search(op, &links)?,
            OpCode::Age => {
                let [by, from] = args[..] else { return Err("two scalars".into()) };
                if !(0..=128).contains(&by) {
                    return Err(format!("lifetimes fall by 0..=128, not by {by}"));
                }
                for l in memory.life(op.columns[0])?.iter_mut().filter(|l| i32::from(**l) >= from) {
                    *l = life((i32::from(*l) - by).max(-128))?;
                }
            }
            OpCode::MapLife => memory.map_life(op.columns[0], op.columns[1], op.columns[2])?,
            OpCode::AppendLife(equal) => {
                let (t, limit) = (life(args[0])?, usize::try_from(args[1]).unwrap_or(0));
                let chosen = |l: i8| if equal { l == t } else { l < t };
                let free = limit.saturating_sub(memory.list(op.columns[0])?.len);
                // A list that is full takes no slots, and the lifetimes may be undefined.
                if free == 0 {
                    return Ok(());
                }
                let slots: Vec<i32> = (0..)
                    .zip(memory.life(op.columns[1])?)
                    .filter_map(|(slot, l)| chosen(*l).then_some(slot))
                    .collect();
                let list = memory.list(op.columns[0])?;
                slots.iter().take(free).for_each(|&slot| list.push([slot]));
                memory.check_len(op.columns[0])?;
            }
            OpCode::WriteOutput => memory.window(op.columns[0], args[0], 1)?[0] = args[1],
            OpCode::CopyIn => memory.copy_in(op.columns[0], op.columns[1], args[0], args[1])?,
            OpCode::CopyOut => memory.copy_out(op.columns[0], args[0], op.columns[1], args[1])?,
            OpCode::CopyOutList(column) => {
                let from = memory.list(op.columns[1])?.columns[column].clone();
                let n = i64::from(count(from.len())?);
                memory.window(op.columns[0], args[0], n)?.copy_from_slice(&from);
            }
            _ => return Err("not an op on whole columns".into()),
        }
        Ok(())
    }
}

fn sum(result: Option<i32>) -> Result<i32, String> {
    result.ok_or_else(|| "a scalar overflows".into())
}

fn count(n: usize) -> Result<i32, String> {
    i32::try_from(n).map_err(|_| format!("{n} does not fit a scalar"))
}

fn life(t: i32) -> Result<i8, String> {
    i8::try_from(t).map_err(|_| format!("{t} is not a lifetime, which is in -128..=127"))
}
