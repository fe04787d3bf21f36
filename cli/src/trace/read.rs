//! Reading a trace from a file.

use std::path::Path;

use super::part::Part;
use super::source::Source;
use super::{MAX_ID, Trace, id_above_limit};
use crate::array::Kind;
use avsg::{Error, Result};

/// Reads a part of an `.npy`, `.npz` or `.safetensors` file, in the plain or the compressed form.
pub(super) fn read(path: &Path, part: Part) -> Result<Trace> {
    let mut source = Source::open(path)?;
    if matches!(source, Source::Npy(_)) || source.has("ids") {
        let stable = if source.has("stable") { Some("stable") } else { None };
        return read_ids(&mut source, stable, part);
    }
    if source.has("gap_lo") && source.has("gap_hi") && source.has("context_len") {
        return read_gaps(&mut source, part);
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

fn read_ids(source: &mut Source, stable: Option<&str>, part: Part) -> Result<Trace> {
    let array = source.array("ids")?.of(&Kind::NUMBERS)?;
    let cut = part.cut(&array)?;
    let [_, tokens, k] = cut.shape;
    let id = |(at, value): (usize, i128)| match i32::try_from(value) {
        Ok(id) if id <= MAX_ID => Ok(id),
        Err(_) if value < 0 => Ok(-1),
        _ => Err(id_above_limit(value, at, [tokens, k])),
    };
    // An array without values has a shape that `Trace::new` refuses.
    let ids = cut.values().enumerate().map(id).collect::<Result<Vec<i32>>>()?;
    let stable = stable.map(|name| lengths(source, name, part)).transpose()?;
    Trace::new(ids, stable, cut.shape)
}

/// Reads the compressed form: sorted ids as gaps in two byte planes. The first gap of a row is its
/// first id.
fn read_gaps(source: &mut Source, part: Part) -> Result<Trace> {
    let low = source.array("gap_lo")?.of(&[Kind::U8])?;
    let high = source.array("gap_hi")?.of(&[Kind::U8])?;
    if low.shape != high.shape {
        let limit = format!("the shape of gap_lo is {:?}", low.shape);
        let value = format!("{:?}", high.shape);
        return Err(Error::invalid("shape of gap_hi", value, limit, "write the file again"));
    }
    let (low, high) = (part.cut(&low)?, part.cut(&high)?);
    let shape = low.shape;
    let mut sum = 0i32;
    let gaps = low.values().zip(high.values()).enumerate();
    // Sums are clamped to one above the limit: they cannot overflow, and `Trace::new` refuses them.
    let ids = gaps.map(|(i, (low, high))| {
        let gap = (low | high << 8) as i32;
        sum = if i % shape[2] == 0 { gap } else { (sum + gap).min(MAX_ID + 1) };
        sum
    });
    let ids = ids.collect();
    let stable = lengths(source, "context_len", part)?;
    Trace::new(ids, Some(stable), shape)
}

/// Reads an array with one value per step.
fn lengths(source: &mut Source, name: &str, part: Part) -> Result<Vec<i32>> {
    let array = source.array(name)?.of(&Kind::NUMBERS)?;
    let cut = part.cut_lengths(&array)?;
    let length = |(step, value): (usize, i128)| {
        i32::try_from(value).map_err(|_| {
            let limit = format!("it must be a token count up to {MAX_ID}, or -1");
            let value = format!("{value} at step {step}");
            Error::invalid("stable", value, limit, "use -1 where it is not known")
        })
    };
    cut.values().enumerate().map(length).collect()
}
