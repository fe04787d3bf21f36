//! Stage One can be recorded and passes the checker for every kind of geometry, and its printed
//! tapes are those in `golden/`.

use avsg_device::params::{Lifetime, Params};
use avsg_linker::check::check;
use avsg_linker::record::record_stage_one;
use std::path::Path;

/// Covers both tables, all spreads, both lifetimes, K from 1 to 2048, and several pages.
#[test]
fn stage_one_passes_the_checker_for_every_kind_of_geometry() {
    let shapes = [(1, 1, 64), (300, 3, 1024), (2048, 1, 4096), (2048, 4, 8192), (2048, 4, 32768)];
    for (k, tokens, slots) in shapes {
        let wide = Params { lifetime: Lifetime::Learned, ..Params::wide(k, tokens, slots) };
        let compact = Params { spread: 2, retries: 7, ..wide };
        let constant = Params { lifetime: Lifetime::Constant(127), ..compact };
        let least = Params { spread: 1, retries: 0, ..constant };
        let most = Params { retries: 15, ..wide };
        for p in [wide, compact, constant, least, most, Params::paper(k, tokens, slots)] {
            for page in [0, 1, 16, 128, 65536] {
                let p = Params { page, ..p };
                let tape = record_stage_one(&p).unwrap();
                check(&tape).unwrap_or_else(|e| panic!("{p:?}: {e}"));
                // A second recording must give the same tape.
                assert_eq!(tape, record_stage_one(&p).unwrap());
            }
        }
    }
}

/// The printed tapes are committed, so that a review shows what a change of a kernel records.
/// `BLESS=1` writes them.
#[test]
fn printed_tapes_are_the_committed_ones() {
    let constant = Params { lifetime: Lifetime::Constant(127), ..Params::wide(64, 2, 128) };
    let learned = Params { lifetime: Lifetime::Learned, ..Params::wide(64, 1, 256) };
    let paged = Params { page: 16, spread: 2, retries: 7, ..learned };
    check_golden("stage_one_wide", &constant);
    check_golden("stage_one_wide_paged_learned", &paged);
    check_golden("stage_one_paper", &Params::paper(64, 1, 128));
}

fn check_golden(name: &str, p: &Params) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    let path = path.with_extension("tape");
    let text = record_stage_one(p).unwrap().to_string();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(text == committed, "{name} differs; run BLESS=1 cargo test and review the diff");
}
