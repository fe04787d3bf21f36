//! Output that several subcommands share: JSON files, tables, progress bars, sizes.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use comfy_table::{Table, presets::UTF8_BORDERS_ONLY};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

/// Where a measuring command writes its results besides the terminal.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Sinks {
    /// Write the results as JSON to this file; - is standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write charts of the results as SVG files into this directory
    #[arg(long, value_name = "DIR")]
    pub plot: Option<PathBuf>,
}

/// Writes `value` as JSON to the file `to`, or to standard output if `to` is `-`.
pub fn json(to: &Path, value: &impl Serialize) -> Result<()> {
    let mut json = serde_json::to_string_pretty(value).context("writing JSON")?;
    json.push('\n');
    text(to, &json)
}

/// Writes `text` to the file `to`, or to standard output if `to` is `-`.
pub fn text(to: &Path, text: &str) -> Result<()> {
    if to.as_os_str() == "-" {
        print!("{text}");
        return Ok(());
    }
    // The rename makes the file appear with its whole content.
    let part = to.with_extension("part");
    fs::write(&part, text)
        .and_then(|()| fs::rename(&part, to))
        .with_context(|| format!("writing {}", to.display()))
}

/// Returns whether JSON goes to standard output, which then must contain nothing else.
pub fn is_stdout(to: Option<&Path>) -> bool {
    to.is_some_and(|path| path.as_os_str() == "-")
}

/// Returns an empty table with these column headings.
pub fn table<const N: usize>(columns: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_BORDERS_ONLY).set_header(columns);
    table
}

/// Returns a progress bar on standard error, which is drawn only if that is a terminal.
pub fn progress(steps: usize, what: &'static str) -> ProgressBar {
    let bar = ProgressBar::new(steps as u64).with_message(what);
    if let Ok(style) = ProgressStyle::with_template("{msg} {bar:40} {pos}/{len} {eta}") {
        bar.set_style(style);
    }
    bar
}

/// Formats a number of things: `1 step`, `2 steps`.
pub fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// Formats a number of bytes with a decimal unit and two decimals, such as `1.50 GB`.
pub fn bytes(n: usize) -> String {
    let units = ["B", "kB", "MB", "GB", "TB"];
    let (mut value, mut unit) = (n as f64, 0);
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 { format!("{n} B") } else { format!("{value:.2} {}", units[unit]) }
}

/// Formats a difference with its sign; one that rounds to zero has the sign `+`.
pub fn signed(value: f64, decimals: usize) -> String {
    let text = format!("{value:+.decimals$}");
    let is_zero = text.bytes().all(|byte| !byte.is_ascii_digit() || byte == b'0');
    if is_zero { text.replace('-', "+") } else { text }
}
