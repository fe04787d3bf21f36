//! A table: columns with headings, rows of cells, and the forms in which it is printed.

use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Width};

/// The text of a cell without a value.
const NONE: &str = "-";

/// One cell of a [`Table`].
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Text for readers.
    shown: String,
    /// Text for programs: a number with all of its digits; empty if there is no value.
    exact: String,
}

impl Cell {
    /// Returns a cell without a value.
    pub fn none() -> Self {
        Self { shown: NONE.to_owned(), exact: String::new() }
    }

    /// Returns a number that readers see with `decimals` digits after the point; no value if it is not
    /// finite.
    pub fn number(value: f64, decimals: usize) -> Self {
        Self::shown(value, format!("{value:.decimals$}"))
    }

    /// Returns a number that readers see as `shown`; no value if it is not finite.
    pub fn shown(value: f64, shown: impl Into<String>) -> Self {
        if !value.is_finite() {
            return Self::none();
        }
        Self { shown: shown.into(), exact: value.to_string() }
    }
}

impl<T: ToString> From<T> for Cell {
    fn from(value: T) -> Self {
        let shown = value.to_string();
        let exact = if shown == NONE { String::new() } else { shown.clone() };
        Self { shown, exact }
    }
}

/// Columns and rows, with a title if there is more than one table in an output.
#[derive(Clone, Debug, Default)]
pub struct Table {
    title: String,
    columns: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Creates a table without rows. A heading contains its unit after a comma.
    pub fn new<H: Into<String>>(columns: impl IntoIterator<Item = H>) -> Self {
        let columns = columns.into_iter().map(Into::into).collect();
        Self { columns, ..Self::default() }
    }

    /// Gives the table a title.
    pub fn titled(self, title: impl Into<String>) -> Self {
        Self { title: title.into(), ..self }
    }

    /// Returns the title; empty if there is none.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Adds a row with one cell per column. A shorter row is filled with cells without a value.
    pub fn add_row<C: Into<Cell>>(&mut self, row: impl IntoIterator<Item = C>) {
        let mut row: Vec<Cell> = row.into_iter().map(Into::into).collect();
        row.resize(self.columns.len(), Cell::none());
        self.rows.push(row);
    }

    /// Returns the table with borders, at most `width` columns wide if its words allow that.
    pub fn framed(&self, width: Option<u16>) -> String {
        let mut table = comfy_table::Table::new();
        table.load_style(UTF8_BORDERS_ONLY).set_header(&self.columns);
        for row in &self.rows {
            table.add_row(row.iter().map(|cell| &cell.shown));
        }
        // No word is broken if the longest words of all columns fit beside each other.
        let words = self.longest_words();
        let least = words.iter().sum::<usize>() + 2 * words.len() + 2;
        let fits = width.is_some_and(|width| least <= usize::from(width));
        for column in table.column_iter_mut() {
            let padding = (1, u16::from(column.index + 1 == words.len()));
            column.set_padding(padding);
            if fits {
                let least = words[column.index] as u16 + padding.0 + padding.1;
                column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least)));
            }
            if self.is_numeric(column.index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        if let Some(width) = width {
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        }
        table.to_string()
    }

    /// Returns the table in GitHub's Markdown.
    pub fn markdown(&self) -> String {
        let line = |cells: &mut dyn Iterator<Item = String>| {
            let cells: Vec<String> = cells.map(|cell| cell.replace('|', "\\|")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let rule = |index| if self.is_numeric(index) { "---:" } else { "---" }.to_owned();
        let mut text = line(&mut self.columns.iter().cloned());
        text += &line(&mut (0..self.columns.len()).map(rule));
        for row in &self.rows {
            text += &line(&mut row.iter().map(|cell| cell.shown.clone()));
        }
        text
    }

    /// Returns the table as comma-separated values (RFC 4180) with one line of headings.
    pub fn csv(&self) -> csv::Result<String> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(&self.columns)?;
        for row in &self.rows {
            writer.write_record(row.iter().map(|cell| &cell.exact))?;
        }
        let bytes = writer.into_inner().map_err(|error| error.into_error())?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns the characters of the longest word of each column.
    fn longest_words(&self) -> Vec<usize> {
        let longest = |text: &str| text.split_whitespace().map(|w| w.chars().count()).max();
        let column = |(index, heading): (usize, &String)| {
            let cells = self.rows.iter().map(|row| longest(&row[index].shown));
            cells.chain([longest(heading)]).flatten().max().unwrap_or(0)
        };
        self.columns.iter().enumerate().map(column).collect()
    }

    /// Returns whether every cell of a column is a number or has no value.
    fn is_numeric(&self, column: usize) -> bool {
        let number = |cell: &Cell| cell.exact.is_empty() || cell.exact.parse::<f64>().is_ok();
        self.rows.iter().all(|row| number(&row[column]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let mut table = Table::new(["policy", "hit rate, %", "note"]);
        table.add_row([Cell::from("a|b"), Cell::number(98.765_432_1, 2), Cell::from("1, 2")]);
        table.add_row([Cell::from("c"), Cell::number(f64::NAN, 2)]);
        table
    }

    #[test]
    fn readers_see_rounded_numbers_and_programs_all_digits() {
        assert!(sample().framed(None).contains("98.77 "));
        let csv = "policy,\"hit rate, %\",note\na|b,98.7654321,\"1, 2\"\nc,,\n";
        assert_eq!(sample().csv().unwrap(), csv);
    }

    #[test]
    fn markdown_escapes_bars_and_aligns_numbers() {
        let expected = "| policy | hit rate, % | note |\n| --- | ---: | --- |\n\
                        | a\\|b | 98.77 | 1, 2 |\n| c | - | - |\n";
        assert_eq!(sample().markdown(), expected);
    }

    #[test]
    fn a_table_is_as_narrow_as_the_terminal() {
        let mut table = Table::new(["some long heading"; 6]);
        table.add_row(["123.45 (1.2x)"; 6]);
        assert!(table.framed(None).lines().next().unwrap().chars().count() > 80);
        assert!(table.framed(Some(80)).lines().all(|line| line.chars().count() <= 80));
        // The words of a narrow column are whole, although the other has more text.
        let mut table = Table::new(["rule", "meaning"]);
        table.add_row(["constant:16 to 127", &"several words ".repeat(9)]);
        let narrow = table.framed(Some(40));
        assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
        assert!(narrow.contains("constant:16") && !narrow.contains("severa "), "{narrow}");
        table.add_row(["x", &"unbreakable".repeat(9)]);
        assert!(table.framed(Some(40)).lines().all(|line| line.chars().count() <= 40));
    }
}
