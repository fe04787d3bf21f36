//! The output of `avsg serve`.

use serde::Serialize;

use super::calibration::Fitted;
use super::deployment::{Deployment, Load, Setting};
use super::measured::Measured;
use super::outcome::Outcome;
use crate::command::output::{self, Cell, Page, Table};

/// The note that every table carries.
pub const LABEL: &str = "model, not measured";

/// The results.
#[derive(Serialize)]
pub struct Report {
    pub label: &'static str,
    pub seeds: u64,
    pub deployment: Deployment,
    pub load: Load,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibration>,
    pub settings: [Column; 3],
}

/// Constants that were computed from measured figures.
#[derive(Serialize)]
pub struct Calibration {
    pub rounds: usize,
    pub constants: Vec<Fitted>,
}

/// The figures of a setting.
#[derive(Serialize)]
pub struct Column {
    /// The setting.
    pub setting: Setting,
    /// Tokens that a rank has memory for.
    pub capacity_tokens: usize,
    /// Device memory of a rank with device buffers for the mean number of requests.
    pub hbm_mean_percent: f64,
    /// Device memory of a rank with device buffers for the largest number of requests.
    pub hbm_peak_percent: f64,
    /// The modelled figures.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The measured figures, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
}

type Modelled = fn(&Column) -> f64;
type Stated = fn(&Measured) -> f64;

/// (name, decimals, modelled figure, measured figure) of each row.
const ROWS: [(&str, usize, Modelled, Option<Stated>); 13] = [
    ("memory of a rank, tokens", 0, |c| c.capacity_tokens as f64, Some(|m| m.kv_tokens as f64)),
    ("HBM with mean buffers, %", 1, |c| c.hbm_mean_percent, Some(|m| m.hbm_percent)),
    ("HBM with most buffers, %", 1, |c| c.hbm_peak_percent, None),
    ("TTFT, s", 2, |c| c.outcome.ttft_s, Some(|m| m.ttft_s)),
    ("wait for memory, s", 2, |c| c.outcome.wait_s, None),
    ("TPOT, ms", 1, |c| c.outcome.tpot_ms, Some(|m| m.tpot_ms)),
    ("TPOT, 99th percentile, ms", 1, |c| c.outcome.tpot_p99_ms, Some(|m| m.tpot_p99_ms)),
    ("E2E, s", 1, |c| c.outcome.e2e_s, Some(|m| m.e2e_s)),
    ("output tok/s", 1, |c| c.outcome.output_tok_s, Some(|m| m.output_tok_s)),
    ("requests per second", 3, |c| c.outcome.request_rate, Some(|m| m.request_rate)),
    ("decode step, ms", 1, |c| c.outcome.step_ms, None),
    ("requests of a rank, mean", 2, |c| c.outcome.running, None),
    ("requests of a rank, most", 0, |c| c.outcome.running_peak, None),
];

/// Returns the page of a report.
pub fn page(report: &Report) -> Page {
    let mut page = Page::default();
    let Deployment { prefill_instances, decode_instances, ranks, .. } = report.deployment;
    let Load { requests, concurrency, rate, .. } = report.load;
    page.text(format!(
        "{LABEL}: {}, {} of {}; {requests} requests, {concurrency} at a time, {rate} per second; means of {}",
        output::count(prefill_instances, "prefill instance"),
        output::count(decode_instances, "decode instance"),
        output::count(ranks, "rank"),
        output::count(report.seeds as usize, "run"),
    ));
    let Deployment { hit_rate, slots, acceptance, tokens, .. } = report.deployment;
    page.text(format!(
        "AVSG: hit rate {hit_rate:.2} %, S = {slots}; {tokens} tokens per step, of which {:.2} are kept at an acceptance of {acceptance}",
        report.deployment.tokens_per_step()
    ));
    if let Some(calibration) = &report.calibration {
        page.table(constants(calibration));
    }
    let names = report.settings.each_ref().map(|column| column.setting.name());
    let mut table = output::table([LABEL, names[0], names[1], names[2]]);
    for (name, decimals, modelled, measured) in ROWS {
        let cell = |column: &Column| {
            let value = modelled(column);
            let beside = column.measured.as_ref().zip(measured).map(|(m, measured)| measured(m));
            let Some(measured) = beside else { return Cell::number(value, decimals) };
            let difference = output::signed(100.0 * (value / measured - 1.0), 1);
            let shown = format!("{value:.decimals$} ({measured:.decimals$}, {difference} %)");
            Cell::shown(value, shown)
        };
        let [a, b, c] = report.settings.each_ref().map(cell);
        table.add_row([name.into(), a, b, c]);
    }
    page.table(table);
    if report.settings.iter().any(|column| column.hbm_peak_percent > 100.0) {
        page.text(
            "The device memory of the busiest rank does not hold its buffers: limit its requests with --batch.",
        );
    }
    if report.settings.iter().any(|column| column.measured.is_some()) {
        page.text("In brackets: the measured figure, and the model's difference from it.");
    }
    page
}

fn constants(calibration: &Calibration) -> Table {
    let mut table = output::table(["constant", "value", "from", "measured", "modelled"]);
    for fitted in &calibration.constants {
        table.add_row([
            fitted.option.into(),
            Cell::number(fitted.value, 4),
            format!("{}, {}", fitted.setting, fitted.figure).into(),
            Cell::number(fitted.measured, 2),
            Cell::number(fitted.modelled, 2),
        ]);
    }
    table
}
