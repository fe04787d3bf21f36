//! Ops that change a column: on the lanes of a tile that a mask selects, or on a whole column. They refuse
//! poison, except in lanes outside of the mask.

use super::fault::{Lane, POISON};
use super::values::reduced;
use super::{Replay, Tile};
use avsg_linker::tape::{Op, OpCode, Range};

impl Replay<'_> {
    /// Executes an op that defines no value.
    pub(super) fn effect(&mut self, op: &Op) -> Result<(), String> {
        if let OpCode::Find(links) | OpCode::FindFree(links) = op.code {
            return self.search(op, &links);
        }
        let Self { tape, memory, values, tile: Tile { at, live }, .. } = self;
        let lanes = |n: usize| values[op.args[n].0 as usize].as_slice();
        let scalar = |n: usize| lanes(n)[0].unwrap_or_default();
        let id = op.columns[0];
        match op.code {
            OpCode::Store => {
                memory.window(id, *at, *live)?.copy_from_slice(defined(lanes(1))?);
            }
            OpCode::Scatter | OpCode::SetLife(_) | OpCode::StepLife(_) => {
                let words = memory.words(id);
                for lane in set_lanes(lanes(op.args.len() - 1))? {
                    let index = reduced(lanes(1)[lane].ok_or(POISON)?, words.len())?;
                    words[index] = Some(match op.code {
                        OpCode::SetLife(value) => value.into(),
                        OpCode::StepLife(rule) => {
                            rule.next(lifetime(words[index].ok_or(POISON)?)?).into()
                        }
                        _ => lanes(2)[lane].ok_or(POISON)?,
                    });
                }
            }
            OpCode::Append => {
                for lane in set_lanes(lanes(1))? {
                    let entry: Vec<Lane> = (2..op.args.len()).map(|n| lanes(n)[lane]).collect();
                    memory.push(id, defined(&entry)?);
                }
            }
            OpCode::Clear => memory.contents[id.0 as usize].iter_mut().for_each(Vec::clear),
            OpCode::MoveList => {
                memory.contents[id.0 as usize].iter_mut().for_each(Vec::clear);
                memory.contents.swap(id.0 as usize, op.columns[1].0 as usize);
            }
            OpCode::Age => {
                let (by, from) = (scalar(0), scalar(1));
                if !(0..=128).contains(&by) {
                    return Err(format!("lifetimes fall by 0..=128, not by {by}"));
                }
                for life in memory.words(id) {
                    let old = life.ok_or(POISON)?;
                    *life = Some(if old >= from { (old - by).max(i8::MIN.into()) } else { old });
                }
            }
            OpCode::MapLife => {
                let [life, table] = [1, 2].map(|n| memory.words(op.columns[n]).clone());
                let next = |life: &Lane| {
                    let entry = table
                        .get(usize::from(lifetime(life.ok_or(POISON)?)?.cast_unsigned() ^ 128));
                    let word = entry.copied().flatten();
                    let word =
                        word.ok_or("the table has no entry for a lifetime, or it is poison")?;
                    lifetime(word - 128).map(|life| Some(life.into()))
                };
                *memory.words(id) = life.iter().map(next).collect::<Result<_, String>>()?;
            }
            OpCode::AppendLife(equal) => {
                let t = lifetime(scalar(0))?.into();
                let chosen = |life: i32| if equal { life == t } else { life < t };
                let free = usize::try_from(scalar(1).saturating_sub(memory.len(id))).unwrap_or(0);
                // A list that is full takes no slots, and the lifetimes may be undefined.
                if free > 0 {
                    let life = defined(memory.words(op.columns[1]))?.to_vec();
                    let slots = (0..).zip(life).filter(|(_, life)| life.is_some_and(chosen));
                    slots.take(free).for_each(|(slot, _)| memory.push(id, &[Some(slot)]));
                }
            }
            OpCode::WriteOutput => memory.window(id, scalar(0), 1)?[0] = Some(scalar(1)),
            OpCode::CopyIn => {
                let (n, range) = (scalar(1), tape.column(id).ranges[0]);
                let words = memory.window(op.columns[1], scalar(0), n)?.to_vec();
                if let Some(bad) = words.iter().flatten().find(|&&word| !range.holds(word)) {
                    return Err(format!(
                        "the word {bad} is not in the range {range} of the column"
                    ));
                }
                memory.window(id, 0, n)?.copy_from_slice(&words);
                memory.forget(id, n);
            }
            OpCode::CopyOut => {
                let words = memory.window(op.columns[1], 0, scalar(1))?.to_vec();
                memory.window(id, scalar(0), scalar(1))?.copy_from_slice(defined(&words)?);
            }
            OpCode::CopyOutList(column) => {
                let n = memory.len(op.columns[1]);
                let words = memory.contents[op.columns[1].0 as usize][column].clone();
                memory.window(id, scalar(0), n)?.copy_from_slice(&words);
            }
            _ => return Err("not an op that changes a column".into()),
        }
        memory.check_len(id)
    }
}

/// Returns lanes of which none is poison.
fn defined(lanes: &[Lane]) -> Result<&[Lane], String> {
    if lanes.contains(&None) { Err(POISON.into()) } else { Ok(lanes) }
}

/// Returns the lanes that a mask selects, in order.
fn set_lanes(mask: &[Lane]) -> Result<impl Iterator<Item = usize>, String> {
    let lanes = defined(mask)?.iter().enumerate();
    Ok(lanes.filter(|(_, bit)| **bit == Some(1)).map(|(lane, _)| lane))
}

fn lifetime(t: i32) -> Result<i8, String> {
    i8::try_from(t).map_err(|_| format!("{t} is not a lifetime, which is in {}", Range::LIFETIME))
}
