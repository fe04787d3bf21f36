//! The text of `bindings/c/include/avsg.h`: the template `bindings/c/header.txt`, in which each line `@module` becomes the
//! declarations of a module of `bindings/c/src` in the order of its source.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use cbindgen::{Builder, Config, DocumentationStyle, EnumConfig, ExportConfig, Language, Style};

/// Characters of a line.
const WIDTH: usize = 104;

/// Returns the folder of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn template() -> String {
    fs::read_to_string(root().join("bindings/c/header.txt")).unwrap()
}

/// Returns the source of each module in the header, by its name.
pub fn sources() -> Vec<(String, String)> {
    let read = |name: &str| {
        let path = root().join("bindings/c/src").join(name).with_extension("rs");
        (name.to_owned(), fs::read_to_string(path).unwrap())
    };
    template().lines().filter_map(|line| line.strip_prefix('@')).map(read).collect()
}

/// Returns the names of the public items of a module in the order of its source.
fn items(source: &str) -> Vec<&str> {
    let kinds = ["pub struct ", "pub enum ", "pub type ", "pub const "];
    let names = source.lines().filter_map(|line| {
        let item = kinds.iter().find_map(|kind| line.strip_prefix(kind));
        item.or_else(|| Some(line.strip_prefix("pub ")?.split_once("extern \"C\" fn ")?.1))
    });
    names
        .map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap())
        .collect()
}

/// Returns the declarations that cbindgen generates.
fn declarations() -> Vec<String> {
    let enums = |(_, source): &(String, String)| -> Vec<String> {
        let names = source.split("\npub enum ").skip(1);
        names.map(|rest| rest.split(' ').next().unwrap().to_owned()).collect()
    };
    let config = Config {
        language: Language::C,
        style: Style::Both,
        usize_is_size_t: true,
        no_includes: true,
        // `wrapped` breaks lines.
        line_length: 10_000,
        documentation_style: DocumentationStyle::Cxx,
        export: ExportConfig {
            include: sources().iter().flat_map(enums).collect(),
            ..Default::default()
        },
        enumeration: EnumConfig { prefix_with_name: false, ..Default::default() },
        ..Default::default()
    };
    let with = |builder: Builder, (name, _): &(String, String)| {
        builder.with_src(root().join("bindings/c/src").join(name).with_extension("rs"))
    };
    let mut bytes = Vec::new();
    let builder = sources().iter().fold(Builder::new().with_config(config), with);
    builder.generate().unwrap().write(&mut bytes);
    let text = String::from_utf8(bytes).unwrap();
    text.split("\n\n").map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
}

/// Returns whether a declaration is that of this name.
fn declares(item: &str, name: &str) -> bool {
    let forms = ["struct % {", "struct % %;", "enum % {", "#define % ", "(*%)(", " %(", "*%("];
    let code = item.lines().find(|line| !line.starts_with("///")).unwrap();
    forms.iter().any(|form| code.contains(&form.replace('%', name)))
}

/// Puts the comment of one line behind the field or constant after it, where both fit in a line, and
/// breaks long lines of functions.
fn compact(item: &str) -> String {
    let mut out = String::new();
    let mut lines = item.lines().peekable();
    let mut in_comment = false;
    while let Some(line) = lines.next() {
        let comment = line.strip_prefix("  /// ");
        let next = lines.peek().copied().unwrap_or_default();
        let joined = comment.map(|comment| format!("{next}  ///< {comment}"));
        let alone = !in_comment && !next.starts_with("  /// ");
        in_comment = comment.is_some();
        match joined.filter(|joined| alone && joined.len() <= WIDTH) {
            Some(joined) => {
                lines.next();
                in_comment = false;
                out += &joined;
            }
            // A function names types that are declared.
            None if line.contains('(') && !line.trim_start().starts_with("///") => {
                out += &wrapped(&line.replace("struct ", "").replace("enum ", ""));
            }
            None => out += line,
        }
        out.push('\n');
    }
    out
}

/// Breaks a line behind commas.
fn wrapped(line: &str) -> String {
    let (mut out, mut length) = (String::new(), 0);
    for part in line.split_inclusive(", ") {
        if length + part.trim_end().len() > WIDTH && length > 0 {
            out.truncate(out.trim_end().len());
            out += "\n    ";
            length = 4;
        }
        out += part;
        length += part.len();
    }
    out
}

/// Generates the header.
pub fn header() -> String {
    let declarations = declarations();
    let sources: HashMap<_, _> = sources().into_iter().collect();
    let mut used = 0;
    let mut text = String::new();
    for line in template().lines() {
        let Some(module) = line.strip_prefix('@') else {
            text += line;
            text.push('\n');
            continue;
        };
        for name in items(&sources[module]) {
            let item = declarations.iter().find(|item| declares(item, name)).expect(name);
            text += &compact(item);
            text.push('\n');
            used += 1;
        }
    }
    assert_eq!(used, declarations.len(), "each declaration is used");
    text
}
