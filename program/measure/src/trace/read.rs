//! Reading a trace from a file.

use std::path::Path;

use super::part::{Pick, TracePart};
use super::source::Source;
use super::{MAX_ID, Trace, id_above_limit};
use crate::array::{Array, NumberKind};
use crate::checks::require;
use avsg::{Error, Result};

/// The arrays of a trace file.
struct Arrays {
    ids: Ids,
    stable: Option<Array>,
}

/// The ids of a trace file in one of two forms.
enum Ids {
    Plain(Array),
    /// Sorted ids as gaps in two byte planes, the low one first. The first gap of a row is its first id.
    Gaps([Array; 2]),
}

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
        let arrays = Arrays::open(path.as_ref())?;
        let (Ids::Plain(ids) | Ids::Gaps([ids, _])) = &arrays.ids;
        // An axis that the file lacks is refused when the first part is taken.
        let count = |axis: usize| ids.shape.get(axis).copied().unwrap_or(0).max(1);
        let numbers = |pick: Option<Pick>, axis| match pick {
            Some(pick) => pick.numbers(count(axis)).map(Some).collect(),
            None => vec![None],
        };
        let mut parts = Vec::new();
        for layer in numbers(layer, 1) {
            for request in numbers(request, 1 + usize::from(layer.is_some())) {
                let part = TracePart { layer, request };
                parts.push((part, arrays.trace(part)?));
            }
        }
        Ok(parts)
    }
}

impl Arrays {
    fn open(path: &Path) -> Result<Self> {
        let mut source = Source::open(path)?;
        if matches!(source, Source::Npy(_)) || source.has("ids") {
            let ids = Ids::Plain(source.array("ids")?.of(&NumberKind::NUMBERS)?);
            let stable = if source.has("stable") {
                Some(source.array("stable")?.of(&NumberKind::NUMBERS)?)
            } else {
                None
            };
            return Ok(Self { ids, stable });
        }
        if source.has("gap_lo") && source.has("gap_hi") && source.has("context_len") {
            let low = source.array("gap_lo")?.of(&[NumberKind::U8])?;
            let high = source.array("gap_hi")?.of(&[NumberKind::U8])?;
            let value = format!("{:?}", high.shape);
            let limit = format!("the shape of gap_lo is {:?}", low.shape);
            let same = low.shape == high.shape;
            require(same, "shape of gap_hi", value, limit, "write the file again")?;
            let stable = Some(source.array("context_len")?.of(&NumberKind::NUMBERS)?);
            return Ok(Self { ids: Ids::Gaps([low, high]), stable });
        }
        let names = source.names();
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

    fn trace(&self, part: TracePart) -> Result<Trace> {
        let (ids, shape) = match &self.ids {
            Ids::Plain(array) => plain(array, part)?,
            Ids::Gaps(planes) => sums(planes, part)?,
        };
        let stable = self.stable.as_ref().map(|array| counts(array, part)).transpose()?;
        Trace::new(ids, stable, shape)
    }
}

/// Returns the ids of a part and their shape `[steps, N_q, K]`.
fn plain(array: &Array, part: TracePart) -> Result<(Vec<i32>, [usize; 3])> {
    let cut = part.cut(array)?;
    let [_, tokens, k] = cut.shape;
    let id = |(at, value): (usize, i128)| match i32::try_from(value) {
        Ok(id) if id <= MAX_ID => Ok(id),
        Err(_) if value < 0 => Ok(-1),
        _ => Err(id_above_limit(value, at, [tokens, k])),
    };
    // An array without values has a shape that `Trace::new` refuses.
    Ok((cut.values().enumerate().map(id).collect::<Result<_>>()?, cut.shape))
}

/// Returns the ids of a part of the compressed form and their shape `[steps, N_q, K]`.
fn sums([low, high]: &[Array; 2], part: TracePart) -> Result<(Vec<i32>, [usize; 3])> {
    let (low, high) = (part.cut(low)?, part.cut(high)?);
    let shape = low.shape;
    let mut sum = 0i32;
    let gaps = low.values().zip(high.values()).enumerate();
    // Sums are clamped to one above the limit: they cannot overflow, and `Trace::new` refuses them.
    let ids = gaps.map(|(i, (low, high))| {
        let gap = (low | high << 8) as i32;
        sum = if i % shape[2] == 0 { gap } else { (sum + gap).min(MAX_ID + 1) };
        sum
    });
    Ok((ids.collect(), shape))
}

/// Returns the token counts of a part, one per step.
fn counts(array: &Array, part: TracePart) -> Result<Vec<i32>> {
    let cut = part.cut_lengths(array)?;
    let count = |(step, value): (usize, i128)| {
        i32::try_from(value).map_err(|_| {
            let limit = format!("it must be a token count up to {MAX_ID}, or -1");
            let value = format!("{value} at step {step}");
            Error::invalid("stable", value, limit, "use -1 where it is not known")
        })
    };
    cut.values().enumerate().map(count).collect()
}
