//! The spelling of names in emitted text.

/// Returns a name in camel case: `idsStride` for `ids_stride`.
pub fn camel(name: &str) -> String {
    let mut up = false;
    let letter = |c: char| {
        let c = (c != '_').then(|| if up { c.to_ascii_uppercase() } else { c });
        up = c.is_none();
        c
    };
    name.chars().filter_map(letter).collect()
}
