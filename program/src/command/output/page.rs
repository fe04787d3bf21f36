//! What a command prints: lines of text, and tables, which are Markdown with aligned columns.

use anyhow::Result;
use textwrap::{Options, fill};

use crate::output_file::to_stdout;
use crate::terminal;

/// The text of a cell without a value.
const NONE: &str = "-";
/// The bytes of a label and of the spaces between it and its words.
const LABEL: usize = 10;

/// Columns and rows: the headings, then the rows.
#[derive(Clone, Debug)]
pub struct Table(Vec<Vec<String>>);

/// Returns the cells of a row; a cell without text has no value.
fn cells<C: ToString>(row: impl IntoIterator<Item = C>) -> Vec<String> {
    let text = |cell: C| match cell.to_string() {
        empty if empty.is_empty() => NONE.to_owned(),
        text => text.replace('|', "\\|"),
    };
    row.into_iter().map(text).collect()
}

impl Table {
    /// Creates a table without rows. A heading contains its unit after a comma.
    pub fn new<H: ToString>(columns: impl IntoIterator<Item = H>) -> Self {
        Self(vec![cells(columns)])
    }

    /// Adds a row with one cell per column. A shorter row is filled with cells without a value.
    pub fn add_row<C: ToString>(&mut self, row: impl IntoIterator<Item = C>) {
        let mut row = cells(row);
        row.resize(self.0[0].len(), NONE.to_owned());
        self.0.push(row);
    }

    /// Returns the table in GitHub's Markdown. Columns of numbers are aligned to the right.
    fn text(&self) -> String {
        let column = |at: usize| self.0.iter().map(move |line| line[at].as_str());
        let columns = 0..self.0[0].len();
        let width = |at| column(at).map(|cell| cell.chars().count()).max().unwrap_or(0).max(4);
        // The width of each column, and whether it has numbers.
        let columns: Vec<(usize, bool)> =
            columns.map(|at| (width(at), column(at).skip(1).all(is_figure))).collect();
        let line = |cells: &Vec<String>| {
            let cells = cells.iter().zip(&columns).map(|(text, &(width, right))| {
                if right { format!(" {text:>width$} |") } else { format!(" {text:width$} |") }
            });
            format!("|{}\n", cells.collect::<String>())
        };
        let rule = columns.iter().map(|&(width, right)| {
            let end = if right { ":" } else { "-" };
            format!(" {}{end} |", "-".repeat(width - 1))
        });
        let rule = format!("|{}\n", rule.collect::<String>());
        let rows: String = self.0[1..].iter().map(line).collect();
        line(&self.0[0]) + &rule + &rows
    }
}

/// Returns whether a cell is a figure, perhaps with a unit or a range, or has no value.
fn is_figure(cell: &str) -> bool {
    let is_word = |word: &str| word.chars().filter(char::is_ascii_alphabetic).count() > 2;
    cell.starts_with(|c: char| c.is_ascii_digit() || "+-".contains(c))
        && !cell.split(' ').any(is_word)
}

/// The text and the tables of a command's results.
#[derive(Clone, Debug, Default)]
pub struct Page(String);

impl Page {
    /// Adds text.
    pub fn text(&mut self, text: impl AsRef<str>) {
        self.0 += text.as_ref();
        self.0.push('\n');
    }

    /// Adds a table.
    pub fn table(&mut self, table: &Table) {
        self.text(format!("\n{}", table.text()));
    }

    /// Prints the page to standard output.
    pub fn print(&self) -> Result<()> {
        Ok(to_stdout(self.shown(terminal::width()).as_bytes())?)
    }

    /// Returns the page. Its text, but no table, fits a terminal of `width` columns.
    pub fn shown(&self, width: Option<u16>) -> String {
        wrapped(self.0.trim_matches('\n'), width.map_or(usize::MAX, usize::from))
    }
}

/// Breaks lines that are longer than `width` between words. What follows a label and two spaces or more
/// stays in its column. A line of a table stays whole, and so does one that begins with a space, which is a
/// command to copy.
fn wrapped(text: &str, width: usize) -> String {
    let fitted = |line: &str| {
        let is_labelled = line.get(..LABEL).is_some_and(|label| label.ends_with("  "));
        let indent = " ".repeat(if is_labelled { LABEL } else { 0 });
        let options = Options::new(width).subsequent_indent(&indent).break_words(false);
        let whole = line.starts_with([' ', '|']);
        (if whole { line.to_owned() } else { fill(line, options) }) + "\n"
    };
    text.lines().map(fitted).collect()
}

#[cfg(test)]
mod tests;
