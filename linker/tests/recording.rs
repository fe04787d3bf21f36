//! Stage One records, checks and prints.
use avsg_device::params::*;
use avsg_linker::{check::check, record::record_stage_one};

#[test]
fn every_default_geometry_passes() {
    for page in [0, 1, 16, 128] {
        for p in [Params::wide(2048, 1, 8192), Params::paper(2048, 2, 4096)] {
            let p = Params { page, ..p };
            let tape = record_stage_one(&p).unwrap();
            println!("{tape}");
            check(&tape).unwrap_or_else(|e| panic!("{e}"));
        }
    }
}
