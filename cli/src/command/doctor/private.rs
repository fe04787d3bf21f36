//! A report without the names of its machine: its owner sends it to others.

use std::{env, fs};

use serde_json::Value;

/// Returns a report in which no text has a path, the machine's name or the user's name. Of a path its last part stays.
pub fn without_names(report: Value) -> Value {
    let own = own_names();
    cleaned(report, &|text| without(text, &own))
}

fn cleaned(value: Value, clean: &impl Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(clean(&text)),
        Value::Array(all) => all.into_iter().map(|value| cleaned(value, clean)).collect(),
        Value::Object(all) => {
            all.into_iter().map(|(name, value)| (name, cleaned(value, clean))).collect()
        }
        other => other,
    }
}

/// Returns the names of this machine and of its user.
fn own_names() -> Vec<String> {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let home = env::var("HOME").ok();
    let user = home.and_then(|home| Some(home.rsplit('/').next()?.to_owned()));
    let variables = ["HOSTNAME", "USER", "LOGNAME"].map(|name| env::var(name).ok());
    let names = variables.into_iter().chain([host, user]).flatten();
    let names = names.flat_map(|name| {
        let name = name.trim().to_owned();
        let short = name.split('.').next().unwrap_or_default().to_owned();
        [name, short]
    });
    names.filter(|name| name.len() > 1).collect()
}

/// Replaces the names, and leaves of each absolute path its last part. The system's own paths stay.
fn without(text: &str, own: &[String]) -> String {
    let ends_path = |c: char| c.is_whitespace() || "\"'`(),;".contains(c);
    let in_word = |c: char| c.is_alphanumeric() || "_-".contains(c);
    let (mut out, mut rest) = (String::new(), text);
    while let Some(first) = rest.chars().next() {
        let path = first == '/' && !out.ends_with(|c: char| in_word(c) || c == '.');
        let ends = |c: char| if path { ends_path(c) } else { !in_word(c) };
        let length = rest
            .find(ends)
            .filter(|&at| at > 0)
            .unwrap_or_else(|| if ends(first) { first.len_utf8() } else { rest.len() });
        let (part, after) = rest.split_at(length);
        let system = ["/proc/", "/sys/"].iter().any(|folder| part.starts_with(folder));
        let kept = match path && !system {
            true => part.trim_end_matches(['/', ':', '.']).rsplit('/').next().unwrap_or_default(),
            false => part,
        };
        out += if own.iter().any(|name| name == kept) { "<name>" } else { kept };
        rest = after;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_names_are_left_out() {
        let own = ["node7.example.org", "node7", "kim"].map(String::from);
        for (text, expected) in [
            ("opening /home/kim/lib/libascendcl.so: no file", "opening libascendcl.so no file"),
            ("in (/opt/a, /b/c/) on node7", "in (a, c) on <name>"),
            ("host=node7.example.org user=kim", "host=<name>.example.org user=<name>"),
            ("/home/kim", "<name>"),
            ("12 GB/s, [rows, GB/s], node77, kimono", "12 GB/s, [rows, GB/s], node77, kimono"),
            ("set /proc/sys/vm/nr_hugepages to 4", "set /proc/sys/vm/nr_hugepages to 4"),
            ("", ""),
        ] {
            assert_eq!(without(text, &own), expected);
        }
        let value = serde_json::json!({"a": ["/x/y", 1, null], "b": {"c": "kim"}});
        let clean = cleaned(value, &|text| without(text, &own));
        assert_eq!(clean, serde_json::json!({"a": ["y", 1, null], "b": {"c": "<name>"}}));
    }
}
