//! Names decide nothing: a tape with other names has the same calls, registers, widths and addresses.

use avsg_device::params::{Lifetime, Params};
use avsg_linker::ascend::text;
use avsg_linker::record::record_stage_one;
use avsg_linker::tape::{Kind, Tape, Value};
use std::collections::BTreeMap;

use crate::tier;

/// Returns a body in which a tensor is called by its address and a variable by the order of its
/// definition.
fn without_names(body: &str) -> String {
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let mut rest = String::new();
    let lines = body.lines().filter(|line| !line.trim_start().starts_with("//"));
    let body: Vec<_> = lines.collect();
    for statement in body.join("\n").split(';') {
        let Some((_, tensors)) = statement.split_once("const LocalTensor<") else {
            for variables in statement.split("int32_t ").skip(1).filter(|v| v.contains(" = ")) {
                for name in variables.split(", ").filter_map(|v| Some(v.split_once(" = ")?.0)) {
                    let number = names.values().filter(|name| name.starts_with('v')).count();
                    names.entry(name.into()).or_insert_with(|| format!("v{number}"));
                }
            }
            rest += statement;
            rest.push(';');
            continue;
        };
        let (first, others) = tensors.split_once(')').expect("an address");
        let (first, address) = first.split_once(" = ").expect("a name");
        let first = first.split_once("> ").expect("a type").1;
        let others = others.split(',').filter_map(|other| Some(other.split_once(" = ")?.0));
        names.extend([first].into_iter().chain(others).map(|n| (n.trim().into(), address.into())));
    }
    let mut out = String::new();
    for word in rest.split_inclusive(|c: char| !c.is_alphanumeric() && c != '_') {
        let name = word.trim_end_matches(|c: char| !c.is_alphanumeric() && c != '_');
        // A name after a point is one of a struct.
        let own = names.get(name).filter(|_| !out.ends_with('.'));
        out += own.map_or(name, |name| name);
        out += &word[name.len()..];
    }
    out
}

/// Returns the tape with one name for all values and all words of columns, or without names of
/// values, and with other names of working columns.
fn renamed(tape: &Tape, name: Option<&'static str>) -> Tape {
    let mut tape = tape.clone();
    let values = (0..tape.types.len() as u32).map(Value);
    tape.names = values.filter_map(|value| Some((value, name?))).collect();
    let working = |kind: Kind| matches!(kind, Kind::Words | Kind::List { .. });
    let columns = tape.columns.iter_mut().filter(|c| working(c.kind) && !c.resident);
    for (n, column) in columns.enumerate() {
        column.name = format!("z_{}_column", (b'z' - n as u8) as char);
        column.items.iter_mut().for_each(|item| *item = name.unwrap_or("word"));
    }
    tape
}

#[test]
fn names_decide_no_register_no_width_and_no_call() {
    let wide = Params { spread: 2, retries: 7, ..Params::wide(2048, 1, 8192) };
    let paged = Params { page: 16, lifetime: Lifetime::Learned, ..Params::wide(900, 2, 2048) };
    for p in [wide, paged, Params::paper(512, 2, 2048)] {
        let tape = record_stage_one(&p).unwrap();
        let emit = |tape: &Tape| text(&p, tape, 184 * 1024).unwrap();
        let (own, body) = (emit(&tape), without_names(&emit(&tape).body));
        assert!(!body.contains("missLen") && body.contains("Local<int32_t>("), "{body}");
        let names = [Some("lanes"), None, Some("x")];
        for name in names.into_iter().take(if tier::thorough() { 3 } else { 1 }) {
            let other = emit(&renamed(&tape, name));
            assert_ne!(own.body, other.body);
            let other_body = without_names(&other.body);
            let lines = body.lines().zip(other_body.lines()).enumerate();
            lines.for_each(|(n, (a, b))| assert_eq!(a, b, "{p}, {name:?}, line {n}"));
            assert_eq!((&own.ops, own.ub_bytes), (&other.ops, other.ub_bytes), "{p}, {name:?}");
        }
    }
}
