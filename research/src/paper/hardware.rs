//! Figures that the paper measured on an Ascend 910B, beside models of it.

use anyhow::{Context, Result};

use super::section::{Quantity, Row, Section, Table};
use crate::estimate::constants::Constants;
use crate::estimate::points::{PointRow, points};
use avsg_cli::command::bench::model;

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

/// Compares the cost model with the paper's matching times.
pub fn matching_times() -> Result<Section> {
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
    let text = vec![
        "Figure \"Stage One matching latency\" and the latency of appendix \"Max Lifetime Ablation\". **The times of a 910B are \
         from the cost model of `avsg-research estimate`, not measured**; research/docs/cost-model.md says how far it can be trusted, and \
         what of the paper's times it does not explain. `avsg bench match --table paper` measures the ratios on this machine."
            .into(),
    ];
    let mut tables = vec![times];
    tables.push(ratios);
    let title = "Matching";
    Ok(Section { name: "matching", title, text, tables, charts: Vec::new() })
}
