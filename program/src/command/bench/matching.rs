//! `avsg bench match` measures the time of Stage One beside other ways to match, on the same steps.

use std::borrow::Cow;
use std::hint::black_box;
use std::time::Instant;

use crate::baseline::{ExactLru, Matched, PreviousStep, count_operator_hits};
use anyhow::Result;
use avsg::cpu::machine::Machine;
use avsg::cpu::standalone_table::StandaloneTable;
use avsg::device::params::{Lifetime, Params};
use avsg::engine::MachineChoice;
use clap::Args;
use serde_json::json;

use super::workload::Workload;
use super::{host, race, short, table};
use crate::checks::{in_range, require};
use crate::command::engine_options::{TableOptions, machine};
use crate::command::lifetimes::with_other_rule;
use crate::command::output::{OutputOptions, Page, count};
use crate::stats::us_since;
use crate::turns::{Contender, Turns};

/// Steps that run first and are not timed, because the caches, the branch predictors and the buffer
/// are cold.
const WARM_UP: usize = 20;
/// Steps of one contender's turn: so many that the caches hold its own table for most of the turn.
const TURN: usize = 25;

#[derive(Args, Debug)]
#[command(
    mut_arg("lifetime", |rule| rule.help("Lifetime rule: constant:L (least recently used; L 0 to 127, paper from 1), or \
        learned (each request learns which slots to keep; wide only) [default: wide both learned and constant:127, \
        paper constant:16]")),
    after_help = "All contenders run the same steps in one run, in turns of 25 steps, so that noise affects all of \
                  them alike. The ids of a token are shuffled. The first 20 steps are not timed. A time is that up to \
                  the list of misses; the rule learned learns after it. Compare only ratios within one run."
)]
pub struct Options {
    #[command(flatten)]
    workload: Workload,
    #[command(flatten)]
    table: TableOptions,
    /// Vector machine that runs the kernels; auto is the fastest that the CPU has
    #[arg(long, default_value = "auto", value_parser = machine())]
    machine: MachineChoice,
    /// Steps to time, 1 to 1000000; fewer if the trace is shorter
    #[arg(long, value_name = "N", default_value_t = 1000)]
    steps: usize,
    #[command(flatten)]
    output: OutputOptions,
}

/// A contender; the operator also has its geometry. A step gives each id of one token a slot and lists the misses,
/// and then, in a part of its own, learns from the step if its rule is learned.
type Entry = (Option<Params>, Contender<'static>);

impl Options {
    /// Returns the contenders: the operator with each rule, the same with one lane at a time, and the others.
    fn line_up(&self, k: usize) -> Result<Vec<Entry>> {
        let params = self.table.params(k, 1, self.workload.slots, 0)?;
        let other_rule = self.table.is_rule_open().then(|| with_other_rule(params));
        let own = |what: &str, params: &Params, machine| -> Result<Entry> {
            let mut table = StandaloneTable::new(params)?;
            let learns = params.lifetime == Lifetime::Learned;
            let step = move |ids: &[i32], us: &mut [f64]| {
                let start = Instant::now();
                black_box(table.stage_one(machine, black_box(ids), 1, -1));
                us[0] = us_since(start);
                if learns {
                    let start = Instant::now();
                    table.learn();
                    us[1] = us_since(start);
                }
                Ok(())
            };
            let name = format!("AVSG, {}{what}", params.lifetime);
            Ok((Some(*params), Contender::new(name, vec!["", "learning"], step)))
        };
        let machine = Machine::find(self.machine)?;
        let mut all = vec![own("", &params, machine)?];
        all.extend(other_rule.map(|params| own("", &params, machine)).transpose()?);
        let emu = Machine::find(MachineChoice::Emu)?;
        all.push((None, own(", one lane at a time", &params, emu)?.1));
        let mut lru = ExactLru::new(self.workload.slots as usize)?;
        all.push(other("exact LRU by a linked list", move |ids, out| lru.step(ids, out)));
        let mut merge = PreviousStep::new(k)?;
        all.push(other("the step before, by sort and merge", move |ids, out| merge.step(ids, out)));
        Ok(all)
    }
}

fn other(what: &str, mut step: impl FnMut(&[i32], &mut Matched) + 'static) -> Entry {
    let mut out = Matched::default();
    let step = move |ids: &[i32]| {
        step(black_box(ids), &mut out);
        black_box(&out);
        Ok(())
    };
    (None, Contender::timed(what, step))
}

pub fn run(options: &Options) -> Result<()> {
    options.output.check(options.workload.path())?;
    in_range("--steps", options.steps, 1..=1_000_000, "choose 1000, for example")?;
    let trace = options.workload.load(options.steps + WARM_UP)?;
    let limit =
        format!("it must be more than {WARM_UP}, because the first {WARM_UP} are not timed");
    let is_long = trace.steps > WARM_UP;
    require(is_long, "trace steps", trace.steps, limit, "record a longer trace")?;
    let (params, mut contenders): (Vec<_>, Vec<_>) = options.line_up(trace.k)?.into_iter().unzip();
    let steps = trace.steps - WARM_UP;
    let turns = Turns { warm_up: WARM_UP, steps, turn: TURN, settle: 0 };
    let ids = |step| Cow::Borrowed(trace.row(step, 0));
    let (times, disturbance) = race("match", &turns, &mut contenders, ids)?;
    let machine = Machine::find(MachineChoice::Auto)?;
    let (workload, slots) = (options.workload.name(), options.workload.slots);
    let mut page = Page::default();
    let own = times[0][0].p50;
    let [lru, merge] = [2, 1].map(|back| short(times[times.len() - back][0].p50 / own));
    page.text(format!(
        "One token matches in {} us: {lru} times as fast as exact LRU by a linked list, {merge} times as fast as sort \
         and merge.",
        short(own)
    ));
    let mut rows = Vec::new();
    for ((contender, params), times) in contenders.iter().zip(params).zip(times) {
        let learns = params.is_some_and(|p| p.lifetime == Lifetime::Learned);
        let hits = params.map(|p| count_operator_hits(&trace, &p, machine)).transpose()?;
        let us = times[0];
        rows.push(json!({
            "what": contender.name,
            "median_us": us.p50,
            "first_decile_us": us.p10,
            "ninth_decile_us": us.p90,
            // The median divided by that of the operator.
            "ratio": us.p50 / own,
            "learn_us": learns.then(|| times[1].p50),
            "hit_rate": hits.and_then(|hits| hits.percent()),
        }));
    }
    let columns =
        "what | median, us | first decile | ninth decile | x AVSG | hits, % | learning, us";
    let keys = "what median_us first_decile_us ninth_decile_us ratio hit_rate learn_us";
    page.table(&table(columns, keys, &rows));
    let ((machine, words), k) = (host(), trace.k);
    let timed = count(steps, "step");
    page.text(format!("measured  {words}, {workload}: {timed}, K = {k}, S = {slots}"));
    page.text(format!("times     {}", disturbance.line()));
    let report = json!({
        "machine": machine,
        "workload": workload,
        "k": k,
        "slots": slots,
        "steps": steps,
        "disturbance": disturbance,
        "rows": rows,
    });
    options.output.write(&report, || page)
}
