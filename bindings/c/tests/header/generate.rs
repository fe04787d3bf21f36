//! The text of `bindings/c/include/avsg.h`: the template `bindings/c/header.txt`, in which each line `@name name ..` becomes
//! the declarations of these items of `bindings/c/src`.

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

/// Returns the declarations that cbindgen generates, also those that no function names.
fn declarations() -> Vec<String> {
    let template = template();
    let names = template.lines().filter_map(|line| line.strip_prefix('@'));
    let config = Config {
        language: Language::C,
        style: Style::Both,
        usize_is_size_t: true,
        no_includes: true,
        // `wrapped` breaks lines.
        line_length: 10_000,
        documentation_style: DocumentationStyle::Cxx,
        export: ExportConfig {
            include: names.flat_map(|names| names.split(' ').map(str::to_owned)).collect(),
            ..Default::default()
        },
        enumeration: EnumConfig { prefix_with_name: false, ..Default::default() },
        ..Default::default()
    };
    let files = fs::read_dir(root().join("bindings/c/src")).unwrap();
    let mut all: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    all.retain(|path| path.extension().is_some_and(|end| end == "rs") && !path.ends_with("lib.rs"));
    all.sort();
    let mut bytes = Vec::new();
    let builder = all.iter().fold(Builder::new().with_config(config), Builder::with_src);
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
