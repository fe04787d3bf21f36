//! A name means one thing: at most two product types have the same name, and at most three files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The folders whose names are counted.
const ROOMS: [&str; 5] = ["device", "host", "linker", "program", "bindings/c"];
/// Types that each command or part has, and names of files that tools or conventions require.
const COMMON: [&str; 6] = ["Options", "Report", "main.rs", "lib.rs", "build.rs", "tests.rs"];

/// Returns the files of Rust below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let files = files.into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs"));
    let below = folders.iter().filter(|path| !path.ends_with("target")).flat_map(|f| sources(f));
    files.chain(below).collect()
}

/// Returns the name of the type that a line defines outside of a block.
fn defined(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub ").unwrap_or(line);
    let line =
        line.strip_prefix("pub(").map_or(Some(line), |rest| Some(rest.split_once(") ")?.1))?;
    let line = line.strip_prefix("unsafe ").unwrap_or(line);
    let (kind, rest) = line.split_once(' ')?;
    let is_type = ["struct", "enum", "union", "trait", "type"].contains(&kind);
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    is_type.then_some(&rest[..end])
}

#[test]
fn at_most_two_product_types_and_three_files_have_the_same_name() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut named: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in ROOMS.iter().flat_map(|room| sources(&root.join(room))) {
        let place = path.strip_prefix(root).unwrap().display().to_string();
        let mut add = |name: &str| named.entry(name.to_owned()).or_default().push(place.clone());
        add(path.file_name().unwrap().to_str().unwrap());
        let is_product =
            !["tests/", "tests.rs", "testkit/"].iter().any(|part| place.contains(part));
        let text = fs::read_to_string(&path).unwrap();
        text.lines().filter(|_| is_product).filter_map(defined).for_each(&mut add);
    }
    named.retain(|name, places| {
        let most = if name.ends_with(".rs") { 3 } else { 2 };
        places.len() > most && !COMMON.contains(&name.as_str())
    });
    assert!(named.is_empty(), "rename some of {named:#?}");
}
