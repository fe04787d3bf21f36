//! What CANN's operator compiler puts before the kernels of an operator package: the class of the
//! tiling data, and the macro that reads it. Tests of the program include this file by its path.

/// Returns that text for tiling data which `declared` declares with CANN's macros. With `known`, its
/// words, all shapes are known: the macro declares constants, and launches pass no tiling data.
pub fn tiling_header(declared: &str, known: Option<&[i32]>) -> String {
    let fields: Vec<(String, Option<usize>)> = declared.lines().filter_map(field).collect();
    let members = fields.iter().map(|(name, length)| match length {
        None => format!("    int32_t {name};\n"),
        Some(n) => format!("    int32_t {name}[{n}];\n"),
    });
    let members: String = members.collect();
    let read = match known {
        None => String::from("const AvsgTiling data = ReadTilingData(from)"),
        Some(words) => {
            let mut words = words.iter().map(i32::to_string);
            let mut take = |n: usize| words.by_ref().take(n).collect::<Vec<_>>().join(", ");
            let values = fields.iter().map(|(_, length)| match length {
                None => take(1),
                Some(n) => format!("{{{}}}", take(*n)),
            });
            let values: Vec<_> = values.collect();
            format!("static constexpr AvsgTiling data = {{{}}}", values.join(", "))
        }
    };
    HEADER.replace("@MEMBERS@", &members).replace("@READ@", &read)
}

/// Returns the name of a field, and the length of an array, from a line that declares one.
fn field(line: &str) -> Option<(String, Option<usize>)> {
    let (kind, arguments) = line.trim().strip_suffix(");")?.split_once('(')?;
    let arguments: Vec<_> = arguments.split(", ").collect();
    match (kind, &arguments[..]) {
        ("TILING_DATA_FIELD_DEF", ["int32_t", name]) => Some(((*name).into(), None)),
        ("TILING_DATA_FIELD_DEF_ARR", ["int32_t", n, name]) => {
            Some(((*name).into(), Some(n.parse().ok()?)))
        }
        _ => None,
    }
}

/// A copy of the tiling data passes through the start of UB, and ends with a barrier over all pipes.
const HEADER: &str = include_str!("operator_compiler.h.in");
