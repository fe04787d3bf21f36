//! Writes Stage One of a geometry as AscendC: places its buffers, synchronises its calls, and
//! prints them.

use super::declare::{calls_of, constants, tensors};
use super::functions::{SEARCH, called};
use super::limits::STAGE_ONE_BYTES;
use super::print::{definition, lines};
use super::table::{setup, with_table};
use crate::ascend::aiv::Function;
use crate::ascend::lower::{Lowered, lower};
use crate::ascend::sync::synchronise;
use crate::ascend::ub::{Plan, TooLarge, plan};
use crate::check::{Refused, check};
use crate::record::record_stage_one;
use crate::tape::Tape;
use avsg_device::params::Params;

/// The generated part of a geometry's kernels: Stage One as AscendC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StageOneText {
    /// The constants and functions that Stage One uses.
    pub ops: String,
    /// The functions with which it searches links, which use those of `ops`.
    pub search: String,
    /// The function `Setup`, which runs once per core.
    pub setup: String,
    /// The function `StageOne`, which runs once per request.
    pub body: String,
    /// Bytes of unified buffer that it uses, from address 0.
    pub ub_bytes: u32,
    /// The table of its buffers, for a reader.
    pub plan: String,
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
        "S is {0}, but a 910B compares 128 lifetimes per instruction: choose a multiple of 128"
    )]
    Slots(u32),
}

/// Writes Stage One of a geometry.
///
/// # Errors
/// If its kernel breaks a rule of the kernel language, or does not fit the unified buffer.
pub fn stage_one(p: &Params) -> Result<StageOneText, Failed> {
    stage_one_within(p, STAGE_ONE_BYTES)
}

/// Writes Stage One of a geometry in `limit` bytes of unified buffer, so that tests cover several
/// tile widths.
///
/// # Errors
/// As [`stage_one`].
pub fn stage_one_within(p: &Params, limit: u32) -> Result<StageOneText, Failed> {
    text(p, &record_stage_one(p)?, limit)
}

/// Writes a kernel on the memory and the arguments of Stage One.
///
/// # Errors
/// As [`stage_one`].
pub fn text(p: &Params, tape: &Tape, limit: u32) -> Result<StageOneText, Failed> {
    let (kernel, plan) = placed(p, tape, limit)?;
    let mut setup = setup(&kernel, &plan);
    synchronise(&mut setup, &plan);
    let body = format!(
        "// Runs Stage One (Alg. 1) for each token of one request, on its table. `cores` waits for the\n\
         // other cores that share the request.\n\
         template <typename Cores>\n\
         __aicore__ inline void StageOne(const Gm &gm, const Request &q, Cores cores)\n{{\n{}{}}}\n",
        tensors(&kernel, &plan, &kernel.body),
        lines(&kernel.body, 1)
    );
    let once = format!(
        "// Writes the constants in UB that every request reads and none changes. It runs once per core.\n\
         __aicore__ inline void Setup(const Gm &gm)\n{{\n{}}}\n",
        lines(&setup, 1)
    );
    let all = [setup, kernel.body].concat();
    let functions = called(&all);
    let constants = constants(p, &plan, &all);
    let definition = |function: &&'static Function| {
        let several = calls_of(function, &all, &functions) > 1;
        format!("{}\n", definition(function, several))
    };
    let (search, others): (Vec<_>, Vec<_>) =
        functions.iter().partition(|function| SEARCH.contains(function));
    let text = |functions: Vec<&&'static Function>| functions.into_iter().map(definition).collect();
    let [search, others]: [String; 2] = [search, others].map(text);
    Ok(StageOneText {
        ops: format!("{constants}\n{others}"),
        search,
        setup: once,
        body,
        ub_bytes: plan.bytes,
        plan: plan.to_string(),
    })
}

/// Returns a kernel as synchronised calls, with the copies of the table in and out, and the plan of
/// its buffers.
pub(crate) fn placed(p: &Params, tape: &Tape, limit: u32) -> Result<(Lowered, Plan), Failed> {
    if !p.slots.is_multiple_of(128) {
        return Err(Failed::Slots(p.slots));
    }
    check(tape)?;
    let mut kernel = lower(tape)?;
    let plan = plan(&kernel, limit)?;
    kernel.set_widths(plan.wide);
    kernel.body = with_table(kernel.body, &plan);
    synchronise(&mut kernel.body, &plan);
    Ok((kernel, plan))
}
