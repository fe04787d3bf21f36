//! Cores that share a token and read one table at the same time.

use super::basic::call;
use crate::ascend::aiv::{
    Act, Argument, Call, Expr, Function, Global, Outcome, Pipe, Sync, Tensor, Use,
};

/// Copies a plane of a table in pieces; each core that shares the request starts with another
/// piece.
pub static COPY_IN_STAGGERED: Function = Function::text(
    "CopyInStaggered",
    include_str!("copy_in_staggered.h.in"),
    &[Use::Constant("PLANE_PIECES")],
    |call| {
        let (reads, writes) = (vec![call.place(1)], vec![call.place(0)]);
        vec![Act::Use { pipe: Pipe::Mte2, reads, writes }]
    },
);

/// Waits for all cores. Copies to global memory stay before it, and copies from global memory
/// behind it.
pub static IS_DONE_AFTER_WAIT: Function =
    Function::text("IsDoneAfterWait", include_str!("is_done_after_wait.h.in"), &[], |_| {
        vec![Act::Sync(Sync::Flag(Pipe::Mte3, Pipe::Mte2))]
    });

/// Copies `n` words of a table to UB, starting with piece `turn`.
pub fn copy_in_staggered(to: Tensor, from: Global, n: Expr, turn: Expr) -> Call {
    let args = vec![to.into(), Argument::Global(from), n.into(), turn.into()];
    call(&COPY_IN_STAGGERED, args, Outcome::None)
}

/// Waits for all cores, and ends Stage One on those that do not own the request.
pub fn wait_for_all() -> Call {
    call(
        &IS_DONE_AFTER_WAIT,
        vec![Expr::name("cores").into(), Expr::field("owner").into()],
        Outcome::Return,
    )
}
