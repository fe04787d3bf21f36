//! Error messages for invalid geometries.

use avsg_device::params::{
    Fault, MAX_PAPER_SLOTS, MAX_RETRIES, MAX_SLOTS, MAX_TOKENS, MIN_SLOTS, Params, Table,
};

use crate::{Result, invalid};

/// Checks the geometry and the rules of a table.
///
/// # Errors
/// The first rule that is broken, with the value and its limit.
pub fn check(p: &Params) -> Result<()> {
    let Err(fault) = p.check() else { return Ok(()) };
    let paper = matches!(p.table, Table::Paper { .. });
    Err(match fault {
        Fault::Slots if paper => invalid!("S (slots)" is p.slots, but
            "the paper's table has a power of two in {MIN_SLOTS}..={MAX_PAPER_SLOTS}";
            if p.slots > MAX_PAPER_SLOTS { "choose 32768 or less" } else { "choose 8192, for example" }),
        Fault::Slots => invalid!("S (slots)" is p.slots, but
            "it must be a multiple of {MIN_SLOTS} in {MIN_SLOTS}..={MAX_SLOTS}";
            if p.slots > MAX_SLOTS { "choose 65536 or less" } else { "choose 8192, for example" }),
        Fault::K => {
            invalid!("K" is p.k, but "it must be 1..={}, the slots S of a buffer", p.slots;
                if p.k == 0 { "choose 2048, for example" } else { "raise S, or lower K" })
        }
        Fault::Tokens => invalid!("N_q (tokens per request)" is p.tokens, but
            "it must be 1..={MAX_TOKENS}"; "split the step"),
        Fault::StepAboveSlots => invalid!("N_q*K" is u64::from(p.tokens) * u64::from(p.k), but
            "it must be at most S = {}", p.slots; "raise S, or speculate less"),
        Fault::Spread => {
            let limit = if paper { "the paper's table has 1" } else { "it must be 1, 2 or 4" };
            invalid!("spread" is p.spread, but "{limit}"; "choose one of those")
        }
        Fault::Retries => invalid!("R (retries)" is p.retries, but "it must be 0..={MAX_RETRIES}";
            "choose 3 or 7"),
        Fault::Lifetime => {
            let (table, least) = if paper { ("paper", 1) } else { ("wide", 0) };
            invalid!("lifetime" is p.lifetime, but "{table} takes constant:{least}..=127";
                "choose L in that range, or learned with wide")
        }
        Fault::EvenMultiplier => {
            let value = match p.table {
                Table::Paper { a1, a2 } => format!("{a1},{a2}"),
                Table::Wide => String::new(),
            };
            invalid!("primes" is value, but "both must be odd"; "choose odd multipliers")
        }
        Fault::Page => invalid!("page" is p.page, but "it must be 0 or a power of two up to 65536";
            "choose 16..128"),
    })
}
