//! Joins a kernel and its headers to one text.

/// Returns a text in which the first `#include` of each of these headers is replaced by the header,
/// and each later one is left out.
pub fn one_file(text: &str, headers: &[(&str, String)]) -> String {
    paste(text, headers, &mut Vec::new())
}

fn paste<'h>(text: &'h str, headers: &'h [(&str, String)], seen: &mut Vec<&'h str>) -> String {
    let line = |line: &'h str| {
        let name = line.strip_prefix("#include \"").and_then(|rest| rest.strip_suffix('"'));
        let Some((name, header)) = headers.iter().find(|(header, _)| name == Some(header)) else {
            return format!("{line}\n");
        };
        if seen.contains(name) {
            return String::new();
        }
        seen.push(name);
        paste(header, headers, seen)
    };
    text.lines().filter(|&line| line != "#pragma once").map(line).collect()
}
