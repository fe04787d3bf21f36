//! Stage Two in the model, fitted to the paper's host-to-device times.

use super::constants::{Constants, Name};
use avsg_linker::ascend::soc::Soc;

/// Bytes of the row that the model is fitted to.
const ROW: f64 = 1152.0;

/// Returns the microseconds to copy `rows` host rows that are spread evenly over all cores: a core
/// takes a start time and a time per row, and the bandwidth of the link limits all cores together. Each
/// segment after the first adds two DMAs per row.
pub fn us(c: &Constants, soc: &Soc, rows: f64, segments: &[usize]) -> f64 {
    if rows <= 0.0 {
        return 0.0;
    }
    let bytes = segments.iter().sum::<usize>() as f64;
    let extra = 2.0 * (segments.len() as f64 - 1.0) * soc.us(c.get(Name::Dma));
    let busiest = (rows / soc.cores as f64).ceil();
    let core = c.get(Name::H2dStart) + busiest * (c.get(Name::H2dRow) * bytes / ROW + extra);
    core.max(rows * bytes / (c.get(Name::H2dLink) * 1e3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use avsg_linker::ascend::soc::OF_THE_PAPER;

    #[test]
    fn the_link_limits_many_rows_and_the_start_time_limits_few() {
        let c = Constants::default();
        let us = |rows, segments: &[usize]| us(&c, &OF_THE_PAPER, rows, segments);
        assert!((us(1.0, &[1152]) - 3.42).abs() < 1e-9);
        let link: f64 = 100_000.0 * 1152.0 / 105_000.0;
        assert!((us(100_000.0, &[1152]) - link.max(3.0 + 2500.0 * 0.42)).abs() < 1e-6);
        assert!(us(400.0, &[1024, 128]) > us(400.0, &[1152]));
        assert_eq!(us(0.0, &[1152]), 0.0);
    }
}
