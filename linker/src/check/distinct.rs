//! Law 5 of the kernel language (`avsg_device::machine`): indices that a scatter declares distinct
//! are.
//!
//! A vector is distinct if no two lanes of its sweep are equal: the lane numbers, a column of a list
//! whose entries differ, and what is left of either when a scalar is added. The entries of a list
//! differ if one sweep appended them to the empty list from a distinct vector, or if they are the
//! slots with lifetimes below a threshold, and then those at it. Lists are followed along the ops; a
//! loop is walked until what is known at its start is also known at its end.

use super::{Refused, Why};
use crate::tape::{Block, ColumnId, Kind, Op, OpCode, Tape, Value};
use avsg_device::machine::Indices;
use std::collections::BTreeSet;

/// What is known of a list.
#[derive(Clone, PartialEq)]
enum List {
    Empty,
    /// All entries are slots with a lifetime below the value.
    Below(ColumnId, Value),
    /// Whether the entries of each column differ.
    Columns(Vec<bool>),
}

struct Walk<'t> {
    tape: &'t Tape,
    /// The lists, by number of their column.
    lists: Vec<List>,
    distinct: BTreeSet<Value>,
}

/// Checks every scatter of a tape whose structure is checked.
///
/// # Errors
/// Returns the first scatter whose indices are not known to be distinct, but are declared so.
pub fn check(tape: &Tape) -> Result<(), Refused> {
    let lists = vec![List::Empty; tape.columns.len()];
    Walk { tape, lists, distinct: BTreeSet::new() }.block(&tape.body)
}

impl Walk<'_> {
    fn block(&mut self, block: &Block) -> Result<(), Refused> {
        for op in &block.ops {
            match &op.blocks[..] {
                [yes, no] => {
                    let before = self.lists.clone();
                    self.block(yes)?;
                    let after = std::mem::replace(&mut self.lists, before);
                    self.block(no)?;
                    self.meet(&after);
                }
                [body] if op.code == OpCode::Sweep => self.block(body)?,
                [body] => loop {
                    let start = self.lists.clone();
                    self.block(body)?;
                    self.meet(&start);
                    if self.lists == start {
                        break;
                    }
                },
                _ => self.op(op).map_err(|why| Refused::new(self.tape, op, why))?,
            }
        }
        Ok(())
    }

    /// Keeps what is known here and also in `other`.
    fn meet(&mut self, other: &[List]) {
        for (n, other) in other.iter().enumerate() {
            if self.lists[n] != *other {
                let mut columns = self.columns(&self.lists[n], n);
                let and = |(a, b): (&mut bool, bool)| *a &= b;
                columns.iter_mut().zip(self.columns(other, n)).for_each(and);
                self.lists[n] = List::Columns(columns);
            }
        }
    }

    fn columns(&self, list: &List, n: usize) -> Vec<bool> {
        match (list, self.tape.columns[n].kind) {
            (List::Columns(columns), _) => columns.clone(),
            (_, Kind::List { width }) => vec![true; width],
            _ => Vec::new(),
        }
    }

    fn op(&mut self, op: &Op) -> Result<(), Why> {
        let known = |walk: &Self, n: usize| walk.distinct.contains(&op.args[n]);
        let id = |n: usize| op.columns[n].0 as usize;
        if let Some(out) = op.out {
            let distinct = match op.code {
                OpCode::Iota => true,
                OpCode::AddTo(_) | OpCode::AddScalar | OpCode::SubScalar => known(self, 0),
                OpCode::Item(column) => self.columns(&self.lists[id(0)], id(0))[column],
                _ => false,
            };
            self.distinct.remove(&out);
            self.distinct.extend(distinct.then_some(out));
        }
        match op.code {
            OpCode::Scatter(Indices::Distinct) if !known(self, 1) => return Err(Why::NotDistinct),
            OpCode::Clear => self.lists[id(0)] = List::Empty,
            OpCode::MoveList => {
                self.lists[id(0)] = std::mem::replace(&mut self.lists[id(1)], List::Empty);
            }
            OpCode::Append => {
                let empty = self.lists[id(0)] == List::Empty;
                let columns = (2..op.args.len()).map(|n| empty && known(self, n)).collect();
                self.lists[id(0)] = List::Columns(columns);
            }
            OpCode::AppendLife(equal) => {
                let below = List::Below(op.columns[1], op.args[0]);
                let list = &mut self.lists[id(0)];
                *list = match equal {
                    false if *list == List::Empty => below,
                    _ => List::Columns(vec![equal && (*list == List::Empty || *list == below)]),
                };
            }
            OpCode::Age | OpCode::MapLife | OpCode::SetLife(_) | OpCode::StepLife(_) => {
                let below = |list: &&mut List| matches!(list, List::Below(life, _) if *life == op.columns[0]);
                let changed = self.lists.iter_mut().filter(below);
                changed.for_each(|list| *list = List::Columns(vec![true]));
            }
            _ => {}
        }
        Ok(())
    }
}
