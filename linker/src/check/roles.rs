//! Law 5 of the kernel language (`avsg_device::machine`): in one sweep every column has exactly one
//! role. Then no lane reads what another lane wrote, and the width of a tile cannot change a
//! result.
//!
//! A column is also scattered or appended by only one op of a sweep: two such ops run tile by tile,
//! so their lanes interleave in an order that depends on the width. Several ops may stream a
//! column, because each of them touches word i in lane i, in order, for every width.

use super::{Refused, Why};
use crate::tape::code::Role;
use crate::tape::{Block, Tape};

/// Checks the block of one sweep.
///
/// # Errors
/// Returns the first op that gives a column a second role.
pub fn check(tape: &Tape, body: &Block) -> Result<(), Refused> {
    let mut roles: Vec<Option<Role>> = vec![None; tape.columns.len()];
    for op in &body.ops {
        for (&id, (_, role)) in op.columns.iter().zip(op.code.signature().columns()) {
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
