//! Scalars, and ops on whole columns.

use super::Replay;
use crate::tape::{Code, Op};

impl Replay<'_> {
    /// Executes an op that stands outside of sweeps, or works on scalars.
    pub(super) fn whole(&mut self, op: &Op) -> Result<(), String> {
        let arg = |n: usize| self.scalar(op.args[n]);
        let value = match op.code {
            Code::Constant(n) => n,
            Code::ScalarAdd => sum(arg(0).checked_add(arg(1)))?,
            Code::ScalarSub => sum(arg(0).checked_sub(arg(1)))?,
            Code::ScalarMul => sum(arg(0).checked_mul(arg(1)))?,
            Code::ScalarAddTo(n) => sum(arg(0).checked_add(n))?,
            Code::Max => arg(0).max(arg(1)),
            Code::Min => arg(0).min(arg(1)),
            Code::IfNe(then) if arg(0) != arg(1) => then,
            Code::IfGt(then) if arg(0) > arg(1) => then,
            Code::IfNe(_) | Code::IfGt(_) => 0,
            Code::Len => count(self.memory.list(op.columns[0])?.len)?,
            Code::CountLe => {
                let t = life(arg(0))?;
                count(self.memory.life(op.columns[0])?.iter().filter(|&&l| l <= t).count())?
            }
            Code::Get | Code::Peek => {
                let at = arg(0);
                self.memory.window(op.columns[0], at, 1)?[0]
            }
            _ => return self.change(op),
        };
        self.define(op.out, value);
        Ok(())
    }

    /// How much an op that just ran worked on, and how far lifetimes fell.
    pub(super) fn extent(&mut self, op: &Op) -> (usize, usize) {
        let arg = |n: usize| usize::try_from(self.scalar(op.args[n])).unwrap_or(0);
        match op.code {
            Code::Fetch | Code::Publish => (arg(1), 0),
            Code::PublishList(_) => (self.memory.list(op.columns[1]).map_or(0, |l| l.len), 0),
            Code::Take => (self.memory.list(op.columns[0]).map_or(0, |l| l.len), 0),
            Code::Age { .. } => (self.tape.column(op.columns[0]).len as usize, arg(0)),
            Code::CountLe => (self.tape.column(op.columns[0]).len as usize, 0),
            // The scan ends where the list is full.
            Code::AppendLt | Code::AppendEq => {
                let (all, limit) = (self.tape.column(op.columns[1]).len as usize, arg(1));
                let last = self.memory.list(op.columns[0]).ok().filter(|l| l.len >= limit);
                let last = last.map(|l| l.columns[0].last().map_or(0, |&slot| slot + 1));
                let listed = self.memory.list(op.columns[0]).map_or(0, |l| l.len);
                (last.and_then(|n| usize::try_from(n).ok()).unwrap_or(all), listed)
            }
            _ => (0, 0),
        }
    }

    /// Executes an op that defines nothing.
    fn change(&mut self, op: &Op) -> Result<(), String> {
        let args: Vec<i32> = op.args.iter().map(|&v| self.scalar(v)).collect();
        let memory = &mut self.memory;
        match op.code {
            Code::Clear => memory.list(op.columns[0])?.clear(),
            Code::Take => {
                *memory.list(op.columns[0])? = memory.list(op.columns[1])?.clone();
                memory.list(op.columns[1])?.clear();
                memory.fits(op.columns[0])?;
            }
            Code::Age { settle } => {
                if !(0..=128).contains(&args[0]) {
                    return Err(format!("lifetimes fall by 0..=128, not {}", args[0]));
                }
                for l in memory.life(op.columns[0])? {
                    let settled = i32::from(*l) - if settle && *l >= 0 { 128 } else { 0 };
                    *l = life((settled - args[0]).max(-128))?;
                }
            }
            Code::AppendLt | Code::AppendEq => {
                let (t, limit) = (life(args[0])?, usize::try_from(args[1]).unwrap_or(0));
                let chosen = |l: i8| if op.code == Code::AppendLt { l < t } else { l == t };
                let slots: Vec<i32> = (0..)
                    .zip(memory.life(op.columns[1])?)
                    .filter_map(|(slot, l)| chosen(*l).then_some(slot))
                    .collect();
                let list = memory.list(op.columns[0])?;
                let room = limit.saturating_sub(list.len);
                slots.iter().take(room).for_each(|&slot| list.push([slot]));
                memory.fits(op.columns[0])?;
            }
            Code::Put => memory.window(op.columns[0], args[0], 1)?[0] = args[1],
            Code::Fetch => {
                let n = i64::from(args[1]);
                let from: Vec<_> =
                    memory.window(op.columns[1], args[0], n)?.iter().copied().map(Some).collect();
                let to = memory.words(op.columns[0])?.get_mut(..from.len());
                to.ok_or_else(|| format!("{n} words are too many"))?.copy_from_slice(&from);
            }
            Code::Publish => {
                let n = usize::try_from(args[1]).map_err(|_| format!("{} words", args[1]))?;
                let from = memory.words(op.columns[1])?.get(..n);
                let from = from.ok_or_else(|| format!("{n} words are too many"))?;
                let from: Option<Vec<i32>> = from.iter().copied().collect();
                let from = from.ok_or("it publishes poison")?;
                let to = memory.window(op.columns[0], args[0], i64::from(args[1]))?;
                to.copy_from_slice(&from);
            }
            Code::PublishList(column) => {
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
    i8::try_from(t).map_err(|_| format!("{t} is no lifetime"))
}
