//! The report as Markdown and as one HTML file.

use super::section::{Section, Table};

/// What a report consists of.
pub struct Page<'a> {
    /// Paragraphs before the sections.
    pub lead: &'a [String],
    pub sections: &'a [Section],
    /// What the program cannot reproduce, and why: (what, why).
    pub missing: &'a [(&'static str, &'static str)],
}

/// The heading of the page.
const TITLE: &str = "The paper's figures";
/// The heading of the list of figures that cannot be reproduced.
const MISSING: &str = "What cannot be reproduced here";

/// Returns the page as Markdown.
pub fn markdown(page: &Page<'_>) -> String {
    let mut text = format!("# {TITLE}\n");
    let paragraphs = |all: &[String]| all.iter().map(|p| format!("\n{p}\n")).collect::<String>();
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let start = |heads: Vec<String>| {
        let rule = vec!["---".to_owned(); heads.len()];
        format!("\n{}{}", line(heads), line(rule))
    };
    text += &paragraphs(page.lead);
    for section in page.sections {
        text += &format!("\n## {}\n{}", section.title, paragraphs(&section.text));
        for table in &section.tables {
            text += &format!("\n**{}**\n{}", table.title, start(table.heads()));
            for row in &table.rows {
                let cells = row.figures.iter().flat_map(|figure| figure.cells());
                text += &line(row.keys.iter().cloned().chain(cells).collect());
            }
        }
    }
    text += &format!("\n## {MISSING}\n{}", start(["figure", "reason"].map(String::from).into()));
    text + &page.missing.iter().map(|m| line(vec![m.0.into(), m.1.into()])).collect::<String>()
}

/// The style of the HTML page.
const STYLE: &str = "body{font:16px/1.5 sans-serif;max-width:70em;margin:2em auto;padding:0 1em}\
table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:1em 0}\
th,td{border-bottom:1px solid #ccc;padding:.2em .7em;text-align:right}\
th:first-child,td:first-child{text-align:left}\
.reasons td,.reasons th{text-align:left}caption{text-align:left;font-weight:bold}\
code{background:#f3f3f3}";

/// The colours of the bars of the paper's figures and of those of here.
const COLOURS: [&str; 2] = ["#f5c9a8", "#a8d3ee"];

/// Returns the page as HTML; the file needs no other file. A bar in the cell of a figure is as long as
/// the figure is in relation to the largest one of its two columns.
pub fn html(page: &Page<'_>) -> String {
    let mut text = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{TITLE}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<h1>{TITLE}</h1>\n"
    );
    let paragraphs = |text: &[String]| -> String {
        text.iter().map(|paragraph| format!("<p>{}</p>\n", inline(paragraph))).collect()
    };
    text += &paragraphs(page.lead);
    for section in page.sections {
        text += &format!("<h2>{}</h2>\n{}", inline(section.title), paragraphs(&section.text));
        text += &section.tables.iter().map(html_table).collect::<String>();
    }
    text += &format!("<h2>{MISSING}</h2>\n<table class=\"reasons\">\n");
    text += &line(["figure", "reason"].map(|head| cell("th", "", head)));
    for (what, why) in page.missing {
        text += &line([what, why].map(|text| cell("td", "", text)));
    }
    text + "</table>\n</body>\n</html>\n"
}

fn html_table(table: &Table) -> String {
    let heads = line(table.heads().iter().map(|head| cell("th", "", head)));
    let mut text = format!("<table>\n<caption>{}</caption>\n{heads}", inline(&table.title));
    for row in &table.rows {
        let mut cells: Vec<String> = row.keys.iter().map(|key| cell("td", "", key)).collect();
        for (at, figure) in row.figures.iter().enumerate() {
            let bar = |value: f64, colour: &str| {
                let percent = 100.0 * value / table.largest(at);
                format!(
                    " style=\"background:linear-gradient(90deg,{colour} {percent:.0}%,#0000 0)\""
                )
            };
            let [paper, here, difference] = figure.cells();
            let papers_bar = figure.paper.map(|value| bar(value, COLOURS[0])).unwrap_or_default();
            cells.push(cell("td", &papers_bar, &paper));
            cells.push(cell("td", &bar(figure.here, COLOURS[1]), &here));
            cells.push(cell("td", "", &difference));
        }
        text += &line(cells);
    }
    text + "</table>\n"
}

fn line(cells: impl IntoIterator<Item = String>) -> String {
    format!("<tr>{}</tr>\n", cells.into_iter().collect::<String>())
}

fn cell(tag: &str, attributes: &str, text: &str) -> String {
    format!("<{tag}{attributes}>{}</{tag}>", inline(text))
}

/// Escapes a text, and turns its spans between backquotes into code and those between two asterisks
/// into bold text.
fn inline(text: &str) -> String {
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    spans(&spans(&escaped, "`", "code"), "**", "b")
}

fn spans(text: &str, mark: &str, tag: &str) -> String {
    let part = |(at, part): (usize, &str)| match at % 2 {
        0 => part.to_owned(),
        _ => format!("<{tag}>{part}</{tag}>"),
    };
    text.split(mark).enumerate().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::section::Quantity;

    #[test]
    fn both_forms_have_every_figure_and_escape_text() {
        let mut table = Table::new("a < b", &["key"]);
        let figures = vec![
            Quantity::percent("time, us", 1).figure(2.0, 4.0),
            Quantity::points("rate, %").figure(None, 4.0),
        ];
        table.row(["first".into()], figures);
        let text = vec!["Run `avsg-research paper` **now**.".to_owned()];
        let section = Section { title: "One & two", text, tables: vec![table] };
        let page = Page { lead: &[], sections: &[section], missing: &[("a figure", "no device")] };
        let text = markdown(&page);
        assert!(text.contains("| first | 2.0 | 4.0 | +100.0 % | - | 4.00 | - |\n"), "{text}");
        assert!(text.contains("| a figure | no device |\n"), "{text}");
        let text = html(&page);
        for part in [
            "One &amp; two",
            "a &lt; b",
            "<code>avsg-research paper</code> <b>now</b>",
            "#f5c9a8 50%,#0000 0)\">2.0</td>",
            "#a8d3ee 100%,#0000 0)\">4.0</td><td>+100.0 %</td><td>-</td>",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }
}
