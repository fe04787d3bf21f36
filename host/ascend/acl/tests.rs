//! Tests of the remedies of errors.

use super::result::remedy;

#[test]
fn a_code_has_the_remedy_of_its_range() {
    let [caller, device, other] = [107_098, 507_011, 1].map(remedy);
    assert!(caller.contains("report it"), "{caller}");
    assert!(device.contains("destroy the engine"), "{device}");
    assert!(other.contains("runtime's log"), "{other}");
    assert!([100_000, 148_099].map(remedy).iter().all(|&text| text == caller));
}
