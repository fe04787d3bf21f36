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
        let wrapped = |text: &str| wrapped(text, width.map_or(usize::MAX, usize::from));
        let part = |part: &Part| match part {
            Part::Text(text) | Part::Facts(text, _) => wrapped(text),
            Part::Table(table) if table.title().is_empty() => format!("{}\n", table.framed(width)),
            Part::Table(table) => format!("\n{}{}\n", wrapped(table.title()), table.framed(width)),
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

/// The bytes that a label has at most.
const LABEL: usize = 20;

/// Breaks lines that are longer than `width` between words. What follows a label and two spaces or more
/// stays in its column. A line that begins with a space is a command to copy, and stays whole.
fn wrapped(text: &str, width: usize) -> String {
    let mut all = String::new();
    for line in text.lines() {
        let label = line.find("  ").filter(|&end| end <= LABEL).map_or("", |end| &line[..end]);
        let rest = line[label.len()..].trim_start();
        let indent = if label.is_empty() { 0 } else { line.len() - rest.len() };
        let indent = " ".repeat(line[..indent].chars().count());
        let mut column = 0;
        for word in line.split_inclusive(' ') {
            let length = word.trim_end().chars().count();
            if column + length > width && column > indent.len() && !line.starts_with(' ') {
                all.truncate(all.trim_end().len());
                all.push('\n');
                all += &indent;
                column = indent.len();
            }
            all += word;
            column += word.chars().count();
        }
        all.push('\n');
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_and_keep_their_column() {
        let text =
            "label   one two three\nfour five six seven\n  cmake -S a -B b\nunbreakable-word";
        let lines = "label   one two\n        three\nfour five six\nseven\n  cmake -S a -B b\nunbreakable-word\n";
        assert_eq!(wrapped(text, 15), lines);
        assert_eq!(wrapped(text, usize::MAX), format!("{text}\n"));
        assert_eq!(
            wrapped("a path-that-is-longer-than-a-line", 9),
            "a\npath-that-is-longer-than-a-line\n"
        );
    }
}
