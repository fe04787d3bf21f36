//! Hit rates: the paper's synthetic workload, and its real requests beside workloads of here.

use anyhow::Result;
use avsg::cpu::machine::Machine;
use avsg::device::params::{Lifetime, Params};
use avsg::engine::MachineChoice;
use avsg::geometry;
use serde::Deserialize;

use super::section::{Figure, Quantity, Row, Section, Table};
use avsg_cli::baseline::{MatcherPolicy, PreviousStep};
use avsg_cli::command::bench::{hits, lifetime, reuse};
use avsg_cli::synth::{CONTEXT, Synth};
use avsg_cli::trace::Trace;

/// Percentage of hits.
const RATE: Quantity = Quantity::points("hit rate, %");
/// The lifetimes L of the paper's ablation.
const LIFETIMES: [i8; 6] = [1, 2, 4, 8, 16, 32];
/// The steps of the synthetic workload that stands for the paper's requests. All of its 16384 ids have
/// been selected after about 70 steps, and then it is another workload.
const STEPS: usize = 64;
/// The share of the ids outside of the previous step's that an earlier step selected. The paper's
/// synthetic workload has 0.5, 0.7 and 0.9.
const MU: f64 = 0.5;
/// Requests of the synthetic workload, which have different seeds.
const REQUESTS: u64 = 4;

/// The paper's figures for the first decode iteration.
#[derive(Deserialize)]
struct ColdStart {
    reuse: Vec<ColdReuse>,
}

#[derive(Deserialize)]
struct ColdReuse {
    drafts: usize,
    percent: f64,
}

/// The requests that a section runs on.
pub struct Workload {
    /// Name in the tables.
    name: String,
    /// Name in the titles of charts.
    short_name: String,
    /// One trace per request, with one token per step.
    requests: Vec<Trace>,
}

impl Workload {
    /// Returns the synthetic workload with the paper's adjacent-step reuse.
    pub fn synthetic() -> Result<Self> {
        let percent = lifetime::Published::read()?.previous_step_percent;
        let request = |seed| {
            let gamma = percent / 100.0;
            Synth { gamma, mu: MU, k: 2048, steps: STEPS, seed, context: CONTEXT }.trace()
        };
        let requests = (1..=REQUESTS).map(request).collect::<avsg::Result<_>>()?;
        let name =
            format!("synthetic requests with {percent} % adjacent-step reuse, mu {MU}, K = 2048");
        Ok(Self { name, short_name: "synthetic requests".into(), requests })
    }

    /// Returns a recorded trace as one request.
    pub fn recorded(name: &str, trace: &Trace) -> Self {
        let short_name = format!("trace {name}");
        let name = format!("recorded trace {name}, K = {}", trace.k);
        Self { name, short_name, requests: vec![trace.as_mtp0()] }
    }

    /// Returns K.
    fn k(&self) -> u32 {
        self.requests.first().map_or(0, |trace| trace.k as u32)
    }

    /// Returns the mean of a percentage over the requests.
    fn mean(&self, percent: impl Fn(&Trace) -> Result<f64>) -> Result<f64> {
        let sum: f64 = self.requests.iter().map(percent).sum::<Result<f64>>()?;
        Ok(sum / self.requests.len() as f64)
    }

    /// Returns the hit rate of the paper's table in percent, with `times` * K slots (rounded up to a
    /// power of two) and the lifetime `l`. The first quarter of the steps fills the buffer.
    fn hit_rate(&self, times: u32, l: i8) -> Result<f64> {
        let (k, slots) = (self.k(), slots(self.k(), times));
        let params = Params { lifetime: Lifetime::Constant(l), ..Params::paper(k, 1, slots) };
        geometry::check(&params)?;
        let machine = Machine::find(MachineChoice::Auto)?;
        self.mean(|trace| {
            let steps = hits::of_table(trace, &params, machine)?;
            Ok(hits::percent(&steps[trace.steps / 4..]))
        })
    }

    /// Returns the percentage of ids that the previous step selected, too.
    fn adjacent(&self) -> Result<f64> {
        self.mean(|trace| {
            let mut policy = MatcherPolicy::new(PreviousStep::new(trace.k)?);
            Ok(hits::percent(&hits::of_policy(trace, &mut policy)[trace.steps / 4..]))
        })
    }

    /// Returns the reuse of a first step with `tokens` tokens in percent, over all groups of consecutive
    /// rows that make a step.
    fn cold_start(&self, tokens: usize) -> Result<f64> {
        let (k, slots) = (self.k(), slots(self.k(), 4));
        let params = Params::paper(k, tokens as u32, slots);
        geometry::check(&params)?;
        let machine = Machine::find(MachineChoice::Auto)?;
        self.mean(|trace| {
            let steps = trace.in_steps_of(tokens)?;
            let mut all = Vec::with_capacity(steps.steps);
            for ids in steps.ids.chunks_exact(tokens * trace.k) {
                let step = Trace::new(ids.to_vec(), None, [1, tokens, trace.k])?;
                all.extend(hits::of_table(&step, &params, machine)?);
            }
            Ok(hits::percent(&all))
        })
    }
}

fn slots(k: u32, times: u32) -> u32 {
    (k * times).next_power_of_two().max(64)
}

/// Compares the paper's table on the paper's synthetic workload, with `seeds` seeds.
pub fn synthetic(seeds: u64) -> Result<Section> {
    let mut table = Table::new("Reuse rate of the paper's table, L = 8", &["gamma", "mu", "S"]);
    for cell in reuse::published()? {
        let keys = [cell.gamma.to_string(), cell.mu.to_string(), cell.slots.to_string()];
        let here = reuse::of_the_papers_table(&cell, seeds)?;
        table.row(keys, vec![RATE.figure(cell.reuse, here)]);
    }
    let mut gains = Table::new(
        "Gain of 8192 slots over adjacent-step reuse in percentage points, mu = 0.9",
        &["adjacent-step reuse, %"],
    );
    for row in table.rows.iter().filter(|row| row.keys[1] == "0.9" && row.keys[2] == "8192") {
        let gamma = 100.0 * row.keys[0].parse::<f64>()?;
        let Figure { paper, here, .. } = row.figures[0];
        let gain = Quantity::points("gain").figure(paper.map(|rate| rate - gamma), here - gamma);
        gains.row([format!("{gamma:.0}")], vec![gain]);
    }
    let charts = ["4096", "8192"].map(|slots| {
        let title = format!("Reuse by gamma/mu, S = {slots}");
        let label = |row: &Row| format!("{}/{}", row.keys[0], row.keys[1]);
        table.chart(&title, 0, |row| row.keys[2] == slots, label)
    });
    let text = vec![
        "Appendix \"Cache Reuse\" and table \"Cache reuse\", synthetic rows. The command generates the workload and replays \
         the paper's table, bit for bit. The paper does not state its multipliers, its seeds, which steps it counts, and \
         what happens when the context has no new id left."
            .into(),
        format!(
            "{seeds} seeds, K = 2048, 16384 ids of context, steps 4 to 14. Root mean square of the differences: {:.2} percentage points.",
            table.rms(0)
        ),
    ];
    let charts = charts.into_iter().collect::<avsg::Result<_>>()?;
    let title = "Reuse on the synthetic workload";
    Ok(Section { name: "reuse", title, text, tables: vec![table, gains], charts })
}

/// Compares hit rates, the lifetime ablation and the cold start of the paper's requests with workloads
/// of here.
pub fn requests(workloads: &[Workload]) -> Result<Section> {
    let published = lifetime::Published::read()?;
    let cold: ColdStart = serde_json::from_str(include_str!("../published/cold_start.json"))?;
    let mut tables = Vec::new();
    let mut charts = Vec::new();
    for workload in workloads {
        let mut rates = Table::new(format!("Hit rates, L = 8; {}", workload.name), &["buffer"]);
        for (name, paper, here) in [
            ("previous step", published.previous_step_percent, workload.adjacent()?),
            ("2 K slots", published.slots_4096_percent, workload.hit_rate(2, 8)?),
            ("4 K slots", published.percent_at(8.0).unwrap_or(f64::NAN), workload.hit_rate(4, 8)?),
        ] {
            rates.row([name.into()], vec![RATE.figure(Some(paper), here)]);
        }
        let title = format!("Lifetime ablation, 4 K slots; {}", workload.name);
        let mut ablation = Table::new(title, &["L"]);
        for l in LIFETIMES {
            let paper = published.percent_at(f64::from(l));
            ablation.row([l.to_string()], vec![RATE.figure(paper, workload.hit_rate(4, l)?)]);
        }
        let title = format!("Reuse in the first step, 4 K slots; {}", workload.name);
        let mut start = Table::new(title, &["draft tokens"]);
        for ColdReuse { drafts, percent } in &cold.reuse {
            let here = workload.cold_start(drafts + 1)?;
            let reuse = Quantity::points("reuse, %").figure(Some(*percent), here);
            start.row([drafts.to_string()], vec![reuse]);
        }
        let label = |row: &Row| row.keys[0].clone();
        let title = format!("Hit rate over L, {}", workload.short_name);
        charts.push(ablation.chart(&title, 0, |_| true, label)?);
        let title = format!("First step over the drafts, {}", workload.short_name);
        charts.push(start.chart(&title, 0, |_| true, label)?);
        tables.extend([rates, ablation, start]);
    }
    let text = vec![
        "Table \"Cache reuse\", real row, and appendices \"Max Lifetime Ablation\" and \"Cache Reuse\" (cold-start MTP protocol). \
         **The paper's 2000 requests are not public, so these are other requests**: read the differences as those of \
         workloads, and the shapes over L and over the number of drafts as what can be compared. The paper's table is \
         replayed bit for bit. The paper gives its figures for 4096 and 8192 slots with K = 2048, which are 2 K and 4 K. The \
         first quarter of the steps fills the buffer and is not counted; the first step is counted alone in the cold \
         start, over all groups of consecutive rows that make a step."
            .into(),
        "On the synthetic requests the paper's table loses hits with a larger L. Exact LRU and the `wide` table do not \
         (`avsg bench lifetime --steps 64 --slots 8192`)."
            .into(),
    ];
    let title = "Hit rates, lifetimes and cold start of real requests";
    Ok(Section { name: "requests", title, text, tables, charts })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_trace_has_a_table_of_each_kind() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/nomicon-4k-k256.npz");
        let workload = Workload::recorded("nomicon", &Trace::read(path).unwrap());
        let section = requests(&[workload]).unwrap();
        let here = |table: &Table| table.rows.iter().map(|r| r.figures[0].here).collect::<Vec<_>>();
        let [rates, ablation, start] = [0, 1, 2].map(|table| here(&section.tables[table]));
        assert!(rates[0] < rates[1] && rates[1] < rates[2] && rates[2] < 100.0, "{rates:?}");
        assert_eq!((ablation.len(), ablation[3]), (6, rates[2]), "L = 8 is in both tables");
        assert!(ablation[0] < ablation[3], "{ablation:?}");
        assert!(start[0] == 0.0 && start.is_sorted(), "{start:?}");
        assert_eq!(section.charts.len(), 2);
    }

    #[test]
    fn a_trace_whose_buffer_would_be_too_large_or_that_has_no_step_of_four_tokens_is_refused() {
        let trace = |rows: usize, k: usize| {
            let ids = (0..rows).flat_map(|_| 0..k as i32).collect();
            Workload::recorded("own", &Trace::new(ids, None, [rows, 1, k]).unwrap())
        };
        let error = |workload| requests(&[workload]).err().unwrap().to_string();
        assert!(error(trace(5, 16_384)).contains("65536"));
        assert!(error(trace(3, 16)).contains("tokens per step is 4"));
        let same = requests(&[trace(8, 16)]).unwrap();
        let [rates, start] = [0, 2].map(|table| same.tables[table].rows.last().unwrap());
        assert_eq!((rates.figures[0].here, start.figures[0].here), (100.0, 75.0));
    }
}
