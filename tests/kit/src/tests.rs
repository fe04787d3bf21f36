//! Tests of the test kit itself.

use crate::tier::{cases, thorough};

#[test]
fn a_sample_contains_every_value_of_every_axis() {
    let all: Vec<_> = (0..60).map(|n| (n % 3, n / 3 % 4, n / 12)).collect();
    let names = |c: &(i32, i32, i32)| vec![c.0.to_string(), c.1.to_string(), c.2.to_string()];
    let some = cases("numbers", all.clone(), 7, names);
    assert!(some.len() == 7 && !thorough() || some == all);
    assert!((0..3).all(|x| some.iter().any(|c| c.0 == x)));
    assert!((0..4).all(|x| some.iter().any(|c| c.1 == x)));
    assert!((0..5).all(|x| some.iter().any(|c| c.2 == x)));
    assert!(some.is_sorted_by_key(|c| (c.2, c.1, c.0)));
    assert_eq!(cases("numbers", all, 7, names), some);
}
