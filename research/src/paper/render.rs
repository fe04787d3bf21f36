//! The report as Markdown.

use super::section::Section;

/// Returns the report as Markdown: paragraphs, sections, and a table of the figures that are `missing`,
/// each with the reason.
pub fn markdown(lead: &[String], sections: &[Section], missing: &[(&str, &str)]) -> String {
    let paragraphs = |all: &[String]| all.iter().map(|p| format!("\n{p}\n")).collect::<String>();
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let start = |heads: Vec<String>| {
        let rule = vec!["---".to_owned(); heads.len()];
        format!("\n{}{}", line(heads), line(rule))
    };
    let mut text = format!("# The paper's figures\n{}", paragraphs(lead));
    for section in sections {
        text += &format!("\n## {}\n{}", section.title, paragraphs(&section.text));
        for table in &section.tables {
            text += &format!("\n**{}**\n{}", table.title, start(table.heads()));
            for row in &table.rows {
                let cells = row.figures.iter().flat_map(|figure| figure.cells());
                text += &line(row.keys.iter().cloned().chain(cells).collect());
            }
        }
    }
    text += "\n## What cannot be reproduced here\n";
    text += &start(["figure", "reason"].map(String::from).into());
    text + &missing.iter().map(|m| line(vec![m.0.into(), m.1.into()])).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::section::{Quantity, Table};

    #[test]
    fn the_page_has_every_figure_and_every_missing_one() {
        let mut table = Table::new("a title", &["key"]);
        let figures = vec![
            Quantity::percent("time, us", 1).figure(2.0, 4.0),
            Quantity::points("rate, %").figure(None, 4.0),
        ];
        table.row(["first".into()], figures);
        let section = Section { title: "One", text: vec!["Two.".to_owned()], tables: vec![table] };
        let text = markdown(&["Lead.".to_owned()], &[section], &[("a figure", "no device")]);
        for part in [
            "# The paper's figures\n\nLead.\n\n## One\n\nTwo.\n\n**a title**\n\n",
            "| key | time, us: paper | here | difference | rate, %: paper | here | difference |\n",
            "| first | 2.0 | 4.0 | +100.0 % | - | 4.00 | - |\n",
            "| a figure | no device |\n",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }
}
