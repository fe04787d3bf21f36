//! The text of `bindings/c/include/avsg.h`: the template `bindings/c/header.txt`, in which each line `@name name ..` becomes
//! the declarations of these items of `bindings/c/src`.

use std::ffi::OsStr;
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

/// Returns the source of each module but the root, with its path.
pub fn sources() -> Vec<(PathBuf, String)> {
    let files =
        fs::read_dir(root().join("bindings/c/src")).unwrap().map(|file| file.unwrap().path());
    let is_module =
        |path: &PathBuf| path.extension() == Some(OsStr::new("rs")) && !path.ends_with("lib.rs");
    let mut all: Vec<_> = files.filter(is_module).collect();
    all.sort();
    all.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// Returns the declarations that cbindgen generates.
fn declarations() -> Vec<String> {
    let enums = |(_, source): &(PathBuf, String)| -> Vec<String> {
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
    let with = |builder: Builder, (path, _): &(PathBuf, String)| builder.with_src(path);
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
    let mut used = 0;
    let mut text = String::new();
    for line in template().lines() {
        let Some(names) = line.strip_prefix('@') else {
            text += line;
            text.push('\n');
            continue;
        };
        for name in names.split(' ') {
            let item = declarations.iter().find(|item| declares(item, name)).expect(name);
            text += &compact(item);
            text.push('\n');
            used += 1;
        }
    }
    assert_eq!(used, declarations.len(), "each declaration is used");
    text
}
