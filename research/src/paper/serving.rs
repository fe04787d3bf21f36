//! The end-to-end serving table, beside a model of the cluster.

use super::section::{Quantity, Section, Table};
use crate::cluster::simulation::{Figures, mean};
use crate::cluster::{Cluster, Setting};
use crate::published::SERVING;

/// Runs with other random numbers whose figures are averaged.
const SEEDS: u64 = 10;

/// (digits, figure) of each row of [`SERVING`]; the last one is compared in percentage points.
type Figure = (usize, fn(Setting, &Figures) -> f64);
const FIGURES: [Figure; 7] = [
    (2, |_, f| f.ttft_s),
    (1, |_, f| f.tpot_ms),
    (1, |_, f| f.tpot_p99_ms),
    (1, |_, f| f.e2e_s),
    (1, |_, f| f.output_tok_s),
    (2, |_, f| f.request_rate),
    (1, |setting, f| Cluster::PAPER.hbm_percent(setting, f.running)),
];

/// Compares the model's figures with the paper's.
pub fn end_to_end() -> Section {
    let settings = Setting::ALL.map(|setting| (setting, mean(&Cluster::PAPER, setting, SEEDS)));
    let names = ["No Offload", "KV Offload", "AVSG"];
    let mut table = Table::new("End-to-end serving", &["figure"]);
    for ((name, paper), (decimals, here)) in SERVING.into_iter().zip(FIGURES) {
        let points = name.ends_with('%');
        let cell = |at: usize| {
            let (setting, figures) = &settings[at];
            Quantity { name: names[at], decimals, points }
                .figure(paper[at], here(*setting, figures))
        };
        table.row([name.to_owned()], (0..3).map(cell).collect());
    }
    let text = vec![
        "Table \"End-to-end cold-start comparison\". **The figures of here are from a discrete-event model, not measured** \
         (research/README.md)."
            .into(),
        format!(
            "The model's constants were fitted to nine figures of No Offload and KV Offload: TPOT, output tok/s and requests per \
             second of both, TTFT and E2E of KV Offload, HBM of No Offload. No figure of AVSG was used: its column is a \
             prediction from the paper's hit rate and kernel time. In the model a request without offload waits {:.0} s for memory, \
             which explains why its E2E is no better than with KV Offload.",
            settings[0].1.wait_s
        ),
    ];
    Section { title: "End-to-end serving", text, tables: vec![table] }
}
