//! Checks of what options and files hold.

use std::fmt::Display;
use std::ops::RangeInclusive;

use avsg::{Error, Result};

/// Refuses a value unless `holds`.
pub fn require(
    holds: bool,
    what: &'static str,
    value: impl ToString,
    limit: impl Into<String>,
    remedy: &'static str,
) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::invalid(what, value, limit, remedy)) }
}

/// Refuses a value outside of a range.
pub fn in_range<T: PartialOrd + Display>(
    what: &'static str,
    value: T,
    range: RangeInclusive<T>,
    remedy: &'static str,
) -> Result<()> {
    let limit = format!("it must be {}..={}", range.start(), range.end());
    require(range.contains(&value), what, value, limit, remedy)
}

/// Refuses the first of these numbers that is zero.
pub fn at_least_1(values: &[(&'static str, usize)], remedy: &'static str) -> Result<()> {
    let zero = values.iter().find(|&&(_, value)| value == 0);
    zero.map_or(Ok(()), |&(what, value)| {
        Err(Error::invalid(what, value, "it must be at least 1", remedy))
    })
}

/// Checks the layers, the indexers and the requests of a deployment.
pub fn check_tables([layers, indexers, requests]: [usize; 3]) -> Result<()> {
    let numbers = [("--layers", layers), ("--requests", requests), ("--indexers", indexers)];
    at_least_1(&numbers, "pass 1 or more")?;
    let limit = format!("each indexer has a layer of its own, and --layers is {layers}");
    require(indexers <= layers, "--indexers", indexers, limit, "pass at most the layers")
}

/// Multiplies sizes; a product that overflows is an error that names `what`.
pub fn product(what: &'static str, factors: &[usize]) -> Result<usize> {
    let all = factors.iter().try_fold(1usize, |all, &factor| all.checked_mul(factor));
    all.ok_or_else(|| {
        let factors: Vec<String> = factors.iter().map(usize::to_string).collect();
        let limit = "the product must fit the address space";
        Error::invalid(what, factors.join(" * "), limit, "lower one of the factors")
    })
}
