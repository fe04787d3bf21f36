//! A part of the report: figures of the paper, each beside the figure that is computed here.

use crate::markdown;

/// A kind of figure, which has a column of its own.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    /// Name with unit.
    pub name: &'static str,
    /// Digits after the point.
    pub decimals: usize,
    /// Whether figures are percentages, which are compared in percentage points. Others are compared in
    /// percent of the paper's figure.
    pub points: bool,
}

impl Quantity {
    /// Creates a quantity whose figures are compared in percent.
    pub const fn percent(name: &'static str, decimals: usize) -> Self {
        Self { name, decimals, points: false }
    }

    /// Creates a quantity in percent, whose figures are compared in percentage points.
    pub const fn points(name: &'static str) -> Self {
        Self { name, decimals: 2, points: true }
    }

    /// Returns the figure that is computed here beside the paper's, which may not state one.
    pub fn figure(self, paper: impl Into<Option<f64>>, here: f64) -> Figure {
        Figure { quantity: self, paper: paper.into(), here }
    }
}

/// A figure of the paper and the one that is computed here.
#[derive(Clone, Debug)]
pub struct Figure {
    pub quantity: Quantity,
    /// The paper's figure, if it states one.
    pub paper: Option<f64>,
    /// The figure that is computed here.
    pub here: f64,
}

impl Figure {
    /// Returns the difference from the paper's figure, if there is one.
    fn difference(&self) -> Option<f64> {
        let percent = |paper: f64| 100.0 * (self.here / paper - 1.0);
        let points = |paper: f64| self.here - paper;
        let difference =
            self.paper.map(|p| if self.quantity.points { points(p) } else { percent(p) });
        difference.filter(|value| value.is_finite())
    }

    /// Returns the paper's figure, the figure of here and the difference as text.
    fn cells(&self) -> [String; 3] {
        let Quantity { decimals, points, .. } = self.quantity;
        let number = |value: f64| format!("{value:.decimals$}");
        let difference =
            |value| if points { signed(value, 2) } else { format!("{} %", signed(value, 1)) };
        let dash = || "-".to_owned();
        [
            self.paper.map_or_else(dash, number),
            number(self.here),
            self.difference().map_or_else(dash, difference),
        ]
    }
}

/// One line of a table.
#[derive(Clone, Debug)]
pub struct Row {
    /// What the figures belong to, one text per key.
    pub keys: Vec<String>,
    pub figures: Vec<Figure>,
}

/// A table; all rows have the same keys and kinds of figures.
#[derive(Clone, Debug)]
pub struct Table {
    /// What is compared.
    pub title: String,
    /// Names of the keys.
    pub keys: Vec<&'static str>,
    pub rows: Vec<Row>,
}

impl Table {
    /// Creates a table without rows.
    pub fn new(title: impl Into<String>, keys: &[&'static str]) -> Self {
        Self { title: title.into(), keys: keys.to_vec(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, keys: impl IntoIterator<Item = String>, figures: Vec<Figure>) {
        self.rows.push(Row { keys: keys.into_iter().collect(), figures });
    }

    /// Returns the headings.
    fn heads(&self) -> Vec<String> {
        let mut heads: Vec<String> = self.keys.iter().map(|&key| key.to_owned()).collect();
        for figure in self.rows.first().iter().flat_map(|row| &row.figures) {
            let name = figure.quantity.name;
            heads.extend([format!("{name}: paper"), "here".into(), "difference".into()]);
        }
        heads
    }

    /// Returns the root mean square of the differences of figure number `at`.
    pub fn rms(&self, at: usize) -> f64 {
        let all = self.rows.iter().filter_map(|row| row.figures[at].difference());
        let (n, sum) = all.fold((0.0, 0.0), |(n, sum), value| (n + 1.0, sum + value * value));
        (sum / f64::max(n, 1.0)).sqrt()
    }
}

/// A section of the report.
#[derive(Clone, Debug)]
pub struct Section {
    /// Heading.
    pub title: &'static str,
    /// Paragraphs: where the paper states the figures, how those of here are made, how they agree.
    pub text: Vec<String>,
    pub tables: Vec<Table>,
}

impl Section {
    /// Returns the section as Markdown.
    pub fn markdown(&self) -> String {
        let paragraphs = self.text.iter().map(|text| format!("\n{text}\n")).collect::<String>();
        let mut all = format!("\n## {}\n{paragraphs}", self.title);
        for table in &self.tables {
            let row = |row: &Row| {
                let cells = row.figures.iter().flat_map(Figure::cells);
                row.keys.iter().cloned().chain(cells).collect()
            };
            let rows = markdown::table(&table.heads(), table.rows.iter().map(row));
            all += &format!("\n**{}**\n\n{rows}", table.title);
        }
        all
    }
}

/// Formats a difference with its sign; one that rounds to zero has the sign `+`.
fn signed(value: f64, decimals: usize) -> String {
    let text = format!("{value:+.decimals$}");
    let is_zero = text.bytes().all(|byte| !byte.is_ascii_digit() || byte == b'0');
    if is_zero { text.replace('-', "+") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_stands_beside_the_papers() {
        let mut table = Table::new("a title", &["key"]);
        let figures = vec![
            Quantity::percent("time, us", 1).figure(2.0, 4.0),
            Quantity::points("rate, %").figure(None, 4.0),
        ];
        table.row(["first".into()], figures);
        let section = Section { title: "One", text: vec!["Two.".to_owned()], tables: vec![table] };
        assert_eq!(
            section.markdown(),
            "\n## One\n\nTwo.\n\n**a title**\n\n\
             | key | time, us: paper | here | difference | rate, %: paper | here | difference |\n\
             | --- | --- | --- | --- | --- | --- | --- |\n\
             | first | 2.0 | 4.0 | +100.0 % | - | 4.00 | - |\n"
        );
    }
}
