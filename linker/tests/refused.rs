//! Masks and run-time scalars are opaque: a data-dependent `if` in a kernel does not compile.

#[test]
fn data_dependent_branches_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
