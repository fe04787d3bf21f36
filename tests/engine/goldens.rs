//! The generated headers of the default geometry are committed, so that a review shows how a change
//! alters them. The other files of its kernels are hand-written, and emitted as they are. `BLESS=1 cargo test --test engine goldens` writes them.

use std::fs;
use std::path::Path;

use avsg::device::params::Params;
use avsg_linker::ascend::ascendc;
use avsg_linker::ascend::kernels::Abi;

#[test]
fn emitted_kernels_are_the_committed_ones() {
    let p = Params { spread: 2, retries: 7, ..Params::wide(2048, 1, 8192) };
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/ascendc");
    let bless = std::env::var_os("BLESS").is_some_and(|bless| bless == "1");
    let kernels = ascendc(&p, Abi::Direct).expect("the default geometry");
    let mut files = Vec::new();
    let written = Path::new(env!("CARGO_MANIFEST_DIR")).join("linker/src/ascend/kernels");
    for (name, text) in kernels.files() {
        if let Ok(source) = fs::read_to_string(written.join(&name)) {
            assert!(source == text, "{name} is not emitted as it is written");
            continue;
        }
        let path = dir.join(&name);
        if bless {
            fs::create_dir_all(&dir).expect("the folder of goldens");
            fs::write(&path, text).expect("a golden");
        }
        let golden = fs::read_to_string(&path).unwrap_or_default();
        let differ = golden.lines().zip(text.lines()).position(|(a, b)| a != b);
        let at = differ.unwrap_or_else(|| golden.lines().count()) + 1;
        let remedy = "BLESS=1 cargo test --test engine goldens writes it";
        assert!(golden == text, "{name} differs at line {at}; {remedy}");
        let lines = text.lines().count();
        assert!(lines < 600, "{name} has {lines} lines; a kernel file has at most 599");
        files.push(name);
    }
    let present = fs::read_dir(&dir).expect("the goldens").map(|e| e.expect("a file").file_name());
    let unused: Vec<_> = present.filter(|name| !files.iter().any(|f| name == f.as_str())).collect();
    assert!(unused.is_empty(), "no generated header has these names; delete the files: {unused:?}");
    assert_eq!(ascendc(&p, Abi::Direct).expect("again"), kernels, "the same text on every run");
}
