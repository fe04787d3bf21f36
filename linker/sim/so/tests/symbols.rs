//! The shared library exports exactly the symbols of the runtime. The tests of the C ABI load it by its path.

use std::process::Command;

#[test]
fn the_library_exports_only_symbols_of_the_runtime() {
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let name = "libavsg_ascendcl_sim.so";
    let places = [deps.parent().unwrap().join(name), deps.join(name)];
    let library = places.iter().find(|path| path.exists()).expect("cargo builds it for this test");
    let out = Command::new("nm").args(["-D", "--defined-only"]).arg(library).output().unwrap();
    assert!(out.status.success());
    let text = String::from_utf8(out.stdout).unwrap();
    let symbols: Vec<_> = text.lines().filter_map(|line| line.split_whitespace().last()).collect();
    assert!(symbols.iter().all(|name| name.starts_with("acl")), "{symbols:?}");
    assert!(symbols.len() > 45 && symbols.contains(&"aclrtLaunchKernelWithConfig"));
}
