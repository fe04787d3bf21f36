//! The paper's three strategies of Stage Two: the rows of the busiest core, which the others wait for.

use avsg::device::stage_two::share_start;

use super::section::{Quantity, Section, Table};
use crate::published::TRANSFERS;

/// Copying cores.
const CORES: usize = 40;
/// The ids that a request of the paper's host-to-device table selects.
const K: usize = 2048;

/// Returns the rows of the busiest core for `requests` requests of which the first `reuse` percent of the ids hit. S1
/// gives whole requests to cores, S2 equal shares of the selected positions, and S3, which is the operator's, equal
/// shares of the misses.
fn busiest(requests: usize, reuse: usize) -> [usize; 3] {
    let hits = K * reuse / 100;
    // The misses among the first positions of a batch.
    let misses = |at: usize| at / K * (K - hits) + (at % K).saturating_sub(hits);
    let most = |n: usize, rows: &dyn Fn(usize) -> usize| {
        let start = |core| rows(share_start(n, core, CORES));
        (0..CORES).map(|core| start(core + 1) - start(core)).max().unwrap_or(0)
    };
    [
        most(requests, &|requests| misses(requests * K)),
        most(requests * K, &misses),
        most(misses(requests * K), &|misses| misses),
    ]
}

/// Compares the ratios of the busiest cores' rows with those of the paper's bandwidths.
pub fn balance() -> Section {
    let mut table = Table::new("S3 beside S1 and S2, contiguous hits", &["B", "reuse, %"]);
    for (requests, reuse, paper) in TRANSFERS {
        let rows = busiest(requests, reuse);
        let ratio = |name, at: usize| {
            let here = rows[at] as f64 / rows[2] as f64;
            Quantity::percent(name, 2).figure(paper[2] / paper[at], here)
        };
        let keys = [requests.to_string(), reuse.to_string()];
        table.row(keys, vec![ratio("S3 : S1", 0), ratio("S3 : S2", 1)]);
    }
    let text = vec![
        "Figures \"H2D bandwidth gains\" and \"Effective H2D bandwidth\", and the table of appendix \"H2D Core-Binding \
         Strategies\". The paper's ratios are those of bandwidths. **Those of here are ratios of rows**: a strategy takes as \
         long as its busiest core, so they are what balance alone gains."
            .into(),
        format!(
            "{CORES} cores; the operator's own function computes the shares. Root mean square of the differences: S3 : S1 \
             {:.1} %, S3 : S2 {:.1} %. The paper's ratios are smaller where a core has few rows: its start takes time, too. The \
             paper does not state where its hits are; with scattered hits S2 would be nearly as balanced as S3.",
            table.rms(0),
            table.rms(1),
        ),
    ];
    Section { title: "Transfer with three strategies", text, tables: vec![table] }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's speedups follow from balance.
    #[test]
    fn the_busiest_core_explains_the_papers_speedups() {
        assert_eq!(busiest(1, 75), [512, 52, 13]);
        let Section { tables, .. } = balance();
        assert!(tables[0].rms(0) < 15.0 && tables[0].rms(1) < 15.0);
    }
}
