//! A part of the report: figures of the paper, each beside the figure that is computed here.

use serde::Serialize;

use avsg::Result;
use avsg_cli::command::output::signed;
use avsg_cli::draw::{self, Bars};

/// How a figure is compared with the paper's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Difference {
    /// In percent of the paper's figure.
    Percent,
    /// Figure minus the paper's figure, in percentage points.
    Points,
}

/// A kind of figure, which has a column of its own.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    /// Name with unit.
    pub name: &'static str,
    /// Digits after the point.
    pub decimals: usize,
    /// How the figures are compared.
    pub difference: Difference,
}

impl Quantity {
    /// Creates a quantity whose figures are compared in percent.
    pub const fn percent(name: &'static str, decimals: usize) -> Self {
        Self { name, decimals, difference: Difference::Percent }
    }

    /// Creates a quantity in percent, whose figures are compared in percentage points.
    pub const fn points(name: &'static str) -> Self {
        Self { name, decimals: 2, difference: Difference::Points }
    }

    /// Returns the figure that is computed here beside the paper's, which may not state one.
    pub fn figure(self, paper: Option<f64>, here: f64) -> Figure {
        let Self { name, decimals, difference } = self;
        let compared = paper.map(|paper| match difference {
            Difference::Percent => 100.0 * (here / paper - 1.0),
            Difference::Points => here - paper,
        });
        let compared = compared.filter(|value| value.is_finite());
        Figure { name, paper, here, difference: compared, unit: difference, decimals }
    }
}

/// A figure of the paper and the one that is computed here.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// Name with unit.
    pub name: &'static str,
    /// The paper's figure, if it states one.
    pub paper: Option<f64>,
    /// The figure that is computed here.
    pub here: f64,
    /// The difference in its unit.
    pub difference: Option<f64>,
    /// Unit of the difference.
    pub unit: Difference,
    /// Digits after the point.
    #[serde(skip)]
    pub decimals: usize,
}

impl Figure {
    /// Returns the paper's figure, the figure of here and the difference as text.
    pub fn cells(&self) -> [String; 3] {
        let number = |value: f64| format!("{value:.*}", self.decimals);
        let unit = if self.unit == Difference::Percent { " %" } else { "" };
        let decimals = if self.unit == Difference::Percent { 1 } else { 2 };
        let difference = |value: f64| signed(value, decimals) + unit;
        let dash = || "-".to_owned();
        [
            self.paper.map_or_else(dash, number),
            number(self.here),
            self.difference.map_or_else(dash, difference),
        ]
    }
}

/// One line of a table.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What the figures belong to, one text per key.
    pub keys: Vec<String>,
    /// The figures.
    pub figures: Vec<Figure>,
}

/// A table; all rows have the same keys and kinds of figures.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// What is compared.
    pub title: String,
    /// Names of the keys.
    pub keys: Vec<&'static str>,
    /// The rows.
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

    /// Returns the headings and the lines of the table as text.
    pub fn text(&self) -> (Vec<String>, Vec<Vec<String>>) {
        let mut heads: Vec<String> = self.keys.iter().map(|&key| key.to_owned()).collect();
        for figure in self.rows.first().iter().flat_map(|row| &row.figures) {
            heads.extend([format!("{}: paper", figure.name), "here".into(), "difference".into()]);
        }
        let line = |row: &Row| {
            row.keys.iter().cloned().chain(row.figures.iter().flat_map(Figure::cells)).collect()
        };
        (heads, self.rows.iter().map(line).collect())
    }

    /// Returns the root mean square of the differences of figure number `at`.
    pub fn rms(&self, at: usize) -> f64 {
        let all = self.rows.iter().filter_map(|row| row.figures.get(at)?.difference);
        let (n, sum) = all.fold((0.0, 0.0), |(n, sum), value| (n + 1.0, sum + value * value));
        (sum / f64::max(n, 1.0)).sqrt()
    }

    /// Draws figure number `at` of the rows that `shown` accepts, in groups that `label` names.
    pub fn chart(
        &self,
        title: &str,
        at: usize,
        shown: impl Fn(&Row) -> bool,
        label: impl Fn(&Row) -> String,
    ) -> Result<Chart> {
        let rows = self.rows.iter().filter(|row| shown(row));
        Chart::new(title, rows.map(|row| (label(row), &row.figures[at])))
    }
}

/// A chart as SVG text.
#[derive(Clone, Debug, Serialize)]
pub struct Chart {
    /// Title.
    pub title: String,
    /// The text of the SVG element.
    #[serde(skip)]
    pub svg: String,
}

impl Chart {
    /// Draws figures beside the paper's as bars, each in a group of its own.
    pub fn new<'a>(
        title: &str,
        figures: impl Iterator<Item = (String, &'a Figure)>,
    ) -> Result<Self> {
        let (groups, figures): (Vec<String>, Vec<&Figure>) = figures.unzip();
        let values = |value: fn(&Figure) -> f64| figures.iter().map(|f| value(f)).collect();
        let series = [
            Bars { name: "paper".into(), values: values(|f| f.paper.unwrap_or(f64::NAN)) },
            Bars { name: "here".into(), values: values(|f| f.here) },
        ];
        let name = figures.first().map_or("", |figure| figure.name);
        Ok(Self { title: title.into(), svg: draw::bars_svg(title, name, &groups, &series)? })
    }
}

/// A section of the report.
#[derive(Clone, Debug, Serialize)]
pub struct Section {
    /// The name that `--sections` takes.
    pub name: &'static str,
    /// Heading.
    pub title: &'static str,
    /// Paragraphs: where the paper states the figures, how those of here are made, how they agree.
    pub text: Vec<String>,
    /// Tables.
    pub tables: Vec<Table>,
    /// Charts, which only the HTML page shows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub charts: Vec<Chart>,
}
