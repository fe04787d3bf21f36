//! Hit rates of the paper's real requests, beside workloads of here.

use std::path::Path;

use anyhow::Result;
use avsg::device::params::{Lifetime, Params};
use avsg_cli::baseline::PreviousStep;
use avsg_cli::synth::{CONTEXT, Synth};
use avsg_cli::trace::Trace;

use super::section::{Quantity, Section, Table};
use crate::hits;
use crate::published::{COLD_START, LIFETIMES, PREVIOUS_STEP, SLOTS_4096};

/// Percentage of hits.
const RATE: Quantity = Quantity::points("hit rate, %");
/// The lifetimes L of the paper's ablation.
const ABLATION: [i8; 6] = [1, 2, 4, 8, 16, 32];
/// The steps of the synthetic workload that stands for the paper's requests. All of its 16384 ids have
/// been selected after about 70 steps, and then it is another workload.
const STEPS: usize = 64;
/// The share of the ids outside of the previous step's that an earlier step selected. The paper's
/// synthetic workload has 0.5, 0.7 and 0.9.
const MU: f64 = 0.5;
/// Requests of the synthetic workload, which have different seeds.
const REQUESTS: u64 = 4;

/// The requests that a section runs on.
pub struct Workload {
    name: String,
    /// One trace per request, with one token per step.
    requests: Vec<Trace>,
}

impl Workload {
    /// Returns the synthetic workload with the paper's adjacent-step reuse.
    pub fn synthetic() -> Result<Self> {
        let request = |seed| {
            let gamma = PREVIOUS_STEP / 100.0;
            Synth { gamma, mu: MU, k: 2048, steps: STEPS, seed, context: CONTEXT }.trace()
        };
        let requests = (1..=REQUESTS).map(request).collect::<avsg::Result<_>>()?;
        let name = format!(
            "synthetic requests with {PREVIOUS_STEP} % adjacent-step reuse, mu {MU}, K = 2048"
        );
        Ok(Self { name, requests })
    }

    /// Returns a recorded trace as one request.
    pub fn recorded(path: &Path, trace: &Trace) -> avsg::Result<Self> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let name = format!("recorded trace {name}, K = {}", trace.k);
        Ok(Self { name, requests: vec![trace.as_mtp0()?] })
    }

    /// Returns the paper's table for `tokens` tokens per step, with `times` * K slots, rounded up to a
    /// power of two.
    fn table(&self, tokens: usize, times: u32) -> Params {
        let k = self.requests.first().map_or(0, |trace| trace.k as u32);
        Params::paper(k, tokens as u32, (k * times).next_power_of_two().max(64))
    }

    /// Returns the mean of a percentage over the requests.
    fn mean(&self, percent: impl Fn(&Trace) -> Result<f64>) -> Result<f64> {
        let sum: f64 = self.requests.iter().map(percent).sum::<Result<f64>>()?;
        Ok(sum / self.requests.len() as f64)
    }

    /// Returns the hit rate in percent with `times` * K slots and the lifetime `l`. The first quarter
    /// of the steps fills the buffer.
    fn hit_rate(&self, times: u32, l: i8) -> Result<f64> {
        let params = Params { lifetime: Lifetime::Constant(l), ..self.table(1, times) };
        self.mean(|trace| Ok(hits::percent(&hits::of_table(trace, &params)?[trace.steps / 4..])))
    }

    /// Returns the percentage of ids that the previous step selected, too.
    fn adjacent(&self) -> Result<f64> {
        self.mean(|trace| {
            let mut policy = PreviousStep::new(trace.k)?;
            Ok(hits::percent(&hits::of_policy(trace, &mut policy)[trace.steps / 4..]))
        })
    }

    /// Returns the reuse of a first step with `tokens` tokens in percent, over all groups of consecutive
    /// rows that make a step.
    fn cold_start(&self, tokens: usize) -> Result<f64> {
        let params = self.table(tokens, 4);
        self.mean(|trace| {
            let mut all = Vec::with_capacity(trace.steps);
            for ids in trace.ids.chunks_exact(tokens * trace.k) {
                let step = Trace::new(ids.to_vec(), None, [1, tokens, trace.k])?;
                all.extend(hits::of_table(&step, &params)?);
            }
            Ok(hits::percent(&all))
        })
    }
}

/// Compares hit rates, the lifetime ablation and the cold start of the paper's requests with workloads
/// of here.
pub fn requests(workloads: &[Workload]) -> Result<Section> {
    let stated = |l: i8| LIFETIMES.iter().find(|rate| rate.0 == l).map(|rate| rate.1);
    let mut tables = Vec::new();
    for workload in workloads {
        let name = &workload.name;
        let mut rates = Table::new(format!("Hit rates, L = 8; {name}"), &["buffer"]);
        for (buffer, paper, here) in [
            ("previous step", Some(PREVIOUS_STEP), workload.adjacent()?),
            ("2 K slots", Some(SLOTS_4096), workload.hit_rate(2, 8)?),
            ("4 K slots", stated(8), workload.hit_rate(4, 8)?),
        ] {
            rates.row([buffer.into()], vec![RATE.figure(paper, here)]);
        }
        let mut ablation = Table::new(format!("Lifetime ablation, 4 K slots; {name}"), &["L"]);
        for l in ABLATION {
            ablation.row([l.to_string()], vec![RATE.figure(stated(l), workload.hit_rate(4, l)?)]);
        }
        let title = format!("Reuse in the first step, 4 K slots; {name}");
        let mut start = Table::new(title, &["draft tokens"]);
        for (drafts, percent) in COLD_START {
            let here = workload.cold_start(drafts + 1)?;
            start.row(
                [drafts.to_string()],
                vec![Quantity::points("reuse, %").figure(percent, here)],
            );
        }
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
        "On the synthetic requests the paper's table loses hits with a larger L. Exact LRU and the `wide` table do not."
            .into(),
    ];
    Ok(Section { title: "Hit rates, lifetimes and cold start of real requests", text, tables })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_whose_buffer_would_be_too_large_is_refused() {
        let trace = |rows: usize, k: usize| {
            let ids = (0..rows).flat_map(|_| 0..k as i32).collect();
            let trace = Trace::new(ids, None, [rows, 1, k]).unwrap();
            Workload::recorded("own".as_ref(), &trace).unwrap()
        };
        let error = requests(&[trace(5, 16_384)]).err().unwrap().to_string();
        assert!(error.contains("65536"), "{error}");
        let same = requests(&[trace(8, 16)]).unwrap();
        let [rates, start] = [0, 2].map(|table| same.tables[table].rows.last().unwrap());
        assert_eq!((rates.figures[0].here, start.figures[0].here), (100.0, 75.0));
    }
}
