//! Tests of what a report leaves out.

use super::*;

#[test]
fn paths_and_names_are_left_out() {
    let own = ["node7.example.org", "node7", "kim"].map(String::from);
    for (text, expected) in [
        ("opening /home/kim/lib/libascendcl.so: no file", "opening libascendcl.so no file"),
        ("in (/opt/a, /b/c/) on node7", "in (a, c) on <name>"),
        ("host=node7.example.org user=kim", "host=<name>.example.org user=<name>"),
        ("/home/kim", "<name>"),
        ("12 GB/s, [rows, GB/s], node77, kimono", "12 GB/s, [rows, GB/s], node77, kimono"),
        ("set /proc/sys/vm/nr_hugepages to 4", "set /proc/sys/vm/nr_hugepages to 4"),
        ("", ""),
    ] {
        assert_eq!(without(text, &own), expected);
    }
    let value = serde_json::json!({"a": ["/x/y", 1, null], "b": {"c": "kim"}});
    let expected = serde_json::json!({"a": ["y", 1, null], "b": {"c": "<name>"}});
    assert_eq!(cleaned(value, &own), expected);
}
