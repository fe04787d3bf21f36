//! Figures that the paper measured on an Ascend 910B, beside models of it.

use anyhow::{Context, Result};
use avsg_linker::ascend::soc::OF_THE_PAPER;

use super::section::{Quantity, Section, Table};
use crate::estimate::points::points;
use crate::estimate::stage_two::strategies_gbs;
use crate::published::TRANSFERS;
use avsg_cli::constants::{Constants, Name};

/// Compares the model of a transfer with the paper's bandwidths and speedups.
pub fn transfer() -> Section {
    let c = Constants::default();
    let names = ["S1, GB/s", "S2, GB/s", "S3, GB/s"];
    let keys = ["B", "reuse, %"];
    let mut bandwidths = Table::new("Effective bandwidth, contiguous hits", &keys);
    let mut speedups = Table::new("Speedup of S3", &keys);
    for (requests, reuse, paper) in TRANSFERS {
        let key = || [requests.to_string(), reuse.to_string()];
        let model = strategies_gbs(&c, requests, reuse, false);
        let rate = |at: usize| Quantity::percent(names[at], 1).figure(paper[at], model[at]);
        bandwidths.row(key(), (0..3).map(rate).collect());
        let speedup = |name, at: usize| {
            Quantity::percent(name, 2).figure(paper[2] / paper[at], model[2] / model[at])
        };
        speedups.row(key(), vec![speedup("S3 : S1", 0), speedup("S3 : S2", 1)]);
    }
    let [s1, s2, s3] = [0, 1, 2].map(|at| bandwidths.rms(at));
    let scattered = strategies_gbs(&c, 8, 75, true);
    let text = vec![
        "Figures \"H2D bandwidth gains\" and \"Effective H2D bandwidth\", and the table of appendix \"H2D Core-Binding \
         Strategies\". **The figures of here are from a model, not measured.** It takes the number of rows of each core from \
         the operator's own code for the three strategies."
            .into(),
        format!(
            "Fitted to this table: {} cores, {} us per core and {} us per row, a link of {} GB/s. Root mean \
             square of the differences: S1 {s1:.1} %, S2 {s2:.1} %, S3 {s3:.1} %. The paper does not state where its hits are; \
             with scattered hits S2 would be nearly as fast as S3 (S3 : S2 is {:.2} at B = 8 and 75 % reuse).",
            OF_THE_PAPER.cores,
            c.get(Name::H2dStart),
            c.get(Name::H2dRow),
            c.get(Name::H2dLink),
            scattered[2] / scattered[1]
        ),
    ];
    Section { title: "Transfer with three strategies", text, tables: vec![bandwidths, speedups] }
}

/// Compares the cost model with the paper's matching times.
pub fn matching_times() -> Result<Section> {
    let rows = points(&Constants::default())?;
    let mut times = Table::new("Times of a 910B by the cost model", &["figure", "K", "S"]);
    for row in &rows {
        let time = Quantity::percent("time, us", 1).figure(row.paper_us, row.model_us);
        let keys = [row.what.to_owned(), row.k.to_string(), row.slots.to_string()];
        times.row(keys, vec![time]);
    }
    let mut ratios = Table::new("Dual pointer : vectorised matching, S = K", &["K"]);
    for k in [256, 2048] {
        let at = |what: &str| {
            let row = rows.iter().find(|row| row.what == what && row.k == k);
            row.with_context(|| format!("the model has no point {what}, K = {k}"))
        };
        let (scalar, vector) = (at("dual pointer")?, at("Stage One")?);
        let paper = scalar.paper_us / vector.paper_us;
        let ratio = Quantity::percent("ratio", 2).figure(paper, scalar.model_us / vector.model_us);
        ratios.row([k.to_string()], vec![ratio]);
    }
    let text = vec![
        "Figure \"Stage One matching latency\" and the latency of appendix \"Max Lifetime Ablation\". **The times of a 910B are \
         from the cost model of `avsg-research estimate`, not measured**; research/docs/cost-model.md says how far it can be \
         trusted, and what of the paper's times it does not explain. `avsg bench match --table paper` measures the ratios on \
         a machine."
            .into(),
    ];
    Ok(Section { title: "Matching", text, tables: vec![times, ratios] })
}
