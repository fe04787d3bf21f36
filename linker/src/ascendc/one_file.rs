//! A kernel and its headers as one text.

/// A text with each of these headers in the place of its first `#include`.
pub(super) fn one_file(text: &str, headers: &[(&str, String)]) -> String {
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
