//! Vectors whose allocation can fail.

use std::iter;

use crate::{Error, Result};

/// Returns an empty vector with room for `len` values, or an error that takes no memory.
pub(crate) fn with_capacity<T>(what: &'static str, len: usize) -> Result<Vec<T>> {
    let mut all = Vec::new();
    let bytes = len.saturating_mul(size_of::<T>());
    all.try_reserve_exact(len).map_err(|_| Error::OutOfMemory { what, bytes })?;
    Ok(all)
}

/// Returns a vector of at most `len` values.
pub(crate) fn collected<T>(
    what: &'static str,
    len: usize,
    values: impl IntoIterator<Item = T>,
) -> Result<Vec<T>> {
    let mut all = with_capacity(what, len)?;
    all.extend(values);
    Ok(all)
}

/// Returns a vector of `len` times `value`.
pub(crate) fn filled<T: Clone>(what: &'static str, len: usize, value: T) -> Result<Vec<T>> {
    collected(what, len, iter::repeat_n(value, len))
}

/// Returns a vector of `len` default values.
pub(crate) fn defaults<T: Default>(what: &'static str, len: usize) -> Result<Vec<T>> {
    collected(what, len, iter::repeat_with(T::default).take(len))
}

pub(crate) fn copied<T: Copy>(what: &'static str, values: &[T]) -> Result<Vec<T>> {
    collected(what, values.len(), values.iter().copied())
}
