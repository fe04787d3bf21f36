//! The report as Markdown and as one HTML file.

use super::section::{Section, Table};

/// The command line that writes a report, and the report itself.
pub struct Page<'a> {
    /// What a reader can do after the page.
    pub lead: &'a [String],
    /// The sections.
    pub sections: &'a [Section],
    /// What the program cannot reproduce, and why: (what, why).
    pub missing: &'a [(&'static str, &'static str)],
}

/// The heading of the page.
const TITLE: &str = "The paper's figures";
/// The heading of the list of figures that cannot be reproduced.
const MISSING: &str = "What cannot be reproduced here";

/// Returns the page as Markdown; charts are left out.
pub fn markdown(page: &Page<'_>) -> String {
    let mut text = format!("# {TITLE}\n");
    for paragraph in page.lead {
        text += &format!("\n{paragraph}\n");
    }
    let table = |heads: &[String], rows: &[Vec<String>]| {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let rule = vec!["---".to_owned(); heads.len()];
        let rows: String = rows.iter().map(|row| line(row)).collect();
        format!("\n{}{}{rows}", line(heads), line(&rule))
    };
    for section in page.sections {
        text += &format!("\n## {}\n", section.title);
        for paragraph in &section.text {
            text += &format!("\n{paragraph}\n");
        }
        for one in &section.tables {
            let (heads, rows) = one.text();
            text += &format!("\n**{}**\n{}", one.title, table(&heads, &rows));
        }
    }
    if !page.missing.is_empty() {
        let rows: Vec<_> =
            page.missing.iter().map(|&(what, why)| vec![what.into(), why.into()]).collect();
        let heads = ["figure", "reason"].map(String::from);
        text += &format!("\n## {MISSING}\n{}", table(&heads, &rows));
    }
    text
}

/// The style of the HTML page.
const STYLE: &str = "body{font:16px/1.5 sans-serif;max-width:70em;margin:2em auto;padding:0 1em}\
table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:1em 0}\
th,td{border-bottom:1px solid #ccc;padding:.2em .7em;text-align:right}\
th:first-child,td:first-child{text-align:left}\
.reasons td,.reasons th{text-align:left}caption{text-align:left;font-weight:bold}\
svg{max-width:100%;height:auto}code{background:#f3f3f3}";

/// Returns the page as HTML with the charts inline; the file needs no other file.
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
        text += &format!("<h2>{}</h2>\n{}", escape(section.title), paragraphs(&section.text));
        text += &section.charts.iter().map(|chart| chart.svg.as_str()).collect::<String>();
        text += &section.tables.iter().map(html_table).collect::<String>();
    }
    if !page.missing.is_empty() {
        text += &format!("<h2>{MISSING}</h2>\n<table class=\"reasons\">\n");
        text += &html_line(&["figure", "reason"].map(String::from), "th");
        for &(what, why) in page.missing {
            text += &html_line(&[what.into(), why.into()], "td");
        }
        text += "</table>\n";
    }
    text + "</body>\n</html>\n"
}

fn html_table(table: &Table) -> String {
    let (heads, rows) = table.text();
    let rows: String = rows.iter().map(|row| html_line(row, "td")).collect();
    let caption = escape(&table.title);
    format!("<table>\n<caption>{caption}</caption>\n{}{rows}</table>\n", html_line(&heads, "th"))
}

fn html_line(cells: &[String], tag: &str) -> String {
    let cell = |cell: &String| format!("<{tag}>{}</{tag}>", inline(cell));
    format!("<tr>{}</tr>\n", cells.iter().map(cell).collect::<String>())
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Escapes a text and turns its spans between backquotes into code.
fn inline(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let part = |(at, part): (usize, &str)| match at % 2 {
        0 => escape(part),
        _ => format!("<code>{}</code>", escape(part)),
    };
    parts.map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::section::Quantity;

    #[test]
    fn both_forms_have_every_figure_and_escape_text() {
        let mut table = Table::new("a < b", &["key"]);
        let figures = vec![
            Quantity::percent("time, us", 1).figure(Some(2.0), 3.0),
            Quantity::points("rate, %").figure(None, 4.0),
        ];
        table.row(["first".into()], figures);
        let chart = table.chart("title", 0, |_| true, |row| row.keys[0].clone()).unwrap();
        let text = vec!["Run `avsg-research paper`.".to_owned()];
        let section = Section {
            name: "one",
            title: "One & two",
            text,
            tables: vec![table],
            charts: vec![chart],
        };
        let page = Page { lead: &[], sections: &[section], missing: &[("a figure", "no device")] };
        let text = markdown(&page);
        assert!(text.contains("| first | 2.0 | 3.0 | +50.0 % | - | 4.00 | - |\n"), "{text}");
        assert!(text.contains("| a figure | no device |\n"), "{text}");
        let text = html(&page);
        for part in
            ["<svg", "One &amp; two", "a &lt; b", "<code>avsg-research paper</code>", "+50.0 %"]
        {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }
}
