//! The spelling of names in emitted text.

use std::collections::BTreeSet;

/// The words of C++ without those that contain `_`, which no name has, and a type of AscendC.
const RESERVED: &str = "\
    alignas alignof and asm auto bitand bitor bool break case catch char class compl concept const \
    consteval constexpr constinit continue decltype default delete do double else enum explicit \
    export extern false float for friend goto if inline int long mutable namespace new noexcept not \
    nullptr operator or private protected public register requires return short signed \
    sizeof static struct switch template this throw true try typedef typeid typename union unsigned \
    using virtual void volatile while xor \
    half";

/// Returns a name in camel case: `idsStride` for `ids_stride`. A reserved word gets a `_` behind it.
pub fn camel(name: &str) -> String {
    let mut up = false;
    let letter = |c: char| {
        let c = (c != '_').then(|| if up { c.to_ascii_uppercase() } else { c });
        up = c.is_none();
        c
    };
    let name: String = name.chars().filter_map(letter).collect();
    if RESERVED.split_whitespace().any(|word| word == name) { name + "_" } else { name }
}

/// Returns a name in camel case that is not among `taken`, with a number if it would be, and adds it
/// to them.
pub fn fresh(taken: &mut BTreeSet<String>, name: &str) -> String {
    let name = camel(name);
    let numbered = (2..).map(|n| format!("{name}{n}"));
    let mut all = std::iter::once(name.clone()).chain(numbered);
    let name = all.find(|name| !taken.contains(name)).unwrap_or_default();
    taken.insert(name.clone());
    name
}
