//! The end-to-end serving table, beside the model of `avsg serve`.

use anyhow::Result;

use super::section::{Chart, Quantity, Row, Section, Table};
use avsg_cli::command::serve::{self, Column, Measured};

/// (figure, digits, measured, modelled) of each row; the memory is compared in percentage points.
type Line = (&'static str, usize, fn(&Measured) -> f64, fn(&Column) -> f64);
const LINES: [Line; 7] = [
    ("TTFT, s", 2, |m| m.ttft_s, |c| c.outcome.ttft_s),
    ("TPOT, ms", 1, |m| m.tpot_ms, |c| c.outcome.tpot_ms),
    ("TPOT, 99th percentile, ms", 1, |m| m.tpot_p99_ms, |c| c.outcome.tpot_p99_ms),
    ("E2E, s", 1, |m| m.e2e_s, |c| c.outcome.e2e_s),
    ("output tok/s", 1, |m| m.output_tok_s, |c| c.outcome.output_tok_s),
    ("requests per second", 2, |m| m.request_rate, |c| c.outcome.request_rate),
    (HBM, 1, |m| m.hbm_percent, |c| c.hbm_mean_percent),
];
const HBM: &str = "HBM, %";

/// Compares the model's figures with the paper's.
pub fn end_to_end() -> Result<Section> {
    let measured = serve::published()?;
    let columns: Vec<_> = measured.iter().map(|m| (m, serve::of_the_paper(m.setting))).collect();
    let mut table = Table::new("End-to-end serving", &["figure"]);
    for (name, decimals, measured, modelled) in LINES {
        let figure = |(paper, here): &(&Measured, Column)| {
            let setting = paper.setting.name();
            let quantity = match name {
                HBM => Quantity { decimals, ..Quantity::points(setting) },
                _ => Quantity::percent(setting, decimals),
            };
            quantity.figure(Some(measured(paper)), modelled(here))
        };
        table.row([name.to_owned()], columns.iter().map(figure).collect());
    }
    let text = vec![
        "Table \"End-to-end cold-start comparison\". **The figures of here are from a discrete-event model, not measured** \
         (`avsg serve`, docs/serving.md)."
            .into(),
        "The model's constants were fitted to nine figures of No Offload and KV Offload: TPOT, output tok/s and requests per \
         second of both, TTFT and E2E of KV Offload, HBM of No Offload. No figure of AVSG was used: its column is a \
         prediction from the paper's hit rate and kernel time."
            .into(),
    ];
    let chart = |row: &Row| {
        let bars = row.figures.iter().map(|figure| (figure.name.to_owned(), figure));
        Chart::new(&row.keys[0], bars)
    };
    let charts = [1, 3, 4].map(|line| chart(&table.rows[line]));
    let charts = charts.into_iter().collect::<avsg::Result<_>>()?;
    Ok(Section { name: "serving", title: "End-to-end serving", text, tables: vec![table], charts })
}
