//! Tells the program the commit that it is built from.

use std::env;
use std::process::Command;

fn main() {
    // A package that is built from an archive may name the commit in this variable.
    println!("cargo::rerun-if-env-changed=AVSG_COMMIT");
    let commit = env::var("AVSG_COMMIT").ok().or_else(|| git(&["rev-parse", "--short=9", "HEAD"]));
    let commit = commit.map_or_else(String::new, |commit| format!(" ({commit})"));
    println!("cargo::rustc-env=AVSG_COMMIT={commit}");
    // Git appends to this file whenever the commit of the checkout changes.
    match git(&["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"]) {
        Some(log) => println!("cargo::rerun-if-changed={log}"),
        None => println!("cargo::rerun-if-changed=build.rs"),
    }
}

/// Returns what git prints; `None` if there is no git or no repository.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
