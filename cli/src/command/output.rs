//! Output that the subcommands share: its forms and files, tables, progress bars, sizes.

mod page;
mod table;

pub use page::{Format, Page};
pub use table::{Cell, Table};

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use indicatif::{DecimalBytes, ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::checks::require;
use crate::{output_file, terminal};

/// The form of a command's results, and the file that holds them besides the terminal.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct OutputOptions {
    /// Form of the results on standard output
    #[arg(long, value_enum, value_name = "FORM", default_value = "table")]
    pub format: Format,
    /// Write the results as JSON to this file; - is standard output, in place of the tables
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
        let others: Vec<&Path> = others.into_iter().collect();
        let taken = others.iter().filter(|path| output_file::is_stdout(path)).count();
        let files = taken + usize::from(self.to_stdout());
        let limit = "standard output takes one file, and another option names it";
        require(files <= 1, "output", "-", limit, "name a file")?;
        let (option, one_form) = match self.format {
            _ if taken == 1 => ("output", self.format == Format::Table),
            Format::Csv | Format::Markdown => ("--json", !self.to_stdout()),
            Format::Table | Format::Json => ("--json", true),
        };
        let limit = "standard output takes one form, and --format names another";
        require(one_form, option, "-", limit, "name a file, or leave out --format")?;
        let json = self.json.as_deref().filter(|_| !self.to_stdout());
        Ok(output_file::check(json.into_iter().chain(others), inputs)?)
    }

    /// Checks, before a run, as [`OutputOptions::check`] does, and that the results are not the folder of the
    /// other outputs.
    pub fn check_with_folder<'a>(
        &'a self,
        inputs: impl IntoIterator<Item = &'a Path>,
        folder: Option<&Path>,
    ) -> Result<()> {
        if let (Some(json), Some(folder)) = (&self.json, folder) {
            output_file::check_distinct(json, folder)?;
        }
        self.check(inputs, [])
    }

    /// Writes the results: `page` or JSON to standard output, and JSON to the file if one is named. The
    /// results are shown even if the file cannot be written.
    pub fn write(&self, report: &impl Serialize, page: impl FnOnce() -> Page) -> Result<()> {
        self.write_beside(None, report, page)
    }

    /// Writes the results as [`OutputOptions::write`] does, but not to standard output if `file`, which the
    /// command has written, is standard output.
    pub fn write_beside(
        &self,
        file: Option<&Path>,
        report: &impl Serialize,
        page: impl FnOnce() -> Page,
    ) -> Result<()> {
        let shown = match self.format {
            _ if file.is_some_and(output_file::is_stdout) => String::new(),
            _ if self.to_stdout() => json_text(report)?,
            Format::Json => json_text(report)?,
            Format::Table => page().framed(terminal::width()),
            Format::Markdown => page().markdown(),
            Format::Csv => page().csv()?,
        };
        // The file comes first, because it must be written even if nobody reads standard output.
        let written = match self.json.as_deref().filter(|_| !self.to_stdout()) {
            Some(path) => output_file::write(path, json_text(report)?.as_bytes()),
            None => Ok(()),
        };
        let printed = terminal::write(shown.as_bytes());
        written?;
        Ok(printed?)
    }

    /// Returns whether standard output shows the text of a page, and not figures alone.
    pub fn shows_text(&self) -> bool {
        matches!(self.format, Format::Table | Format::Markdown) && !self.to_stdout()
    }

    fn to_stdout(&self) -> bool {
        self.json.as_deref().is_some_and(output_file::is_stdout)
    }
}

/// Where a measuring command writes its results.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Sinks {
    /// The form of the results.
    #[command(flatten)]
    pub output: OutputOptions,
    /// Write charts of the results as SVG files into this directory, which is created if it does not
    /// exist
    #[arg(long, value_name = "DIR")]
    pub plot: Option<PathBuf>,
}

impl Sinks {
    /// Checks, before a run, that the results can be written, and creates the directory of the charts.
    pub fn check<'a>(&'a self, inputs: impl IntoIterator<Item = &'a Path>) -> Result<()> {
        self.output.check_with_folder(inputs, self.plot.as_deref())?;
        Ok(self.plot.as_deref().map_or(Ok(()), output_file::folder)?)
    }

    /// Writes the results, and the charts if a directory is named. The results are shown even if the charts
    /// cannot be written.
    pub fn write<R: Serialize>(
        &self,
        report: &R,
        page: impl FnOnce(&R) -> Page,
        charts: impl FnOnce(&Path, &R) -> Result<()>,
    ) -> Result<()> {
        let drawn = self.plot.as_deref().map_or(Ok(()), |folder| charts(folder, report));
        let shown = self.output.write(report, || page(report));
        drawn.and(shown)
    }
}

fn json_text(value: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_string_pretty(value).context("writing JSON")? + "\n")
}

/// Returns an empty table with these column headings.
pub fn table<const N: usize>(columns: [&str; N]) -> Table {
    Table::new(columns)
}

/// Returns a progress bar on standard error, which is drawn only if that is a terminal.
pub fn progress(steps: usize, what: &'static str) -> ProgressBar {
    let bar = ProgressBar::new(steps as u64).with_message(what);
    if let Ok(style) = ProgressStyle::with_template("{msg} {bar:40} {pos}/{len} {eta}") {
        bar.set_style(style);
    }
    // The first step may take long.
    bar.tick();
    bar
}

/// Does work of one step, and shows meanwhile what it is, on standard error if that is a terminal.
pub fn show_during<T>(what: &'static str, work: impl FnOnce() -> T) -> T {
    let bar = progress(1, what);
    let done = work();
    bar.finish_and_clear();
    done
}

/// Formats a number of things: `1 step`, `2 steps`.
pub fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// Formats a number of bytes with a decimal unit and two decimals, such as `1.50 GB`.
pub fn bytes(n: usize) -> String {
    DecimalBytes(n as u64).to_string()
}
