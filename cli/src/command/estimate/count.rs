//! What a step does: counted by replaying the recorded kernel over a trace.

use crate::trace::Trace;
use anyhow::{Context, Result};
use avsg::Error;
use avsg::device::batched::refresh_late;
use avsg::device::params::{ID_LIMIT, NO_STABLE_LEN, Params};
use avsg::device::request::record;
use avsg::device::share::part;
use avsg::device::state::{DEAD, EMPTY, INVALID, header};
use avsg_linker::aiv::Call;
use avsg_linker::ascendc::Failed;
use avsg_linker::ascendc::helpers::append::{APPEND, APPEND_IN_PLACE};
use avsg_linker::ascendc::helpers::scatter::SCATTER_MASKED;
use avsg_linker::ascendc::kernels::defers;
use avsg_linker::cost::Work;
use avsg_linker::cost::calls::{Kernel, Life, of_calls};
use avsg_linker::replay::{Ran, Replay};
use avsg_linker::tape::{Code, Op, Tape};
use avsg_linker::ub::TooLarge;
use serde::Serialize;

use super::phase::{PHASES, Phase, Phases};

/// Means over the counted steps, of one request with one token each.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Counts {
    /// Steps counted.
    pub steps: usize,
    /// Ids found.
    pub hits: f64,
    /// Ids not found.
    pub misses: f64,
    /// Ids pending before each later round of Probe.
    pub pending: Vec<f64>,
    /// Counts over the lifetimes until the threshold was known.
    pub counts: f64,
    /// How far the lifetimes fell in CollectDead; the paper decays step by step.
    pub decays: f64,
    /// Ids that looked for a link, over all rounds.
    pub seeks: f64,
    /// Links written.
    pub claims: f64,
    /// Hits that are refreshed before victims are chosen, the others waiting.
    pub early: f64,
}

/// The kernel's work a step.
pub struct Profile {
    /// The geometry.
    pub params: Params,
    /// Lanes of a tile.
    pub tile: u32,
    /// Bytes of UB.
    pub ub: u32,
    /// Counts.
    pub counts: Counts,
    /// Cores that probe for a request where [`How::Shared`] is counted; 1: it is not.
    pub sharers: usize,
    /// Work by phase: lifetimes in a column of their own and in the links' words, each in every way.
    pub work: [[[Work; PHASES.len()]; HOWS.len()]; 2],
    /// Probe's later rounds, were they to run over all K ids.
    pub all_lanes: Work,
}

/// A way to run Stage One; see [`HOWS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Every refresh at once.
    AtOnce,
    /// Refreshes that can wait are left out.
    Late,
    /// Those too, and other cores probe most of the token.
    Shared,
}

/// All of them, in the order of [`Profile::work`].
pub const HOWS: [How; 3] = [How::AtOnce, How::Late, How::Shared];

/// The table between steps.
#[derive(Clone)]
struct State {
    header: Vec<i32>,
    id: Vec<i32>,
    life: Vec<i8>,
    link: Vec<i32>,
}

/// Replays the trace's tokens, each as a step of its own, and counts all but the first `warm` of them.
///
/// With more than one of `sharers`, also as one of so many cores that share the token.
pub fn count(
    params: &Params,
    trace: &Trace,
    warm: usize,
    sharers: usize,
    done: &dyn Fn(),
) -> Result<Profile> {
    let sharers = if defers(params) { sharers } else { 1 };
    let kernel = match Kernel::new(params) {
        Err(Failed::TooLarge(TooLarge { needs, limit })) => {
            let limit = format!("there are {limit} on a 910B");
            let remedy = "choose fewer slots, less spread or a smaller K";
            return Err(Error::invalid("bytes of unified buffer", needs, limit, remedy).into());
        }
        lowered => lowered.context("lowering Stage One for a 910B")?,
    };
    let phases = Phases::new(&kernel);
    let mut words = vec![0; header::WORDS];
    words[header::THRESHOLD as usize] = i32::from(DEAD);
    let mut state = State {
        header: words,
        id: vec![EMPTY; params.slots as usize],
        life: vec![params.empty_life(); params.slots as usize],
        link: vec![INVALID; params.links() as usize],
    };
    let all_lanes = uncompacted(&kernel, &phases, params);
    let rounds = later_rounds(&kernel, &phases);
    let mut profile = Profile {
        params: *params,
        tile: kernel.plan.tile,
        ub: kernel.plan.bytes,
        counts: Counts { pending: vec![0.0; rounds as usize], ..Counts::default() },
        sharers,
        work: Default::default(),
        all_lanes,
    };
    for step in 0..trace.steps {
        let stable = trace.stable.as_ref().map_or(-1, |stable| stable[step]);
        let before = state.clone();
        // The slots that the other cores of a shared token find.
        let mut found = Vec::new();
        for how in HOWS.into_iter().filter(|&how| how != How::Shared || sharers > 1) {
            state = before.clone();
            let part = if how == How::Shared { part(params.k as usize, sharers) } else { 0 };
            let step_of = StepOf { ids: trace.row(step, 0), stable, how, part, found: &found };
            let (ran, slots, misses) = replay(&kernel, params, &mut state, &step_of)?;
            if how != How::AtOnce {
                refresh_late(params, &mut state.life, &slots);
            }
            found.clone_from(&slots);
            misses.iter().for_each(|&lane| found[lane] = EMPTY);
            if step < warm {
                continue;
            }
            if how == How::Late {
                profile.counts.add(&kernel.tape, &phases, &ran, &slots, &misses);
            }
            for (n, life) in [Life::Narrow, Life::Packed].into_iter().enumerate() {
                let sum = &mut profile.work[n][how as usize];
                sum.iter_mut().zip(phases.work(&ran, life)).for_each(|(sum, work)| *sum += work);
            }
        }
        done();
    }
    profile.divide();
    Ok(profile)
}

/// What a step is replayed on.
struct StepOf<'a> {
    ids: &'a [i32],
    stable: i32,
    how: How,
    /// Lanes that this core probes of a shared token.
    part: usize,
    /// What the others found, and this one will.
    found: &'a [i32],
}

/// One step: what ran, the slot of every lane, and the lanes that missed.
fn replay<'t>(
    kernel: &'t Kernel,
    p: &Params,
    state: &mut State,
    step: &StepOf<'_>,
) -> Result<(Vec<Ran<'t>>, Vec<i32>, Vec<usize>)> {
    let mut run = Replay::new(&kernel.tape, kernel.plan.tile as usize)?;
    run.watch();
    let &StepOf { ids, stable, how, part, found } = step;
    let k = ids.len();
    // Host blocks in order: what a lookup costs does not depend on what it finds.
    let entries = if p.page == 0 { 0 } else { ID_LIMIT / p.page.cast_signed() };
    let blocks: Vec<i32> = (0..entries).collect();
    let rows = if p.page == 0 { ID_LIMIT } else { i32::try_from(blocks.len())? };
    let scalars = [
        ("tokens", 1),
        ("k", i32::try_from(k)?),
        ("generation", 1),
        ("stable", if stable < 0 { NO_STABLE_LEN } else { stable }),
        ("limit", if stable < 0 { NO_STABLE_LEN } else { stable + 1 }),
        ("rows", rows),
        ("ids_at", 0),
        ("ids_stride", i32::try_from(k)?),
        ("blocks_at", 0),
        ("blocks_len", i32::try_from(blocks.len())?),
        ("slot_at", 0),
        ("slot_stride", i32::try_from(k)?),
        ("valid_at", 0),
        ("miss_at", 0),
        ("record_at", 0),
        ("shared", i32::from(how == How::Shared)),
        ("part_at", 0),
        ("part_len", i32::try_from(part.min(k))?),
        ("late", i32::from(how != How::AtOnce)),
    ];
    for (name, value) in scalars {
        run.set(name, value)?;
    }
    for (name, words) in
        [("header", &mut state.header), ("id", &mut state.id), ("link", &mut state.link)]
    {
        run.bind(name, std::mem::take(words))?;
    }
    run.bind_life("life", std::mem::take(&mut state.life))?;
    run.bind("gm_ids", ids.to_vec())?;
    run.bind("gm_block_table", blocks)?;
    run.bind("gm_valid", vec![0])?;
    run.bind("gm_record", vec![0; record::WORDS])?;
    for name in ["gm_slot", "gm_miss_pos", "gm_miss_id", "gm_miss_slot", "gm_miss_row"] {
        run.bind(name, vec![EMPTY; k])?;
    }
    if how == How::Shared {
        run.bind("gm_slot", found.to_vec())?;
    }
    run.run()?;
    *state = State {
        header: run.take("header")?,
        id: run.take("id")?,
        life: run.take_life("life")?,
        link: run.take("link")?,
    };
    let n = usize::try_from(run.take("gm_record")?[record::TOTAL as usize])?;
    let misses = run.take("gm_miss_pos")?[..n].iter().map(|&at| at as usize).collect();
    Ok((run.ran(), run.take("gm_slot")?, misses))
}

/// The work of Probe's later rounds over all K lanes: what was appended or scattered is selected.
fn uncompacted(kernel: &Kernel, phases: &Phases<'_>, p: &Params) -> Work {
    let rounds = kernel.tape.body.all().filter(|op| phases.of(op) == Phase::Rounds);
    let calls: Vec<Call> =
        rounds.flat_map(|op| kernel.calls(op).unwrap_or_default()).cloned().collect();
    let moving = [&SCATTER_MASKED, &APPEND, &APPEND_IN_PLACE];
    let moves = |c: &Call| c.helper().is_some_and(|call| moving.contains(&call.helper));
    let (moved, kept): (Vec<Call>, Vec<Call>) = calls.into_iter().partition(moves);
    let lanes = kernel.plan.tile.min(p.k) as usize;
    let tile = of_calls(&kept, lanes) + Work::vector(moved.len().min(2), lanes);
    tile * f64::from(p.k.div_ceil(kernel.plan.tile) * later_rounds(kernel, phases))
}

/// How many later rounds Probe has.
fn later_rounds(kernel: &Kernel, phases: &Phases<'_>) -> u32 {
    let max = |op: &Op| match op.code {
        Code::Repeat { max } if phases.of(op) == Phase::Rounds => Some(max),
        _ => None,
    };
    kernel.tape.body.all().find_map(max).unwrap_or(0)
}

impl Counts {
    fn add(
        &mut self,
        tape: &Tape,
        phases: &Phases<'_>,
        ran: &[Ran<'_>],
        slots: &[i32],
        misses: &[usize],
    ) {
        self.steps += 1;
        self.hits += (slots.iter().filter(|&&slot| slot >= 0).count() - misses.len()) as f64;
        self.misses += misses.len() as f64;
        let mut round = 0;
        for run in ran {
            let n = run.lanes as f64;
            match (run.op.code, phases.of(run.op)) {
                (Code::Sweep, Phase::Rounds) => {
                    self.pending[round] += n;
                    round += 1;
                }
                (Code::Bisect, _) => self.counts += n,
                (Code::Append, Phase::Refresh) => self.early += run.active as f64,
                (Code::Age { .. }, Phase::CollectDead) => self.decays += run.active as f64,
                (Code::FindFree(_), _) => self.seeks += n,
                (Code::Scatter, Phase::UpdateState)
                    if Some(run.op.columns[0]) == tape.find("link") =>
                {
                    self.claims += run.active as f64;
                }
                _ => {}
            }
        }
    }
}

impl Profile {
    /// From sums to means.
    fn divide(&mut self) {
        let by = 1.0 / self.counts.steps.max(1) as f64;
        let c = &mut self.counts;
        for sum in [
            &mut c.hits,
            &mut c.misses,
            &mut c.counts,
            &mut c.decays,
            &mut c.seeks,
            &mut c.claims,
            &mut c.early,
        ] {
            *sum *= by;
        }
        c.pending.iter_mut().for_each(|n| *n *= by);
        self.work.iter_mut().flatten().flatten().for_each(|work| *work = *work * by);
    }
}
