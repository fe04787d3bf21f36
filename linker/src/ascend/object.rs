//! What the object of a kernel states. It is a 64-bit ELF file: sections have the types of its kernels, and symbols
//! the sizes of its functions.

use std::ffi::CStr;

/// The types of sections with symbols, and of those without bytes in the file.
const SYMBOLS: usize = 2;
const NO_BYTES: usize = 8;
/// The type of a symbol that is a function.
const FUNCTION: u8 = 2;
/// The tags of a kernel's type and of its numbers of cube and vector cores.
const TYPE: usize = 1;
const CORES: usize = 3;
/// The types of a kernel for vector cores alone, and of those whose cores start together.
const VECTOR: usize = 3;
const TOGETHER: [usize; 2] = [4, 5];

struct Section<'a> {
    name: &'a [u8],
    kind: usize,
    bytes: &'a [u8],
}

/// Returns the number of `len` bytes at an offset, the last one highest.
fn number(bytes: &[u8], at: usize, len: usize) -> Option<usize> {
    let bytes = bytes.get(at..)?.get(..len)?;
    Some(bytes.iter().rev().fold(0, |n, &byte| n << 8 | usize::from(byte)))
}

/// Returns the sections of an object; `None` if it is no ELF file of 64 bits.
fn sections(object: &[u8]) -> Option<Vec<Section<'_>>> {
    object.starts_with(b"\x7fELF\x02\x01").then_some(())?;
    let (headers, size) = (object.get(number(object, 40, 8)?..)?, number(object, 58, 2)?);
    let section = |n: usize| {
        let header = headers.get(n * size..)?;
        let (name, kind) = (number(header, 0, 4)?, number(header, 4, 4)?);
        let len = if kind == NO_BYTES { 0 } else { number(header, 32, 8)? };
        Some((name, kind, object.get(number(header, 24, 8)?..)?.get(..len)?))
    };
    let (_, _, names) = section(number(object, 62, 2)?)?;
    let named = |n| {
        let (name, kind, bytes) = section(n)?;
        let name = CStr::from_bytes_until_nul(names.get(name..)?).ok()?.to_bytes();
        Some(Section { name, kind, bytes })
    };
    (0..number(object, 60, 2)?).map(named).collect()
}

/// Returns the bytes of all functions of an object; `None` if it has no symbols.
pub fn code_bytes(object: &[u8]) -> Option<usize> {
    let symbols = sections(object)?.into_iter().find(|section| section.kind == SYMBOLS)?;
    let functions = symbols.bytes.chunks_exact(24).filter(|symbol| symbol[4] & 15 == FUNCTION);
    functions.map(|symbol| number(symbol, 16, 8)).sum()
}

/// Returns the value of a tag among the words of a kernel's type: each is a tag, a length and a value.
fn tagged(mut words: &[u8], tag: usize) -> Option<&[u8]> {
    loop {
        let (found, len) = (number(words, 0, 2)?, number(words, 2, 2)?);
        let value = words.get(4..)?.get(..len)?;
        if found == tag {
            return Some(value);
        }
        words = &words[4 + len..];
    }
}

/// Checks that an object states a type of vector cores for a kernel, under which all cores start together if it has a
/// SyncAll. The runtime reads the type from a section that is named after the entry point, which has a suffix if the
/// cores start together.
///
/// # Errors
/// What the object states instead.
pub fn check_type(object: &[u8], entry: &str, sync_all: bool) -> Result<(), String> {
    let sections = sections(object).ok_or("is no 64-bit ELF file")?;
    let own = format!(".ascend.meta.{entry}");
    let is_own = |section: &&Section<'_>| {
        let suffix = section.name.strip_prefix(own.as_bytes());
        suffix.is_some_and(|suffix| [&b""[..], b"_mix_aiv"].contains(&suffix))
    };
    let missing = || format!("has no section {own}, so a launch of {entry} could hang");
    let words = sections.iter().find(is_own).ok_or_else(missing)?.bytes;
    let kind = tagged(words, TYPE).and_then(|value| number(value, 0, 4)).unwrap_or(0);
    let cores = tagged(words, CORES);
    let only_vector = cores.is_none_or(|cores| cores == [0, 0, 1, 0]);
    let together = TOGETHER.contains(&kind) && only_vector;
    if together || kind == VECTOR && !sync_all {
        return Ok(());
    }
    Err(format!(
        "states the type {kind} for {entry}, with the cores {cores:?}, which vector cores {}",
        if sync_all { "that wait for each other do not have" } else { "do not have" }
    ))
}
