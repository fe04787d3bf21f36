//! The interval of an operation holds what it gives for any two numbers of its operands' intervals.

use std::ops::{Add, BitAnd, BitOr, Mul, Sub};

use super::{Interval, and, or, span};

/// A way to find the interval of an operation, and the operation.
type Rule = (fn(Interval, Interval) -> Interval, fn(i64, i64) -> i64);

#[test]
fn an_interval_holds_every_result_of_its_operation() {
    let rules: [Rule; 6] = [
        (and, BitAnd::bitand),
        (or, BitOr::bitor),
        (|a, b| a.corners(b, Add::add), Add::add),
        (|a, b| a.corners(b, Sub::sub), Sub::sub),
        (|a, b| a.corners(b, Mul::mul), Mul::mul),
        (|a, b| a.corners(b, i64::max), i64::max),
    ];
    let bounds = || (-5..=9).flat_map(|lo| (lo..=9).map(move |hi| span(lo, hi)));
    for (a, b) in bounds().flat_map(|a| bounds().map(move |b| (a, b))) {
        for (interval, operation) in rules {
            let found = interval(a, b);
            let results = (a.lo..=a.hi).flat_map(|x| (b.lo..=b.hi).map(move |y| operation(x, y)));
            for result in results {
                assert!(span(result, result).within(found), "{a:?}, {b:?}: {found:?}, {result}");
            }
        }
    }
}

#[test]
fn bits_of_numbers_that_are_not_negative_have_narrow_intervals() {
    assert_eq!(and(span(3, 20), span(5, 9)), span(0, 9));
    assert_eq!(and(span(3, 20), span(-7, 9)), span(0, 20));
    assert_eq!(and(span(-3, 20), span(5, 9)), span(0, 9));
    assert_eq!(or(span(3, 20), span(5, 9)), span(5, 31));
    assert_eq!(span(2, 9).meet(span(5, 20)), span(5, 9));
}
