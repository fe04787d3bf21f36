//! Output that the subcommands share: its files, pages of text and tables, progress, numbers in words.

mod page;

pub use page::{Page, Table};

use std::path::{Path, PathBuf};

use anyhow::Result;
use indicatif::{DecimalBytes, ProgressBar, ProgressFinish, ProgressStyle};
use serde::Serialize;
use serde_json::{Value, to_value};

use crate::output_file::{self, to_stdout};
use crate::terminal;

/// The file that holds a command's results besides the terminal.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct OutputOptions {
    /// Write the results as JSON to this file; - is standard output, in place of the text
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

impl OutputOptions {
    /// Checks, before a run, that the results can be written, and do not replace one of `inputs`.
    pub fn check<'a>(&self, inputs: impl IntoIterator<Item = &'a Path>) -> Result<()> {
        Ok(self.json.as_deref().map_or(Ok(()), |path| output_file::check(path, inputs))?)
    }

    /// Writes the results: `page` or JSON to standard output, and JSON to the file if one is named. The
    /// results are shown even if the file cannot be written.
    pub fn write(&self, report: &impl Serialize, page: impl FnOnce() -> Page) -> Result<()> {
        self.put(&with_origin(report)?, page)
    }

    /// Writes the results as [`OutputOptions::write`] does, of which `json` is all that JSON has.
    pub fn put(&self, json: &Value, page: impl FnOnce() -> Page) -> Result<()> {
        // The file comes first, because it must be written even if nobody reads standard output.
        let written = self
            .json
            .as_deref()
            .map(|path| output_file::write(path, format!("{json:#}\n").as_bytes()).map(|()| path));
        let mut shown = String::new();
        if self.shows_text() {
            let mut page = page();
            if let Some(Ok(path)) = &written {
                page.text(format!("written   {}", path.display()));
            }
            shown = page.shown(terminal::width());
        }
        let printed = to_stdout(shown.as_bytes());
        written.transpose()?;
        Ok(printed?)
    }

    /// Returns whether standard output shows the text of a page, and not JSON.
    pub fn shows_text(&self) -> bool {
        !self.json.as_deref().is_some_and(output_file::is_stdout)
    }
}

/// Returns results as JSON has them, with the version and the command line of the program.
pub fn with_origin(report: &impl Serialize) -> serde_json::Result<Value> {
    let command = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let mut all = to_value(report)?;
    all["version"] = crate::VERSION.into();
    all["command"] = command.collect();
    Ok(all)
}

/// Shows on standard error, if that is a terminal, what the program does in `steps` steps, until the result is dropped.
pub fn progress(steps: usize, what: &'static str) -> ProgressBar {
    let bar = ProgressBar::new(steps as u64).with_finish(ProgressFinish::AndClear);
    let style = ProgressStyle::with_template("{msg} {percent} %");
    bar.with_message(what).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// Does work of one step, and shows meanwhile what it is, on standard error if that is a terminal.
pub fn show_during<T>(what: &'static str, work: impl FnOnce() -> T) -> T {
    let _line = progress(1, what);
    work()
}

/// Formats a number of things: `1 step`, `2 steps`.
pub fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// Formats a number of bytes with a decimal unit and two decimals, such as `1.50 GB`.
pub fn bytes(n: usize) -> String {
    DecimalBytes(n as u64).to_string()
}

/// Formats a ratio with two significant digits or more: 1.25, 3.7, 31.
fn shown_ratio(ratio: f64) -> String {
    let decimals = if ratio < 2.0 { 2 } else { usize::from(ratio < 10.0) };
    format!("{ratio:.decimals$}")
}

/// Says how many times `better` something that takes `own` is than the two gathers without a buffer, which take
/// `gathers`: that of every selected row, and that without the repeats of a step.
pub fn beside_gathers(better: &str, gathers: [f64; 2], own: f64) -> String {
    if own == 0.0 {
        return "no byte copied".to_owned();
    }
    let [every, once] = gathers.map(|gather| shown_ratio(gather / own));
    let first = format!("{every} times {better} a gather of every selected row");
    let better = better.replace(" bytes", "");
    if every == once {
        first
    } else {
        format!("{first}, {once} times {better} one without repeats")
    }
}

/// Formats a number with three digits or more: 0.012, 1.23, 12.3, 1234.
pub fn short(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}
