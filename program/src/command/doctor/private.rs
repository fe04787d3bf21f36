//! A report without the names of its machine: its owner sends it to others.

use std::{env, fs};

use serde_json::Value;

/// Returns a report in which no text has a path, the machine's name or the user's name. Of a path its last part stays.
pub fn without_names(report: Value) -> Value {
    cleaned(report, &own_names())
}

fn cleaned(value: Value, own: &[String]) -> Value {
    match value {
        Value::String(text) => Value::String(without(&text, own)),
        Value::Array(all) => all.into_iter().map(|value| cleaned(value, own)).collect(),
        Value::Object(all) => {
            all.into_iter().map(|(name, value)| (name, cleaned(value, own))).collect()
        }
        other => other,
    }
}

/// Returns the names of this machine and of its user.
fn own_names() -> Vec<String> {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let variables = ["HOSTNAME", "USER", "LOGNAME", "HOME"].map(|name| env::var(name).ok());
    let names = variables.into_iter().chain([host]).flatten().flat_map(|name| {
        let name = name.trim().rsplit('/').next().unwrap_or_default().to_owned();
        let short = name.split('.').next().unwrap_or_default().to_owned();
        [name, short]
    });
    names.filter(|name| name.len() > 1).collect()
}

/// Replaces the names, and leaves of each absolute path its last part. The system's own paths stay.
fn without(text: &str, own: &[String]) -> String {
    let last = |word: &str| {
        let system = ["/proc/", "/sys/"].iter().any(|folder| word.starts_with(folder));
        let path = word.strip_prefix('/').filter(|_| !system);
        let kept = path.and_then(|path| path.trim_end_matches(['/', ':', '.']).rsplit('/').next());
        let name =
            |word: &str| if own.iter().any(|own| own == word) { "<name>" } else { word }.into();
        replaced(kept.unwrap_or(word), |c| !c.is_alphanumeric() && !"_-".contains(c), name)
    };
    replaced(text, |c| c.is_whitespace() || "\"'`(),;=".contains(c), last)
}

/// Returns a text in which each word is replaced, and what separates the words stays.
fn replaced(text: &str, ends: fn(char) -> bool, by: impl Fn(&str) -> String) -> String {
    let piece = |piece: &str| {
        let word = piece.strip_suffix(ends).unwrap_or(piece);
        by(word) + &piece[word.len()..]
    };
    text.split_inclusive(ends).map(piece).collect()
}

#[cfg(test)]
mod tests;
