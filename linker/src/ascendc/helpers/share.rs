//! Cores that share a token, and read one table at once.

use super::basic::call;
use crate::aiv::{
    Act, Argument, Asks, Call, Expr, Global, Helper, Outcome, Pipe, Sync, Tensor, Use,
};

/// A table's column in pieces, of which sharers begin with different ones.
pub static COPY_IN_TURN: Helper = Helper {
    name: "CopyInTurn",
    text: include_str!("copy_in_turn.h.in"),
    uses: &[Use::Searches],
    acts: |call| {
        let (reads, writes) = (vec![call.place(1)], vec![call.place(0)]);
        vec![Act::Use { pipe: Pipe::Mte2, reads, writes }]
    },
    asks: Asks::Never,
    in_place: false,
};

/// All cores meet. `SyncAll` lets nothing past; without it nothing is moved.
pub static LEAVES: Helper = Helper {
    name: "Leaves",
    text: include_str!("leaves.h.in"),
    uses: &[],
    acts: |_| vec![Act::Sync(Sync::Flag(Pipe::Mte3, Pipe::Mte2))],
    asks: Asks::Never,
    in_place: false,
};

/// `n` words of a table.
pub fn copy_in_turn(to: Tensor, from: Global, n: Expr, turn: Expr) -> Call {
    let args = vec![to.into(), Argument::Global(from), n.into(), turn.into()];
    call(&COPY_IN_TURN, args, Outcome::None)
}

/// All cores meet, and those that do not own the request are done.
pub fn meet() -> Call {
    call(&LEAVES, vec![Expr::field("owner").into()], Outcome::Return)
}
