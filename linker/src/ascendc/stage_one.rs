//! Stage One of a geometry as AscendC: placed, ordered, written.

use super::declare::{constants, helpers, tensors};
use super::limits::{FRAME_BYTES, UB_BYTES};
use super::print::lines;
use super::table::{load, save, setup};
use crate::check::{Refused, check};
use crate::lower::{Lowered, lower};
use crate::record::record_stage_one;
use crate::sync::synchronise;
use crate::ub::{Plan, TooLarge, plan};
use avsg_device::params::Params;

/// The generated part of a geometry's kernels: Stage One as AscendC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StageOneText {
    /// Addresses of scratch memory and constants, and the helpers that are used.
    pub ops: String,
    /// `Setup`: once per core.
    pub setup: String,
    /// `StageOne`: one request.
    pub body: String,
    /// Unified buffer that it uses, from 0.
    pub ub_bytes: u32,
    /// Where what lies.
    pub plan: String,
}

/// Why a geometry has no text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Failed {
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    #[error("S is {0}; a 910B compares 128 lifetimes at once: choose 128 slots or more")]
    TooSmall(u32),
}

/// Writes Stage One of a geometry.
///
/// # Errors
/// If its kernel breaks a law, or does not fit the unified buffer.
pub fn stage_one(p: &Params) -> Result<StageOneText, Failed> {
    stage_one_within(p, UB_BYTES - FRAME_BYTES)
}

/// The same in fewer bytes of unified buffer: with narrower tiles, so that tests meet several.
///
/// # Errors
/// As [`stage_one`].
pub fn stage_one_within(p: &Params, limit: u32) -> Result<StageOneText, Failed> {
    let (kernel, plan) = placed(p, limit)?;
    let mut setup = setup(&kernel, &plan);
    synchronise(&mut setup, &plan);
    let body = format!(
        "// One request: Algorithm 1 for each of its tokens, on one table.\n\
         __aicore__ inline void StageOne(const Gm &gm, const Request &q)\n{{\n{}{}}}\n",
        tensors(&kernel, &plan, &kernel.body),
        lines(&kernel.body, 1)
    );
    let once = format!(
        "// Once per core: what every request needs and none changes.\n\
         __aicore__ inline void Setup(const Gm &gm)\n{{\n{}}}\n",
        lines(&setup, 1)
    );
    let all = [setup, kernel.body].concat();
    let helpers = helpers(&all);
    let constants = constants(p, &plan, &all, &helpers);
    let helpers: String = helpers.iter().map(|helper| format!("{}\n", helper.text)).collect();
    Ok(StageOneText {
        ops: format!("{constants}\n{helpers}"),
        setup: once,
        body,
        ub_bytes: plan.bytes,
        plan: plan.to_string(),
    })
}

/// A geometry's Stage One as calls, the table's way in and out and all synchronisation with it, and where its
/// buffers lie.
pub(crate) fn placed(p: &Params, limit: u32) -> Result<(Lowered, Plan), Failed> {
    if p.slots < 128 {
        return Err(Failed::TooSmall(p.slots));
    }
    let tape = record_stage_one(p)?;
    check(&tape)?;
    let mut kernel = lower(&tape)?;
    let plan = plan(&kernel, limit)?;
    kernel.narrow(plan.wide);
    kernel.body = [load(p), kernel.body, save(p)].concat();
    synchronise(&mut kernel.body, &plan);
    Ok((kernel, plan))
}
