//! Stage Two in the model: the paper's host-to-device times, fitted.

use super::constants::{Constants, Name};
use avsg_linker::soc::Soc;

/// Bytes of the row that the fit is of.
const ROW: f64 = 1152.0;

/// Microseconds to copy so many host rows, dealt evenly to all cores: a core's start, then so much a
/// row, and all together no more than the link gives. A further segment is two more DMAs to issue.
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
    use avsg_linker::soc::OF_THE_PAPER;

    #[test]
    fn many_rows_take_what_the_link_gives_and_few_take_the_start() {
        let c = Constants::default();
        let us = |rows, segments: &[usize]| us(&c, &OF_THE_PAPER, rows, segments);
        assert!((us(1.0, &[1152]) - 3.42).abs() < 1e-9);
        let link: f64 = 100_000.0 * 1152.0 / 105_000.0;
        assert!((us(100_000.0, &[1152]) - link.max(3.0 + 2500.0 * 0.42)).abs() < 1e-6);
        assert!(us(400.0, &[1024, 128]) > us(400.0, &[1152]));
        assert_eq!(us(0.0, &[1152]), 0.0);
    }
}
