//! Error messages for invalid geometries.

use avsg_device::params::{
    Fault, Frequency, Lifetime, MAX_RETRIES, MAX_SLOTS, MAX_TOKENS, MIN_SLOTS, Params, Table,
};

use crate::{Error, Result};

/// Checks the geometry and the rules of a table.
///
/// # Errors
/// The first rule that is broken, with the value and its limit.
pub fn check(p: &Params) -> Result<()> {
    let Err(fault) = p.check() else { return Ok(()) };
    let paper = matches!(p.table, Table::Paper { .. });
    let range = |low: u32, high: u32| format!("it must be {low}..={high}");
    Err(match fault {
        Fault::Slots => Error::invalid(
            "S (slots)",
            p.slots,
            format!("it must be a power of two in {MIN_SLOTS}..={MAX_SLOTS}"),
            if p.slots > MAX_SLOTS { "choose 32768 or less" } else { "choose 8192, for example" },
        ),
        Fault::K => {
            let limit = format!("it must be 1..={}, the slots S of a buffer", p.slots);
            let remedy = if p.k == 0 { "choose 2048, for example" } else { "raise S, or lower K" };
            Error::invalid("K", p.k, limit, remedy)
        }
        Fault::Tokens => Error::invalid(
            "N_q (tokens per request)",
            p.tokens,
            range(1, MAX_TOKENS),
            "split the step",
        ),
        Fault::StepAboveSlots => Error::invalid(
            "N_q*K",
            u64::from(p.tokens) * u64::from(p.k),
            format!("it must be at most S = {}", p.slots),
            "raise S, or speculate less",
        ),
        Fault::Spread => Error::invalid(
            "spread",
            p.spread,
            if paper { "the paper's table has 1" } else { "it must be 1, 2 or 4" },
            "choose one of those",
        ),
        Fault::Retries => {
            Error::invalid("R (retries)", p.retries, range(0, MAX_RETRIES), "choose 3 or 7")
        }
        Fault::Lifetime => Error::invalid(
            "lifetime",
            match p.lifetime {
                Lifetime::Constant(l) => format!("constant:{l}"),
                Lifetime::Frequency(_) => "frequency".into(),
            },
            if paper { "paper takes constant:1..=127" } else { "wide takes constant:0..=127" },
            "choose L in that range, or frequency with wide",
        ),
        Fault::EvenMultiplier => Error::invalid(
            "primes",
            match p.table {
                Table::Paper { a1, a2 } => format!("{a1},{a2}"),
                Table::Wide => String::new(),
            },
            "both must be odd",
            "choose odd multipliers",
        ),
        Fault::Page => Error::invalid(
            "page",
            p.page,
            "it must be 0 or a power of two up to 65536",
            "choose 16..128",
        ),
    })
}

/// Returns frequency lifetimes with the decay factor `lambda` per step.
///
/// # Errors
/// If `lambda` is out of [`Frequency::MIN_LAMBDA`]`..=`[`Frequency::MAX_LAMBDA`].
pub fn frequency(lambda: f64) -> Result<Lifetime> {
    let (low, high) = (Frequency::MIN_LAMBDA, Frequency::MAX_LAMBDA);
    Frequency::new(lambda).map(Lifetime::Frequency).ok_or_else(|| {
        let limit = format!("it must be {low}..={high}");
        Error::invalid("lambda", lambda, limit, "0.87 is a good start")
    })
}
