//! Hit rates on the paper's synthetic workload.

use std::ops::RangeInclusive;

use anyhow::Result;
use avsg::device::params::{Lifetime, Params, Table as Hash};
use avsg_cli::baseline::ExactLru;
use avsg_cli::synth::{CONTEXT, Synth};

use super::section::{Quantity, Section, Table};
use crate::hits::{of_policy, of_table, percent};
use crate::published::{REUSE, SHARES};

/// K of the paper's figures.
const K: u32 = 2048;
/// The steps whose hits are counted; the first step of a trace is 0.
const COUNTED: RangeInclusive<usize> = 4..=14;
/// The number of seeds of the paper's figures.
const SEEDS: u64 = 5;
/// Multipliers of the paper's hash that are no better and no worse than its own, which it does not state.
const OTHERS: Hash = Hash::Paper { a1: 7919, a2: 17 };

/// Hit rates in percent as means over the seeds: of the paper's table, of the same with [`OTHERS`], of `wide` with
/// constant lifetimes, and of exact LRU.
fn rates(gamma: f64, mu: f64, slots: u32) -> Result<[f64; 4]> {
    let paper = Params { lifetime: Lifetime::Constant(8), ..Params::paper(K, 1, slots) };
    let other = Params { table: OTHERS, ..paper };
    let wide = Params { lifetime: Lifetime::Constant(127), ..Params::wide(K, 1, slots) };
    let mut sums = [0.0; 4];
    for seed in 1..=SEEDS {
        let (k, steps) = (K as usize, COUNTED.end() + 1);
        let trace = Synth { gamma, mu, k, steps, seed, context: CONTEXT }.trace()?;
        let all = [
            of_table(&trace, &paper)?,
            of_table(&trace, &other)?,
            of_table(&trace, &wide)?,
            of_policy(&trace, &mut ExactLru::new(slots as usize)?),
        ];
        for (sum, steps) in sums.iter_mut().zip(all) {
            // All steps have K ids, so the share of their sum is the mean of their shares.
            *sum += percent(&steps[COUNTED]) / SEEDS as f64;
        }
    }
    Ok(sums)
}

/// Compares the paper's table with the paper's 18 figures, and `wide` with both.
pub fn synthetic() -> Result<Section> {
    let rate = Quantity::points("hit rate, %");
    let mut table = Table::new("Reuse rate of the paper's table, L = 8", &["gamma", "mu", "S"]);
    let mut others = Table::new("Multipliers 7919 and 17", &["gamma", "mu", "S"]);
    let mut gains = Table::new(
        "Gain of 8192 slots over adjacent-step reuse in percentage points, mu = 0.9",
        &["adjacent-step reuse, %"],
    );
    let (mut above, mut far) = ([0.0; 2], 0.0f64);
    for (at, (slots, figures)) in REUSE.into_iter().enumerate() {
        for (cell, stated) in figures.into_iter().flatten().enumerate() {
            let (gamma, mu) = (SHARES[cell / 3], SHARES[cell % 3]);
            let [paper, other, wide, lru] = rates(gamma, mu, slots)?;
            above[at] += (wide - paper) / 9.0;
            far = far.max((wide - lru).abs());
            let keys = [gamma.to_string(), mu.to_string(), slots.to_string()];
            table.row(keys.clone(), vec![rate.figure(stated, paper)]);
            others.row(keys, vec![rate.figure(stated, other)]);
            if (mu, slots) == (0.9, 8192) {
                let gamma = 100.0 * gamma;
                let gain = Quantity::points("gain").figure(stated - gamma, paper - gamma);
                gains.row([format!("{gamma:.0}")], vec![gain]);
            }
        }
    }
    let text = vec![
        "Appendix \"Cache Reuse\" and table \"Cache reuse\", synthetic rows. The command generates the workload and replays \
         the paper's table, bit for bit. The paper does not state its multipliers, its seeds, which steps it counts, and \
         what happens when the context has no new id left."
            .into(),
        format!(
            "{SEEDS} seeds, K = 2048, 16384 ids of context, steps 4 to 14. Root mean square of the differences: {:.2} \
             percentage points, and {:.2} with the multipliers 7919 and 17. On the same steps `wide` with constant lifetimes \
             hits {:.1} points more than the paper's table at S = 4096 and {:.1} at 8192 on average, and is at most {far:.2} \
             away from exact LRU.",
            table.rms(0),
            others.rms(0),
            above[0],
            above[1],
        ),
    ];
    Ok(Section { title: "Reuse on the synthetic workload", text, tables: vec![table, gains] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::left_out;

    #[test]
    fn the_papers_table_is_within_a_point_of_the_papers_reuse() {
        if left_out() {
            return;
        }
        let section = synthetic().unwrap();
        assert_eq!(section.tables[0].rows.len(), 18);
        assert!(section.tables[0].rms(0) < 0.6, "{section:?}");
        let [_, other, wide, lru] = rates(0.7, 0.7, 4096).unwrap();
        assert!((wide - lru).abs() < 0.2 && (other - 81.94).abs() < 3.0, "{wide} {lru} {other}");
    }
}
