//! Checks of what calls do where their documents leave it open: probes write words that are compared here.

use std::ffi::CStr;

use anyhow::{Result, bail};
use avsg::ascend::acl::DeviceMemory;
use serde_json::Value;

use super::harness::{BEHAVIOUR, Harness};
use super::probe::ProbeLaunch;

/// The answer of a probe whose words are all right.
pub const AS_EXPECTED: &str = "as expected";

/// Compares the words that a probe wrote with the expected ones.
fn compared(found: &[i32], expected: impl Fn(usize) -> i32) -> String {
    let wrong = (0..found.len()).filter(|&at| found[at] != expected(at)).collect::<Vec<_>>();
    let Some(&at) = wrong.first() else { return AS_EXPECTED.into() };
    let (count, all, word, expected) = (wrong.len(), found.len(), found[at], expected(at));
    format!("{count} of {all} words differ: word {at} is {word:#x}, expected {expected:#x}")
}

/// Returns the words that a probe on one core wrote.
fn words_of(harness: &Harness, name: &CStr, n: i32, count: usize) -> Result<Vec<i32>> {
    let probe = harness.probe(BEHAVIOUR)?;
    probe.run(&ProbeLaunch { name, from: 0, setting: [n, 0, 0, 0], blocks: 1 })?;
    probe.words(count)
}

/// Returns what INT32_MAX + 1 is on a vector core.
pub fn overflow(harness: &Harness) -> Result<Value> {
    if harness.simulated {
        bail!("the simulator raises an exception; only hardware gives this value");
    }
    Ok(match words_of(harness, c"avsg_probe_overflow", 0, 1)?[0] {
        i32::MIN => "wraps".into(),
        i32::MAX => "saturates".into(),
        _ => "something else".into(),
    })
}

/// GatherMasks whose counts are compared.
const COUNTS: i32 = 64;

/// Returns when the count of a GatherMask may be read.
pub fn gather_count(harness: &Harness) -> Result<Value> {
    // The wrong counts that were read at once, and after a wait.
    let words = words_of(harness, c"avsg_probe_count", COUNTS, 2)?;
    if words[1] != 0 {
        let wrong = words[1];
        bail!("{wrong} of {COUNTS} counts are wrong after the wait: avsg_plan cannot be right");
    }
    Ok(if words[0] == 0 { "right at once".into() } else { "right after a wait only".into() })
}

/// Rounds in which all cores store beside each other.
const ROUNDS: i32 = 64;

/// Returns whether every word is kept that neighbouring cores store into one block of 32 bytes.
pub fn neighbouring_stores(harness: &Harness) -> Result<Value> {
    let (probe, blocks) = (harness.probe(BEHAVIOUR)?, harness.cores);
    let setting = [ROUNDS, 0, 0, 0];
    probe.run(&ProbeLaunch { name: c"avsg_probe_neighbours", from: 0, setting, blocks })?;
    let words = probe.words(ROUNDS as usize * blocks)?;
    Ok(compared(&words, |at| at as i32 + 1).into())
}

/// Returns whether words reach the next core by two SyncAlls, in a launch or in each replay of a captured one.
pub fn sync_all_twice(harness: &Harness, captured: bool) -> Result<Value> {
    let (probe, source) = (harness.probe(BEHAVIOUR)?, DeviceMemory::zeroed(&harness.context, 64)?);
    let blocks = harness.cores;
    let name = c"avsg_probe_sync_twice";
    let launch = ProbeLaunch { name, from: source.address(), setting: [0; 4], blocks };
    let graph = captured.then(|| probe.capture(&launch, 1)).transpose()?;
    let mut answer = String::from(AS_EXPECTED);
    for first in [1000, 5000] {
        // SAFETY: `replay` and `run` have waited for the probe that reads it.
        unsafe { source.write(0, &i32::to_ne_bytes(first))? };
        match &graph {
            Some(graph) => probe.replay(graph)?,
            None => probe.run(&launch)?,
        };
        let all = probe.words(3 * 512)?;
        let last: Vec<i32> = (0..blocks).map(|core| all[2 * 512 + 8 * core]).collect();
        // A core's own number, and those of the two cores after it.
        let sum = |core: usize| (0..3).map(|n| ((core + n) % blocks) as i32).sum::<i32>();
        answer = compared(&last, |core| first + sum(core));
        if answer != AS_EXPECTED {
            break;
        }
    }
    Ok(answer.into())
}

/// Returns whether Select and Compares are right after a GatherMask of another count.
pub fn select_after_gather_mask(harness: &Harness) -> Result<Value> {
    let words = words_of(harness, c"avsg_probe_select", 0, 132)?;
    let selected = |i: i32| if i % 16 < 8 { i } else { 1000 + i };
    let equal =
        |word: i32| (0..32).fold(0, |bits, i| bits | i32::from((32 * word + i) % 5 == 3) << i);
    let expected = |at: usize| match at as i32 {
        at @ 0..128 => selected(at),
        at => equal(at - 128),
    };
    Ok(compared(&words, expected).into())
}

/// Returns whether a Gather of 16-bit elements takes offsets in bytes.
pub fn gather_16_bit(harness: &Harness) -> Result<Value> {
    let element = |at: usize| 3 * ((7 * at + 1) % 256) as i32 + 1;
    let words = words_of(harness, c"avsg_probe_gather_16", 0, 100)?;
    Ok(compared(&words, |at| element(2 * at) | element(2 * at + 1) << 16).into())
}

/// Returns whether every value of int8 is cast to half exactly.
pub fn cast_int8(harness: &Harness) -> Result<Value> {
    cast(harness, c"avsg_probe_cast_8", 128, |at| (at as u8).cast_signed().into())
}

/// Returns whether every number of int16 from -256 to 255 is cast to half exactly.
pub fn cast_int16(harness: &Harness) -> Result<Value> {
    cast(harness, c"avsg_probe_cast_16", 256, |at| at as i16 - 256)
}

/// Returns whether a probe casts numbers to half, two to a word, exactly.
fn cast(harness: &Harness, name: &CStr, count: usize, number: fn(usize) -> i16) -> Result<Value> {
    let half = |at| half_bits(number(at));
    let words = words_of(harness, name, 0, count)?;
    Ok(compared(&words, |at| half(2 * at) | half(2 * at + 1) << 16).into())
}

/// Returns the bits of a small integer as IEEE binary16: those of its binary32, which has 13 bits more of
/// the fraction, and an exponent that is greater by 112.
fn half_bits(value: i16) -> i32 {
    let bits = f32::from(value).to_bits().cast_signed();
    let magnitude = (bits & i32::MAX) >> 13;
    i32::from(value < 0) << 15 | (magnitude - (112 << 10)).max(0)
}
