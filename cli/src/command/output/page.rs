//! What a command prints: lines of text and tables in their order.

use clap::ValueEnum;

use super::table::Table;

/// The form of the results on standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text and tables for a terminal
    #[default]
    Table,
    /// Tables alone as comma-separated values with all digits
    Csv,
    /// Text and tables for a document
    Markdown,
    /// The same JSON as of --json
    Json,
}

/// A part of a page.
#[derive(Clone, Debug)]
enum Part {
    /// Text for readers, which CSV leaves out.
    Text(String),
    Table(Table),
    /// Text for a terminal, and the same figures as a table for the other forms.
    Facts(String, Table),
}

/// The text and the tables of a command's results.
#[derive(Clone, Debug, Default)]
pub struct Page(Vec<Part>);

impl Page {
    /// Adds text, which CSV leaves out.
    pub fn text(&mut self, text: impl Into<String>) {
        self.0.push(Part::Text(text.into()));
    }

    /// Adds a table.
    pub fn table(&mut self, table: Table) {
        self.0.push(Part::Table(table));
    }

    /// Adds figures: as `text` for a terminal, and as `table` in the other forms.
    pub fn facts(&mut self, text: impl Into<String>, table: Table) {
        self.0.push(Part::Facts(text.into(), table));
    }

    /// Returns the page for a terminal of `width` columns.
    pub fn framed(&self, width: Option<u16>) -> String {
        let part = |part: &Part| match part {
            Part::Text(text) | Part::Facts(text, _) => format!("{text}\n"),
            Part::Table(table) if table.title().is_empty() => format!("{}\n", table.framed(width)),
            Part::Table(table) => format!("\n{}\n{}\n", table.title(), table.framed(width)),
        };
        self.0.iter().map(part).collect()
    }

    /// Returns the page as Markdown: paragraphs and tables.
    pub fn markdown(&self) -> String {
        let part = |part: &Part| match part {
            Part::Text(text) => format!("{text}\n"),
            Part::Table(table) | Part::Facts(_, table) if table.title().is_empty() => {
                table.markdown()
            }
            Part::Table(table) | Part::Facts(_, table) => {
                format!("**{}**\n\n{}", table.title(), table.markdown())
            }
        };
        self.0.iter().map(part).collect::<Vec<_>>().join("\n")
    }

    /// Returns the tables as CSV. If there are several, each has a line with `# ` and its title before
    /// it, and an empty line stands between them.
    pub fn csv(&self) -> csv::Result<String> {
        let table = |part: &Part| match part {
            Part::Text(_) => None,
            Part::Table(table) | Part::Facts(_, table) => Some(table.clone()),
        };
        let tables: Vec<Table> = self.0.iter().filter_map(table).collect();
        let several = tables.len() > 1;
        let one = |table: &Table| {
            let title = if several { format!("# {}\n", table.title()) } else { String::new() };
            table.csv().map(|csv| title + &csv)
        };
        Ok(tables.iter().map(one).collect::<csv::Result<Vec<_>>>()?.join("\n"))
    }
}
