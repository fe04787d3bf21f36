//! An engine over a pool in a file gives what one over a pool in memory gives, and a failing disk makes no
//! slot wrong.

mod calls;
mod engines;
mod faults;
mod pair;
mod server;
