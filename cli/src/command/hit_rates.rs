//! The chart of hit rates over S, which several commands draw.

use std::path::Path;

use anyhow::Result;

use super::output::count;
use crate::draw::{self, Labels, Series};

/// What hit rates were computed on.
pub struct Subject<'a> {
    /// Name of the trace.
    pub trace: &'a str,
    pub steps: usize,
    pub tokens: usize,
    pub k: usize,
}

/// Draws hit rates in percent over S into a file.
pub fn chart(path: &Path, subject: &Subject<'_>, series: &[Series]) -> Result<()> {
    let Subject { trace, steps, tokens, k } = *subject;
    let name = Path::new(trace).file_stem().unwrap_or_default().display();
    let labels = Labels {
        title: "How many of the selected rows are in the buffer already",
        subject: &format!("{name}: {}, N_q {tokens}, K {k}", count(steps, "step")),
        x: "S, slots per request and layer",
        y: "hit rate after the first step, %",
    };
    Ok(draw::chart(path, &labels, series)?)
}
