//! Reading a trace from a file.

use std::path::Path;

use super::{MAX_ID, Trace};
use crate::npz::{Array, Source};
use avsg::{Error, Result};

/// Reads a trace from an `.npy` or an `.npz`, in the plain or the compressed form.
pub(super) fn read(path: &Path) -> Result<Trace> {
    let mut source = Source::open(path)?;
    if let Source::Npy(_) = source {
        let ids = source.array::<i32>("ids")?;
        return Trace::new(ids.data, None, rank_3("ids", &ids.shape)?);
    }
    if source.has("ids") {
        let ids = source.array::<i32>("ids")?;
        let stable =
            if source.has("stable") { Some(lengths(&mut source, "stable")?) } else { None };
        return Trace::new(ids.data, stable, rank_3("ids", &ids.shape)?);
    }
    if source.has("gap_lo") && source.has("gap_hi") && source.has("context_len") {
        return read_gaps(&mut source);
    }
    let limit = format!("it has no array 'ids', only {}", source.names());
    Err(Error::invalid("trace", path.display(), limit, "save the ids under the name 'ids'"))
}

/// Reads the compressed form: sorted ids as gaps in two byte planes. The first gap of a row is its
/// first id.
fn read_gaps(source: &mut Source) -> Result<Trace> {
    let low: Array<u8> = source.array("gap_lo")?;
    let high: Array<u8> = source.array("gap_hi")?;
    let shape = rank_3("gap_lo", &low.shape)?;
    if low.shape != high.shape {
        let limit = format!("the shape of gap_lo is {:?}", low.shape);
        let value = format!("{:?}", high.shape);
        return Err(Error::invalid("shape of gap_hi", value, limit, "write the file again"));
    }
    let mut sum = 0i32;
    let gaps = low.data.iter().zip(&high.data).enumerate();
    // Sums are clamped to one above the limit: they cannot overflow, and `Trace::new` refuses them.
    let ids = gaps.map(|(i, (&low, &high))| {
        let gap = i32::from(low) | i32::from(high) << 8;
        sum = if i % shape[2] == 0 { gap } else { (sum + gap).min(MAX_ID + 1) };
        sum
    });
    let ids = ids.collect();
    let stable = lengths(source, "context_len")?;
    Trace::new(ids, Some(stable), shape)
}

/// Reads an array with one value per step.
fn lengths(source: &mut Source, name: &str) -> Result<Vec<i32>> {
    let array = source.array::<i32>(name)?;
    if array.shape.len() != 1 {
        let value = format!("{:?} (array {name})", array.shape);
        let remedy = "save it with one dimension";
        return Err(Error::invalid("shape", value, "it must be [steps]", remedy));
    }
    Ok(array.data)
}

/// Returns the shape `[steps, N_q, K]`; an array `[steps, K]` has one token per step.
fn rank_3(name: &str, shape: &[usize]) -> Result<[usize; 3]> {
    match *shape {
        [steps, k] => Ok([steps, 1, k]),
        [steps, tokens, k] => Ok([steps, tokens, k]),
        _ => {
            let value = format!("{shape:?} (array {name})");
            let limit = "it must be [steps, N_q, K] or [steps, K]";
            Err(Error::invalid("shape", value, limit, "reshape it before saving"))
        }
    }
}
