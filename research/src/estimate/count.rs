//! The work of a step, counted by replaying the recorded kernel on a trace.

use anyhow::{Context, Result};
use avsg::Error;
use avsg::device::batched::refresh_deferred;
use avsg::device::params::{ID_LIMIT, NO_STABLE_LEN, Params};
use avsg::device::request::record;
use avsg::device::share;
use avsg::device::state::{DEAD, EMPTY, INVALID, header};
use avsg_cli::trace::Trace;
use avsg_linker::ascend::Failed;
use avsg_linker::ascend::cost::Work;
use avsg_linker::ascend::cost::calls::{Kernel, Life};
use avsg_linker::ascend::kernels::defers;
use avsg_linker::ascend::ub::TooLarge;
use avsg_linker::replay::{Execution, Replay};
use avsg_linker::tape::{OpCode, Tape};
use serde::Serialize;

use super::phase::{PHASES, Phase, Phases};

/// Means per counted step, for one request with one token.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Counts {
    /// Number of counted steps.
    pub steps: usize,
    /// Ids that hit.
    pub hits: f64,
    /// Ids that miss.
    pub misses: f64,
    /// Passes over the lifetimes that count slots, until the threshold is known.
    pub counts: f64,
    /// The number of steps by which CollectDead lowers the lifetimes; the paper lowers them one by one.
    pub decays: f64,
    /// Ids that search for a link, summed over all rounds.
    pub seeks: f64,
    /// Links that are written.
    pub claims: f64,
    /// Hits that are refreshed before victims are chosen; the others are refreshed later.
    pub early: f64,
}

/// The work of the kernel per step.
pub struct Profile {
    /// The geometry.
    pub params: Params,
    /// Lanes per tile.
    pub tile: u32,
    /// Bytes of unified buffer that the kernel uses.
    pub ub: u32,
    /// Means per step.
    pub counts: Counts,
    /// Cores that share a token under [`Schedule::Shared`]; 1 if that schedule is not counted.
    pub sharers: usize,
    /// Work by lifetime layout (own column, packed into the links' words), schedule and phase.
    pub work: [[[Work; PHASES.len()]; SCHEDULES.len()]; 2],
}

/// A schedule of Stage One's refreshes and probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// All refreshes run before victims are chosen.
    AtOnce,
    /// Refreshes that cannot change a victim are left out of Stage One.
    Deferred,
    /// As `Deferred`, and other cores probe most of the token's ids.
    Shared,
}

/// The schedules, in the order of [`Profile::work`].
pub const SCHEDULES: [Schedule; 3] = [Schedule::AtOnce, Schedule::Deferred, Schedule::Shared];

/// The table between two steps.
#[derive(Clone)]
struct State {
    header: Vec<i32>,
    id: Vec<i32>,
    lifetime: Vec<i8>,
    link: Vec<i32>,
}

/// Replays the steps of the trace, which have one token each, and counts all but the first `warm`
/// steps. `tick` is called after each step.
///
/// If `sharers` is above 1, [`Schedule::Shared`] is counted too, on one of so many cores.
pub fn count(
    params: &Params,
    trace: &Trace,
    warm: usize,
    sharers: usize,
    tick: &dyn Fn(),
) -> Result<Profile> {
    let sharers = if defers(params) { sharers } else { 1 };
    let kernel = match Kernel::new(params) {
        Err(Failed::TooLarge(TooLarge { needs, limit })) => {
            let limit = format!("a vector core of a 910B has {limit} bytes");
            let remedy = "choose fewer slots, less spread or a smaller K";
            let value = format!("{needs} bytes");
            return Err(Error::invalid("unified buffer", value, limit, remedy).into());
        }
        lowered => lowered.context("lowering Stage One for a 910B")?,
    };
    let phases = Phases::new(&kernel);
    let mut words = vec![0; header::WORDS];
    words[header::THRESHOLD as usize] = i32::from(DEAD);
    let mut state = State {
        header: words,
        id: vec![EMPTY; params.slots as usize],
        lifetime: vec![params.empty_life(); params.slots as usize],
        link: vec![INVALID; params.links() as usize],
    };
    let mut profile = Profile {
        params: *params,
        tile: kernel.plan.tile,
        ub: kernel.plan.bytes,
        counts: Counts::default(),
        sharers,
        work: Default::default(),
    };
    for step in 0..trace.steps {
        let stable = trace.stable.as_ref().map_or(-1, |stable| stable[step]);
        let before = state.clone();
        // The slots of hits, which the cores of a shared token publish for each other.
        let mut hit_slots = Vec::new();
        let counted = |&schedule: &Schedule| schedule != Schedule::Shared || sharers > 1;
        for schedule in SCHEDULES.into_iter().filter(counted) {
            state = before.clone();
            let shared = schedule == Schedule::Shared;
            let share_len = if shared { share::share_len(params.k as usize, sharers) } else { 0 };
            let ids = trace.row(step, 0);
            let input = StepInput { ids, stable, schedule, share_len, hit_slots: &hit_slots };
            let (ran, slots, misses) = replay(&kernel, params, &mut state, &input)?;
            if schedule != Schedule::AtOnce {
                refresh_deferred(params, &mut state.lifetime, &slots);
            }
            hit_slots.clone_from(&slots);
            misses.iter().for_each(|&lane| hit_slots[lane] = EMPTY);
            if step < warm {
                continue;
            }
            if schedule == Schedule::Deferred {
                profile.counts.add(&kernel.tape, &phases, &ran, &slots, &misses);
            }
            for (layout, life) in [Life::Narrow, Life::Packed].into_iter().enumerate() {
                let sum = &mut profile.work[layout][schedule as usize];
                sum.iter_mut().zip(phases.work(&ran, life)).for_each(|(sum, work)| *sum += work);
            }
        }
        tick();
    }
    profile.divide();
    Ok(profile)
}

/// The input of a replayed step.
struct StepInput<'a> {
    ids: &'a [i32],
    /// Tokens with final KV before the step; -1 if not known.
    stable: i32,
    schedule: Schedule,
    /// Lanes of a shared token that this core probes.
    share_len: usize,
    /// The slot of each id that hits, -1 for misses: the results of the cores that share the token.
    hit_slots: &'a [i32],
}

/// Replays one step. Returns the ops that ran, the slot of every lane, and the lanes that missed.
fn replay<'t>(
    kernel: &'t Kernel,
    p: &Params,
    state: &mut State,
    input: &StepInput<'_>,
) -> Result<(Vec<Execution<'t>>, Vec<i32>, Vec<usize>)> {
    let mut run = Replay::new(&kernel.tape, kernel.plan.tile as usize)?;
    run.record_executions();
    let &StepInput { ids, stable, schedule, share_len, hit_slots } = input;
    let k = ids.len();
    // The host blocks are in order, because the cost of a lookup does not depend on its result.
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
        ("shared", i32::from(schedule == Schedule::Shared)),
        ("share_at", 0),
        ("share_len", i32::try_from(share_len.min(k))?),
        ("deferred", i32::from(schedule != Schedule::AtOnce)),
    ];
    for (name, value) in scalars {
        run.set(name, value)?;
    }
    for (name, words) in
        [("header", &mut state.header), ("id", &mut state.id), ("link", &mut state.link)]
    {
        run.bind(name, std::mem::take(words))?;
    }
    run.bind_life("life", std::mem::take(&mut state.lifetime))?;
    run.bind("gm_ids", ids.to_vec())?;
    run.bind("gm_block_table", blocks)?;
    run.bind("gm_valid", vec![0])?;
    run.bind("gm_record", vec![0; record::WORDS])?;
    for name in ["gm_slot", "gm_miss_pos", "gm_miss_id", "gm_miss_slot", "gm_miss_row"] {
        run.bind(name, vec![EMPTY; k])?;
    }
    if schedule == Schedule::Shared {
        run.bind("gm_slot", hit_slots.to_vec())?;
    }
    run.run()?;
    *state = State {
        header: run.take("header")?,
        id: run.take("id")?,
        lifetime: run.take_life("life")?,
        link: run.take("link")?,
    };
    let n = usize::try_from(run.take("gm_record")?[record::TOTAL as usize])?;
    let misses = run.take("gm_miss_pos")?[..n].iter().map(|&at| at as usize).collect();
    Ok((run.take_executions(), run.take("gm_slot")?, misses))
}

impl Counts {
    /// Adds the counts of one step.
    fn add(
        &mut self,
        tape: &Tape,
        phases: &Phases<'_>,
        ran: &[Execution<'_>],
        slots: &[i32],
        misses: &[usize],
    ) {
        self.steps += 1;
        self.hits += (slots.iter().filter(|&&slot| slot >= 0).count() - misses.len()) as f64;
        self.misses += misses.len() as f64;
        for run in ran {
            let n = run.lanes as f64;
            match (run.op.code, phases.of(run.op)) {
                (OpCode::Threshold, _) => self.counts += n,
                (OpCode::Append, Phase::Refresh) => self.early += run.active as f64,
                (OpCode::Age(_), Phase::CollectDead) => self.decays += run.active as f64,
                (OpCode::FindFree(_), _) => self.seeks += n,
                (OpCode::Scatter, Phase::UpdateState)
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
    /// Turns the sums into means per step.
    fn divide(&mut self) {
        let factor = 1.0 / self.counts.steps.max(1) as f64;
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
            *sum *= factor;
        }
        self.work.iter_mut().flatten().flatten().for_each(|work| *work = *work * factor);
    }
}
