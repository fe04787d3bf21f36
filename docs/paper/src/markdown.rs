//! Tables of Markdown, which every command prints.

/// Returns a table.
pub fn table<S: AsRef<str>>(heads: &[S], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
    let heads: Vec<&str> = heads.iter().map(AsRef::as_ref).collect();
    let rule = vec!["---"; heads.len()];
    let rows = rows.into_iter().map(|row| line(row.iter().map(String::as_str).collect()));
    [line(heads), line(rule)].into_iter().chain(rows).collect()
}
