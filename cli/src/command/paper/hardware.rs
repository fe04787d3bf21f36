//! Figures that the paper measured on an Ascend 910B, beside models of it and this machine.

use anyhow::{Context, Result};

use super::section::{Quantity, Row, Section, Table};
use crate::command::bench::{Host, matching, model};
use crate::command::estimate::constants::Constants;
use crate::command::estimate::points::{PointRow, points};
use crate::synth::{CONTEXT, Synth};

/// Timed steps of a measurement of matching times.
const STEPS: usize = 200;
/// Two geometries (K, S), and how many times as long as the first the second one takes in the paper.
type Growth = ((usize, u32), (usize, u32), f64);
/// The growth that the paper states in appendix "Vectorized Hash Matching".
const GROWTH: [Growth; 2] =
    [((256, 4096), (2048, 4096), 58.6 / 46.0), ((512, 512), (512, 8192), 61.9 / 38.6)];

/// Compares the model of a transfer with the paper's bandwidths and speedups.
pub fn transfer() -> Result<Section> {
    const NAMES: [&str; 3] = ["S1, GB/s", "S2, GB/s", "S3, GB/s"];
    let published = model::published()?;
    let keys = ["B", "reuse, %"];
    let mut bandwidths = Table::new("Effective bandwidth, contiguous hits", &keys);
    let mut speedups = Table::new("Speedup of S3", &keys);
    for row in &published.rows {
        let key = || [row.requests.to_string(), row.reuse.to_string()];
        let figure = |at: usize| {
            Quantity::percent(NAMES[at], 1).figure(Some(row.paper_gbs[at]), row.model_gbs[at])
        };
        bandwidths.row(key(), (0..3).map(figure).collect());
        let speedup = |name, at: usize| {
            let ratio = |gbs: [f64; 3]| gbs[2] / gbs[at];
            Quantity::percent(name, 2).figure(Some(ratio(row.paper_gbs)), ratio(row.model_gbs))
        };
        speedups.row(key(), vec![speedup("S3 : S1", 0), speedup("S3 : S2", 1)]);
    }
    let [s1, s2, s3] = published.rms_percent;
    let model::Model { cores, t0_us, row_us, link_gbs, .. } = model::Model::new(model::PAPER_CORES);
    let text = vec![
        "Figures \"H2D bandwidth gains\" and \"Effective H2D bandwidth\", and the table of appendix \"H2D Core-Binding \
         Strategies\". **The figures of here are from a model, not measured.** It takes the number of rows of each core from \
         the operator's own code for the three strategies."
            .into(),
        format!(
            "Fitted to this table: {cores} cores, {t0_us} us per core and {row_us} us per row, a link of {link_gbs} GB/s. Root mean \
             square of the differences: S1 {s1:.1} %, S2 {s2:.1} %, S3 {s3:.1} %. The paper does not state where its hits are; \
             with scattered hits S2 would be nearly as fast as S3 (`avsg bench transfer`)."
        ),
    ];
    let label = |row: &Row| format!("{}/{}", row.keys[0], row.keys[1]);
    let chart = |title: &str, at: usize| {
        bandwidths.chart(title, at, |row| row.keys[1] != "0" && row.keys[1] != "50", label)
    };
    let charts = vec![
        chart("S2 by B/reuse", 1)?,
        chart("S3 by B/reuse", 2)?,
        speedups.chart("S3 : S2 by B/reuse", 1, |row| row.keys[1] == "75", label)?,
    ];
    let title = "Transfer with three strategies";
    Ok(Section { name: "transfer", title, text, tables: vec![bandwidths, speedups], charts })
}

/// Compares the cost model, and with `measure` this machine, with the paper's matching times.
pub fn matching_times(measure: bool) -> Result<Section> {
    let rows = points(&Constants::default())?;
    let mut times = Table::new("Times of a 910B by the cost model", &["figure", "K", "S"]);
    for PointRow { what, k, slots, paper_us, model_us, .. } in &rows {
        let time = Quantity::percent("time, us", 1).figure(Some(*paper_us), *model_us);
        times.row([(*what).to_owned(), k.to_string(), slots.to_string()], vec![time]);
    }
    let at = |what: &str, k: usize| {
        let row = rows.iter().find(|row| row.what == what && row.k == k);
        row.with_context(|| format!("the model has no point {what}, K = {k}"))
    };
    let mut ratios =
        Table::new("Dual pointer : vectorised matching, S = K", &["K", "figure of here"]);
    let speedup = Quantity::percent("ratio", 2);
    for k in [256, 2048] {
        let (scalar, vector) = (at("dual pointer", k)?, at("Stage One", k)?);
        let ratio = speedup
            .figure(Some(scalar.paper_us / vector.paper_us), scalar.model_us / vector.model_us);
        ratios.row([k.to_string(), "model of a 910B".into()], vec![ratio]);
    }
    let mut text = vec![
        "Figure \"Stage One matching latency\" and the latency of appendix \"Max Lifetime Ablation\". **The times of a 910B are \
         from the cost model of `avsg estimate`, not measured**; docs/cost-model.md says how far it can be trusted, and what \
         of the paper's times it does not explain."
            .into(),
    ];
    let mut tables = vec![times];
    if measure {
        let host = Host::detect();
        text.push(format!(
            "**Ratios of {} are measured**, as medians of {STEPS} steps on the synthetic workload with gamma 0.8 and mu 0.5.",
            host.cpu
        ));
        for (k, paper) in [(256, Some(256)), (512, None), (1024, None), (2048, Some(2048))] {
            let stated = match paper {
                Some(k) => Some(at("dual pointer", k)?.paper_us / at("Stage One", k)?.paper_us),
                None => None,
            };
            let row = matching_row(k, k as u32)?;
            let ratio = speedup.figure(stated, row.dual_pointer_us / row.median_us);
            ratios.row([k.to_string(), "measured on this machine".into()], vec![ratio]);
        }
        let mut growth = Table::new("Growth of the matching time on this machine", &["from", "to"]);
        for (from, to, paper) in GROWTH {
            let [before, after] = [matching_row(from.0, from.1)?, matching_row(to.0, to.1)?];
            let name = |(k, slots): (usize, u32)| format!("K = {k}, S = {slots}");
            let ratio = speedup.figure(Some(paper), after.median_us / before.median_us);
            growth.row([name(from), name(to)], vec![ratio]);
        }
        tables.extend([ratios, growth]);
    } else {
        text.push(
            "`avsg paper --measure` adds the ratios of this machine, which no two runs give alike."
                .into(),
        );
        tables.push(ratios);
    }
    let title = "Matching";
    Ok(Section { name: "matching", title, text, tables, charts: Vec::new() })
}

/// Measures the matching times of the paper's table at a geometry.
fn matching_row(k: usize, slots: u32) -> Result<matching::Row> {
    let steps = STEPS + matching::WARM_UP;
    let trace = Synth { gamma: 0.8, mu: 0.5, k, steps, seed: 1, context: CONTEXT }.trace()?;
    matching::with_the_papers_table(&trace, slots)
}
