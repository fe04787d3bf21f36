//! What the operator hits on the traces, or on the layers of one.

use anyhow::Result;
use avsg::cpu::machine::Machine;
use avsg::device::params::Params;
use serde::Serialize;

use crate::baseline::{HitCount, count_operator_hits};
use crate::command::traces::Traces;

/// The hits of all traces together, and the worst one if there are several.
pub struct Hits {
    pub all: HitCount,
    pub worst: Option<Worst>,
}

/// The trace, or the layer, with the lowest hit rate.
#[derive(Serialize)]
pub struct Worst {
    pub trace: String,
    pub hit_rate: f64,
}

/// Runs every trace on an empty table.
pub fn measure(traces: &Traces, params: &Params, machine: Machine) -> Result<Hits> {
    let count = |trace| Ok(count_operator_hits(trace, params, machine)?);
    let counts = traces.iter().map(count).collect::<Result<Vec<_>>>()?;
    let rates = counts.iter().enumerate().filter_map(|(at, count)| Some((at, count.percent()?)));
    let worst = rates.min_by(|a, b| a.1.total_cmp(&b.1)).filter(|_| counts.len() > 1);
    let worst = worst.map(|(at, hit_rate)| Worst { trace: traces.name(at).to_owned(), hit_rate });
    Ok(Hits { all: counts.into_iter().sum(), worst })
}
