//! Writes the numbers of learned lifetimes as C++ constants.

use avsg_device::learned::{self, LIFETIMES, part};
use avsg_device::memory::{links_end, table_words};
use avsg_device::params::{Lifetime, Params};
use avsg_device::state::header;

/// Returns small numbers as one word of `bits` each, the last one lowest.
fn packed(numbers: &[u32], bits: u32) -> u64 {
    numbers.iter().fold(0, |word, &n| word << bits | u64::from(n))
}

/// Returns the constants of the C++ text that learns from a step.
pub fn constants(p: &Params) -> String {
    let mut text = String::new();
    let mut define = |ty: &str, name: &str, value: String, doc: &str| {
        text += &format!("constexpr {ty} {name} = {value};  // {doc}\n");
    };
    let mut word = |name: &str, value: i64, doc: &str| {
        define("int32_t", name, value.to_string(), doc);
    };
    let learns = p.lifetime == Lifetime::Learned;
    let slots = if learns { learned::sample_slots(p) as i64 } else { 0 };
    let header = |at: i32| i64::from(at - header::STEP);
    word("LIFETIMES", LIFETIMES as i64, "different lifetimes");
    word("LEARNED_AT", links_end(p) as i64, "first word of what lifetimes learn in a table");
    let words = table_words(p) - links_end(p);
    word("LEARNED_WORDS", words as i64, "these words and padding; 0: lifetimes learn nothing");
    word("LEARN_SLOTS", slots, "slots of a sample");
    word("LEARN_RESULT", part::RESULT as i64, "word of the last sample, behind four tables");
    word("HEADER_LEARN", header::STEP.into(), "first of a header's words for learned lifetimes");
    word("LEARN_STEP", header(header::STEP), "among them the number of the step");
    word("LEARN_MOVES_FROM", header(header::MOVES_FROM), "the lowest lifetime that it ages");
    word("LEARN_SAMPLE", header(header::SAMPLE), "the first slot of its sample");
    word("LEARN_LAST_SAMPLE", header(header::LAST_SAMPLE), "that of the last step's sample");
    word("LEARN_WAS_USED", learned::WAS_USED.into(), "bit of a sampled slot that was used");
    word("LEARN_MAX_VALUE", learned::MAX_VALUE.into(), "largest value");
    word("LEARN_LEVELS", learned::LEVELS as i64, "levels of a class");
    word("LEARN_SLOT", learned::SLOT.into(), "weight of a sampled slot");
    word("LEARN_SWEEP", learned::SWEEP.into(), "steps in which each class is estimated once");
    word("LEARN_START", learned::START.into(), "steps before the first values");
    let mut long = |name: &str, value: i64, doc: &str| {
        define("int64_t", name, value.to_string(), doc);
    };
    long("LEARN_ONE", learned::ONE, "the number 1");
    long("LEARN_BETA", learned::BETA, "what a use in the next step counts");
    long("LEARN_PRIOR", learned::PRIOR, "weight of the prior probability of a use");
    let (young, old) = learned::AGE.split_at(8);
    let mut bits = |name: &str, value: u64, doc: &str| {
        define("uint64_t", name, format!("{value:#X}"), doc);
    };
    let log_steps = packed(&learned::LOG_STEPS, 4) << 4;
    bits("LEARN_LOG_STEPS", log_steps, "by age, oldest lowest: log2 of steps");
    bits("LEARN_YOUNG_AGES", packed(young, 8), "mean ages of the classes 7..0");
    bits("LEARN_OLD_AGES", packed(old, 8), "mean ages of the classes 15..8");
    text
}
