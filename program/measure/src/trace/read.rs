//! Reading a trace from a file.

use std::path::Path;

use super::part::{Pick, TracePart};
use super::source;
use super::{MAX_ID, Trace};
use crate::array::Array;
use crate::checks::require;
use avsg::{Error, Result};

impl Trace {
    /// Reads a trace from a file, or from standard input if the path is `-`: an `.npy` (ids, `[steps,
    /// N_q, K]` or `[steps, K]`), or an `.npz` or `.safetensors` (`ids` and optionally `stable`, or the
    /// compressed form with gaps in two byte planes). Values are signed or unsigned integers of 32 or
    /// 64 bits; -1 that was converted to an unsigned type is padding.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        Ok(Self::read_parts(path, None, None)?.remove(0).1)
    }

    /// Reads one layer or all and one request or all of a file with more axes, layer by layer: `ids` `[steps,
    /// layers, requests, N_q, K]`, where layers and requests are there if they are picked, and N_q may be
    /// missing. `stable` is `[steps]`, or `[steps, requests]` if a request is picked.
    pub fn read_parts(
        path: impl AsRef<Path>,
        layer: Option<Pick>,
        request: Option<Pick>,
    ) -> Result<Vec<(TracePart, Self)>> {
        let (ids, stable) = ids_and_stable(path.as_ref())?;
        // An axis that the file lacks is refused when the first part is taken.
        let count = |axis: usize| ids.shape.get(axis).copied().unwrap_or(0).max(1);
        let numbers = |pick: Option<Pick>, axis| match pick {
            Some(Pick::All) => (0..count(axis)).map(Some).collect(),
            Some(Pick::One(number)) => vec![Some(number)],
            None => vec![None],
        };
        let mut parts = Vec::new();
        for layer in numbers(layer, 1) {
            for request in numbers(request, 1 + usize::from(layer.is_some())) {
                let part = TracePart { layer, request };
                let (ids, shape) = part.ids(&ids)?;
                let stable = stable.as_ref().map(|array| part.lengths(array)).transpose()?;
                parts.push((part, Self::new(ids, stable, shape)?));
            }
        }
        Ok(parts)
    }
}

/// Reads the ids, and the stable lengths if the file has them.
fn ids_and_stable(path: &Path) -> Result<(Array, Option<Array>)> {
    let (names, mut all) = source::arrays(path)?;
    let mut take = |name: &str| {
        let at = all.iter().position(|array| array.name == name)?;
        Some(all.swap_remove(at))
    };
    if let Some(ids) = take("ids") {
        return Ok((ids, take("stable")));
    }
    let [low, high, lengths] = ["gap_lo", "gap_hi", "context_len"].map(take);
    if let (Some(low), Some(high), Some(lengths)) = (low, high, lengths) {
        let limit = format!("the shape of gap_lo is {:?}", low.shape);
        let (same, value) = (low.shape == high.shape, format!("{:?}", high.shape));
        require(same, "shape of gap_hi", value, limit, "write the file again")?;
        return Ok((sums(low, &high), Some(lengths)));
    }
    // A file of torch.save is an archive of a pickle and raw storages.
    let remedy = if names.is_empty() {
        "save them with numpy.save(\"ids.npy\", ids.cpu().numpy()); a file of torch.save is not read"
    } else {
        "save the ids under the name 'ids'"
    };
    // Debug formatting escapes line breaks in a name.
    let limit = format!("it has no array 'ids', only {names:?}");
    Err(Error::invalid("trace", super::name_of(path), limit, remedy))
}

/// Returns the ids of the compressed form: sorted ids as gaps in two byte planes. The first gap of a row is its first id.
fn sums(mut low: Array, high: &Array) -> Array {
    let k = low.shape.last().map_or(1, |&k| k.max(1));
    let mut sum = 0;
    for (at, (value, high)) in low.values.iter_mut().zip(&high.values).enumerate() {
        let gap = *value | high << 8;
        // Sums are clamped to one above the limit: they cannot overflow, and `Trace::new` refuses them.
        sum = if at % k == 0 { gap } else { (sum + gap).min(MAX_ID + 1) };
        *value = sum;
    }
    low
}
