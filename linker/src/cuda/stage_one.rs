//! Writes Stage One of a geometry as CUDA C++.

use super::Options;
use super::access::{repeats, waits};
use super::fuse::fuse;
use super::order::order;
use super::place::{Plan, TooLarge, place};
use super::print::{print, repeated_name};
use crate::check::{Refused, Why, check, ranges};
use crate::record::record_scheduled;
use crate::simplify::simplify;
use crate::tape::{Op, OpCode, Tape, Value};
use avsg_device::params::Params;
use avsg_device::sequential::Sequential;
use avsg_device::simt::Simt;

/// Stage One of a geometry as CUDA C++.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageOneText {
    /// Rules of lifetimes, as arrays in constant memory.
    pub rules: String,
    /// The function `StageOne`, which runs once per request.
    pub body: String,
    /// The shared memory of a block.
    pub plan: Plan,
}

/// The reason why Stage One of a geometry cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says it")]
pub enum Failed {
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    #[error(
        "a thread would keep {rounds} lanes in registers, and {limit} are the most: choose more threads than \
         {threads}, or a smaller K"
    )]
    TooFewThreads { rounds: u32, limit: u32, threads: u32 },
    #[error("a block has 256, 512 or 1024 threads, not {0}")]
    Threads(u32),
    #[error("a block counts slots in 16 bits: choose S below 65536, not {0}")]
    Slots(u32),
}

/// The most lanes of a sweep that a thread keeps in registers until a list is made.
pub const MAX_ROUNDS: u32 = 16;

/// The mark of lane 0 that asks for a word, as `avsg_block.cuh` has it.
const TAG: i32 = 1 << 30;

/// Records Stage One as a block of threads runs it: by the schedule [`Simt`] if it serves the table,
/// else by [`Sequential`].
///
/// # Errors
/// As [`crate::record::record_stage_one`].
pub fn record(p: &Params) -> Result<Tape, Refused> {
    if Simt::serves(p) { record_scheduled::<Simt>(p) } else { record_scheduled::<Sequential>(p) }
}

/// Writes a kernel on the memory and the arguments of Stage One.
///
/// # Errors
/// If the kernel breaks a rule of the kernel language, waits for other cores, or does not fit.
pub fn text(p: &Params, tape: &Tape, options: Options) -> Result<StageOneText, Failed> {
    let threads = options.threads;
    if ![256, 512, 1024].contains(&threads) {
        return Err(Failed::Threads(threads));
    }
    if p.slots > u32::from(u16::MAX) {
        return Err(Failed::Slots(p.slots));
    }
    check(tape)?;
    if let Some(op) = tape.body.all().find(|op| refused(tape, op)) {
        return Err(Refused::new(tape, op, Why::NoCall).into());
    }
    if let Some(name) = repeated_name(tape) {
        return Err(Refused::declarations(tape, Why::TextName(name)).into());
    }
    let mut ranges = ranges::of_values(tape)?;
    let fused = fuse(&simplify(tape, &ranges), &mut ranges);
    // Sweeps that are joined compute some values twice.
    let tape = simplify(&fused, &ranges);
    let most = |n: Value| ranges[n.0 as usize].hi.max(0).cast_unsigned();
    let rounds = |n: Value| most(n).div_ceil(threads).max(1);
    let sweeps = tape.body.all().filter(|op| op.code == OpCode::Sweep && op.all().any(waits));
    let largest = sweeps.map(|op| rounds(op.args[0])).max().unwrap_or(0);
    if largest > MAX_ROUNDS {
        return Err(Failed::TooFewThreads { rounds: largest, limit: MAX_ROUNDS, threads });
    }
    let plan = place(p, &tape, options, &rounds)?;
    let ordered = order(&tape, &plan, &ranges);
    let (rules, body) = print(p, &ordered, &plan, &ranges, &rounds);
    Ok(StageOneText { rules, body, plan })
}

/// Returns whether a block of threads has no code for an operation: a wait for other cores, a read of global
/// memory that is no line in registers, and a scatter whose words could be the mark of a lane.
fn refused(tape: &Tape, op: &Op) -> bool {
    match op.code {
        OpCode::Synchronise => true,
        OpCode::ReadOutput => !tape.column(op.columns[0]).resident,
        _ if repeats(op) => tape.column(op.columns[0]).ranges[0].hi >= TAG,
        _ => false,
    }
}
