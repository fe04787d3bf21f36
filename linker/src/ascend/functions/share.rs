//! Cores that share a token and read one table at the same time.

use crate::ascend::aiv::Element::Word;
use crate::ascend::aiv::{Expr, Loop};

/// The constant with the number of pieces of a plane.
const PLANE_PIECES: Expr = Expr::Constant("PLANE_PIECES");

function! {
    /// Copies n words in PLANE_PIECES pieces, starting with piece `turn` modulo their number. Cores that
    /// share a request pass different turns, because cores that read the same addresses at once wait for
    /// each other.
    pub static COPY_IN_STAGGERED = "CopyInStaggered", |f| {
        let ([to], from) = (f.tensors(Word, ["to"]), f.global("from"));
        let [n, turn] = f.numbers(["n", "turn"]);
        f.repeat(Loop::over("piece", PLANE_PIECES), |f, piece| {
            let at = f.set("at", (piece + turn) % PLANE_PIECES * (n / PLANE_PIECES));
            f.copy_in(to.of_round(at), &from, at, n / PLANE_PIECES);
        });
    }
}
