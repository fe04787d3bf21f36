//! Output that the subcommands share: its files, pages of text and tables, progress, numbers in words.

mod page;

pub use page::{Cell, Page, Table};

use std::cell::Cell as Shared;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::{Value, to_value};

use crate::checks::require;
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
    /// Checks, before a run, that the results and `others` can be written, and that none of them would
    /// replace one of `inputs` or each other. Standard output, `-`, takes one of them.
    pub fn check<'a>(
        &'a self,
        inputs: impl IntoIterator<Item = &'a Path>,
        others: impl IntoIterator<Item = &'a Path>,
    ) -> Result<()> {
        let outputs: Vec<&Path> = others.into_iter().chain(self.json.as_deref()).collect();
        let on_stdout = outputs.iter().filter(|path| output_file::is_stdout(path)).count();
        let limit = "standard output takes one file, and another option names it";
        require(on_stdout <= 1, "output", "-", limit, "name a file")?;
        Ok(output_file::check(outputs, inputs, None)?)
    }

    /// Checks, before a run, as [`OutputOptions::check`] does, and that the results are not the folder of the
    /// other outputs.
    pub fn check_with_folder<'a>(
        &'a self,
        inputs: impl IntoIterator<Item = &'a Path>,
        folder: Option<&Path>,
    ) -> Result<()> {
        Ok(output_file::check(self.json.as_deref(), inputs, folder)?)
    }

    /// Writes the results: `page` or JSON to standard output, and JSON to the file if one is named. The
    /// results are shown even if the file cannot be written.
    pub fn write(&self, report: &impl Serialize, page: impl FnOnce() -> Page) -> Result<()> {
        self.write_beside(&[], report, page)
    }

    /// Writes the results as [`OutputOptions::write`] does, with the names of `files`, which the command has
    /// written; not to standard output if that is one of them.
    pub fn write_beside(
        &self,
        files: &[&Path],
        report: &impl Serialize,
        page: impl FnOnce() -> Page,
    ) -> Result<()> {
        self.put(files, &with_origin(files, report)?, page)
    }

    /// Writes the results as [`OutputOptions::write_beside`] does, of which `json` is all that JSON has.
    pub fn put(&self, files: &[&Path], json: &Value, page: impl FnOnce() -> Page) -> Result<()> {
        let mut files = files.to_vec();
        // The file comes first, because it must be written even if nobody reads standard output.
        let written = match &self.json {
            Some(path) => {
                let json = serde_json::to_string_pretty(json).context("writing JSON")? + "\n";
                output_file::write(path, json.as_bytes()).map(|()| files.push(path))
            }
            None => Ok(()),
        };
        let is_taken = !self.shows_text() || files.iter().any(|file| output_file::is_stdout(file));
        let shown = || {
            let mut page = page();
            let names: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
            if !names.is_empty() {
                page.text(format!("written   {}", names.join(", ")));
            }
            page.shown(terminal::width())
        };
        let printed = to_stdout(if is_taken { String::new() } else { shown() }.as_bytes());
        written?;
        Ok(printed?)
    }

    /// Returns whether standard output shows the text of a page, and not JSON.
    pub fn shows_text(&self) -> bool {
        !self.json.as_deref().is_some_and(output_file::is_stdout)
    }
}

/// Returns results as JSON has them, with the version and the command line of the program, and the names of other files
/// with results.
pub fn with_origin(files: &[&Path], report: &impl Serialize) -> serde_json::Result<Value> {
    let command = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let written = files.iter().map(|file| file.display().to_string());
    let mut all = to_value(report)?;
    all["version"] = crate::VERSION.into();
    all["command"] = command.collect();
    all["written"] = written.collect();
    Ok(all)
}

/// Where a command that draws a chart writes its results.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Sinks {
    /// The file with the results.
    #[command(flatten)]
    pub output: OutputOptions,
    /// Write a chart of the results as an SVG file into this directory, which is created if it does not
    /// exist
    #[arg(long, value_name = "DIR")]
    pub plot: Option<PathBuf>,
}

impl Sinks {
    /// Checks, before a run, that the results can be written, and creates the directory of the chart.
    pub fn check<'a>(&'a self, inputs: impl IntoIterator<Item = &'a Path>) -> Result<()> {
        self.output.check_with_folder(inputs, self.plot.as_deref())?;
        Ok(self.plot.as_deref().map_or(Ok(()), output_file::folder)?)
    }

    /// Writes the results, and the chart if a directory is named. The results are shown even if the chart
    /// cannot be written.
    pub fn write<R: Serialize>(
        &self,
        report: &R,
        page: impl FnOnce(&R) -> Page,
        chart: impl FnOnce(&Path, &R) -> Result<PathBuf>,
    ) -> Result<()> {
        let drawn = self.plot.as_deref().map(|folder| chart(folder, report)).transpose();
        let file = drawn.as_ref().ok().and_then(Option::as_deref);
        let shown = self.output.write_beside(file.as_slice(), report, || page(report));
        drawn.and(shown)
    }
}

/// A line on standard error, if that is a terminal, that says what the program does and how far it is, until
/// it is dropped.
pub struct Progress {
    what: &'static str,
    steps: usize,
    /// The steps that are done; `None` if nobody sees the line.
    done: Option<Shared<usize>>,
}

/// Shows what the program does in `steps` steps.
pub fn progress(steps: usize, what: &'static str) -> Progress {
    let done = io::stderr().is_terminal().then(Shared::default);
    let line = Progress { what, steps, done };
    // The first step may take long.
    line.inc(0);
    line
}

impl Progress {
    /// Counts steps that are done.
    pub fn inc(&self, steps: usize) {
        let Some(done) = &self.done else { return };
        let percent = |done| 100 * done / self.steps.max(1);
        let before = percent(done.get());
        done.set(done.get() + steps);
        let now = percent(done.get());
        if steps == 0 || now != before {
            let _ = write!(io::stderr(), "\r\x1b[K{} {now} %", self.what);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.done.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
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
    let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let unit = units.into_iter().find(|&(size, _)| n as f64 >= size);
    unit.map_or_else(|| format!("{n} B"), |(size, unit)| format!("{:.2} {unit}", n as f64 / size))
}

/// Formats a ratio with two significant digits or more: 1.25, 3.7, 31.
fn shown_ratio(ratio: f64) -> String {
    let decimals = if ratio < 2.0 { 2 } else { usize::from(ratio < 10.0) };
    format!("{ratio:.decimals$}")
}

/// Says how many times `better` something is than the two gathers without a buffer: of every selected row, and
/// without the repeats of a step.
pub fn beside_gathers(better: &str, [every, once]: [f64; 2]) -> String {
    let [every, once] = [every, once].map(shown_ratio);
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
