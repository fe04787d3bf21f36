//! Vectors whose allocation can fail.

use crate::{Error, Result};

/// Returns an empty vector with room for `len` values, or an error that takes no memory.
pub(crate) fn with_capacity<T>(what: &'static str, len: usize) -> Result<Vec<T>> {
    let mut all = Vec::new();
    let bytes = len.saturating_mul(size_of::<T>());
    all.try_reserve_exact(len).map_err(|_| Error::OutOfMemory { what, bytes })?;
    Ok(all)
}

/// Returns a vector of `len` times `value`.
pub(crate) fn filled<T: Clone>(what: &'static str, len: usize, value: T) -> Result<Vec<T>> {
    let mut all = with_capacity(what, len)?;
    all.resize(len, value);
    Ok(all)
}

/// Returns a vector of `len` default values.
pub(crate) fn defaults<T: Default>(what: &'static str, len: usize) -> Result<Vec<T>> {
    let mut all = with_capacity(what, len)?;
    all.resize_with(len, T::default);
    Ok(all)
}

pub(crate) fn copied<T: Copy>(what: &'static str, values: &[T]) -> Result<Vec<T>> {
    let mut all = with_capacity(what, values.len())?;
    all.extend_from_slice(values);
    Ok(all)
}
