//! Law 5: in one sweep every column has exactly one role. Then no lane sees what another wrote, and
//! the width of a tile cannot matter.
//!
//! That needs one thing more than the law's words: two scatters into one column, or two appends
//! to one list, run tile by tile, so lanes of the first come between lanes of the second in an
//! order that depends on the width. Hence a column is scattered or appended by one op of a sweep.
//! Streamed columns are free: all ops touch lane i at word i, in order, whatever the width.

use super::{Refused, Why};
use crate::tape::code::Role;
use crate::tape::{Block, Tape};

/// Checks one sweep's block.
///
/// # Errors
/// The first op that gives a column a second role.
pub fn check(tape: &Tape, body: &Block) -> Result<(), Refused> {
    let mut roles: Vec<Option<Role>> = vec![None; tape.columns.len()];
    for op in &body.ops {
        for (&id, &(_, role)) in op.columns.iter().zip(op.code.signature().columns) {
            let name = || tape.column(id).name.clone();
            let why = match roles[id.0 as usize].replace(role) {
                Some(before) if before != role => Why::TwoRoles(name(), before, role),
                Some(Role::Scattered | Role::Appended) => Why::TwoWriters(name(), role),
                _ => continue,
            };
            return Err(Refused::new(tape, op, why));
        }
    }
    Ok(())
}
