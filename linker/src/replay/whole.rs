//! Ops on scalars, and ops on whole columns.

use super::Replay;
use super::search::Planes;
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
            OpCode::ScalarNot => sum(1i32.checked_sub(arg(0)))?,
            OpCode::Len => count(self.memory.list(op.columns[0])?.len)?,
            OpCode::Threshold => {
                let need = usize::try_from(arg(1)).unwrap_or(0);
                let mut life = self.memory.life(op.columns[0])?.to_vec();
                life.sort_unstable();
                let last = need.checked_sub(1).map(|n| life.get(n).copied().unwrap_or(i8::MAX));
                last.unwrap_or(i8::MIN).into()
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

    /// Returns the number of words that the op that just ran worked on, and its active lanes.
    pub(super) fn extent(&self, op: &Op) -> (usize, usize) {
        let arg = |n: usize| usize::try_from(self.scalar(op.args[n])).unwrap_or(0);
        let all = |n: usize| self.tape.column(op.columns[n]).len as usize;
        let list = |n: usize| self.memory.entries(op.columns[n]);
        match op.code {
            OpCode::Fetch | OpCode::Publish => (arg(1), 0),
            OpCode::Find(_) | OpCode::FindFree(_) => (arg(0), 0),
            OpCode::PublishList(_) => (list(1).len, 0),
            OpCode::Take => (list(0).len, 0),
            OpCode::Age(_) => (all(0), arg(0)),
            OpCode::Threshold if arg(1) > 0 => {
                let th = op.out.map_or(0, |out| self.scalar(out));
                (counts(self.scalar(op.args[0]), th), 0)
            }
            // The scan ends when the list is full.
            OpCode::AppendLt | OpCode::AppendEq => {
                let last = list(0).columns[0].last().map_or(0, |&slot| slot + 1);
                let full = Some(last).filter(|_| list(0).len >= arg(1));
                (full.and_then(|n| usize::try_from(n).ok()).unwrap_or(all(1)), list(0).len)
            }
            _ => (0, 0),
        }
    }

    /// Executes an op that defines no value.
    fn change(&mut self, op: &Op) -> Result<(), String> {
        let args: Vec<i32> = op.args.iter().map(|&v| self.scalar(v)).collect();
        let memory = &mut self.memory;
        match op.code {
            OpCode::Clear => memory.list(op.columns[0])?.clear(),
            OpCode::Take => {
                *memory.list(op.columns[0])? = memory.list(op.columns[1])?.clone();
                memory.list(op.columns[1])?.clear();
                memory.check_len(op.columns[0])?;
            }
            OpCode::Find(_) | OpCode::FindFree(_) => {
                let n = usize::try_from(args[0]).unwrap_or(0);
                let mut column = |c: usize| Ok::<_, String>(memory.words(op.columns[c])?.to_vec());
                let ids = if matches!(op.code, OpCode::Find(_)) { 2 } else { 1 };
                let (sequences, ids, link, id) =
                    (column(1)?, column(ids)?, column(ids + 1)?, column(ids + 2)?);
                let planes = Planes { link, id };
                let pairs = sequences.iter().zip(&ids).take(n);
                let first = pairs.map(|(&sequence, &id)| planes.first(op.code, sequence?, id?));
                let first: Option<Vec<i32>> = first.collect();
                let first = first.ok_or("the search depends on poison, or overflows")?;
                let to = memory.words(op.columns[0])?;
                if first.len() < n || to.len() < n {
                    return Err(format!("{n} ids are too many"));
                }
                to.iter_mut().zip(first).for_each(|(to, n)| *to = Some(n));
            }
            OpCode::Age(settle) => {
                if !(0..=128).contains(&args[0]) {
                    return Err(format!("lifetimes fall by 0..=128, not by {}", args[0]));
                }
                for l in memory.life(op.columns[0])? {
                    let settled = i32::from(*l) - if settle && *l >= 0 { 128 } else { 0 };
                    *l = life((settled - args[0]).max(-128))?;
                }
            }
            OpCode::AppendLt | OpCode::AppendEq => {
                let (t, limit) = (life(args[0])?, usize::try_from(args[1]).unwrap_or(0));
                let chosen = |l: i8| if op.code == OpCode::AppendLt { l < t } else { l == t };
                let slots: Vec<i32> = (0..)
                    .zip(memory.life(op.columns[1])?)
                    .filter_map(|(slot, l)| chosen(*l).then_some(slot))
                    .collect();
                let list = memory.list(op.columns[0])?;
                let free = limit.saturating_sub(list.len);
                slots.iter().take(free).for_each(|&slot| list.push([slot]));
                memory.check_len(op.columns[0])?;
            }
            OpCode::WriteOutput => memory.window(op.columns[0], args[0], 1)?[0] = args[1],
            OpCode::Fetch => memory.fetch(op.columns[0], op.columns[1], args[0], args[1])?,
            OpCode::Publish => memory.publish(op.columns[0], args[0], op.columns[1], args[1])?,
            OpCode::PublishList(column) => {
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

/// Returns how often the emitted search counts until it knows the answer: at `hint`, next to it,
/// then by halving.
fn counts(hint: i32, answer: i32) -> usize {
    let (mut low, mut high, mut counts) = (-128, 127, 0);
    let mut t = hint.clamp(-128, 126);
    while low < high {
        counts += 1;
        let enough = t >= answer;
        (low, high) = if enough { (low, t) } else { (t + 1, high) };
        let beside = if enough { high - 1 } else { low }.clamp(low, high);
        t = if counts == 1 { beside } else { low + (high - low) / 2 };
    }
    counts
}
