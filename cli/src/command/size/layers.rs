//! The layers of a trace, which are measured one by one and counted together.

use anyhow::Result;
use avsg::cpu::machine::Machine;
use avsg::device::params::Params;
use serde::Serialize;

use crate::baseline::{HitCount, LruCurve, count_operator_hits};
use crate::command::output;
use crate::trace::{Repeats, Trace};

/// One trace for each layer, all of one shape, and their hits with exact LRU.
pub struct Layers {
    traces: Vec<Trace>,
    curves: Vec<LruCurve>,
}

/// The hits of all layers together, and the worst one if there are several.
pub struct Hits {
    pub all: HitCount,
    pub worst: Option<WorstLayer>,
}

/// The layer with the lowest hit rate.
#[derive(Serialize)]
pub struct WorstLayer {
    pub layer: usize,
    pub hit_rate: f64,
}

/// How much reuse the selections of a trace leave to a buffer, in percent of the ids that are selected
/// after the first step.
#[derive(Serialize)]
pub struct Friendliness {
    /// Ids that no buffer can hold: no step selected them before, or their row was rewritten since.
    pub first_time: f64,
    /// The hit rate that no buffer can surpass, 100 - `first_time`.
    pub ceiling: f64,
    /// Ids that the step before selected, too.
    pub step_before: f64,
}

impl Layers {
    /// Computes the hits with exact LRU of one trace or more.
    pub fn new(traces: Vec<Trace>) -> Self {
        let bar = output::progress(traces.len(), "exact LRU");
        let curve = |trace| {
            bar.inc(1);
            LruCurve::of(trace)
        };
        let curves = traces.iter().map(curve).collect();
        bar.finish_and_clear();
        Self { traces, curves }
    }

    /// Returns the first layer, which has the shape of all.
    pub fn first(&self) -> &Trace {
        &self.traces[0]
    }

    pub fn len(&self) -> usize {
        self.traces.len()
    }

    /// Returns the hits of exact LRU with `slots` slots.
    pub fn lru(&self, slots: usize) -> HitCount {
        sum(self.curves.iter().map(|curve| curve.count(slots)))
    }

    /// Returns the smallest buffer that has all hits that exact LRU can have.
    pub fn largest_distance(&self) -> usize {
        self.curves.iter().map(LruCurve::largest_distance).max().unwrap_or(0)
    }

    /// Runs every layer on an empty table.
    pub fn measure(&self, params: &Params, machine: Machine) -> Result<Hits> {
        let count = |trace| Ok(count_operator_hits(trace, params, machine)?);
        let counts = self.traces.iter().map(count).collect::<Result<Vec<_>>>()?;
        let rates = counts
            .iter()
            .enumerate()
            .filter_map(|(layer, count)| Some(WorstLayer { layer, hit_rate: count.percent()? }));
        let worst = rates.min_by(|a, b| a.hit_rate.total_cmp(&b.hit_rate));
        Ok(Hits { all: sum(counts.iter().copied()), worst: worst.filter(|_| self.len() > 1) })
    }

    /// Returns the mean misses of a step after the first in one layer; `None` if no such step selects
    /// an id.
    pub fn misses_per_step(&self, count: &HitCount) -> Option<f64> {
        count.percent().map(|_| self.per_step(count.misses()))
    }

    /// Returns the mean number of ids that a step after the first selects in one layer; `None` if no
    /// such step selects an id.
    pub fn selected_per_step(&self) -> Option<f64> {
        let all = self.lru(0);
        all.percent().map(|_| self.per_step(all.selected - all.first_selected))
    }

    /// Returns the reuse in all layers; `None` if no step after the first selects an id.
    pub fn friendliness(&self) -> Option<Friendliness> {
        let all = self.lru(self.largest_distance());
        let ceiling = all.percent()?;
        let repeated: u64 = self.traces.iter().map(from_the_step_before).sum();
        let step_before = 100.0 * repeated as f64 / (all.selected - all.first_selected) as f64;
        Some(Friendliness { first_time: 100.0 - ceiling, ceiling, step_before })
    }

    /// Returns the repeats within the rows of all layers, and the place of the first one in its layer.
    pub fn repeats(&self) -> Repeats {
        self.traces.iter().map(Trace::repeats).fold(Repeats::default(), |all, one| Repeats {
            ids: all.ids + one.ids,
            rows: all.rows + one.rows,
            first: all.first.or(one.first),
        })
    }

    fn per_step(&self, ids: u64) -> f64 {
        ids as f64 / ((self.first().steps - 1) * self.len()) as f64
    }
}

fn sum(counts: impl Iterator<Item = HitCount>) -> HitCount {
    counts.fold(HitCount::default(), |all, one| HitCount {
        selected: all.selected + one.selected,
        hits: all.hits + one.hits,
        first_selected: all.first_selected + one.first_selected,
        first_hits: all.first_hits + one.first_hits,
    })
}

/// Counts the selected ids that the step before selected, too, without those whose row was rewritten
/// since.
fn from_the_step_before(trace: &Trace) -> u64 {
    let mut stale = trace.stale().into_iter().peekable();
    // The last step that selected each id, counted from 1; 0 for none.
    let mut last: Vec<u32> = vec![0; trace.largest_id().map_or(0, |id| id as usize + 1)];
    let mut repeated = 0;
    let per_step = trace.tokens * trace.k;
    for (before, ids) in (0..).zip(trace.ids.chunks_exact(per_step)) {
        let start = before as usize * per_step;
        for (at, &id) in (start..).zip(ids).filter(|&(_, &id)| id >= 0) {
            let rewritten = stale.next_if_eq(&at).is_some();
            repeated += u64::from(before > 0 && last[id as usize] == before && !rewritten);
        }
        ids.iter().filter(|&&id| id >= 0).for_each(|&id| last[id as usize] = before + 1);
    }
    repeated
}
