//! The option that names a chip.

use anyhow::Result;
use avsg::Error;
use avsg_linker::ascend::soc::{self, Soc};

/// Returns the chip of this name; letter case is ignored.
pub fn named(name: &str) -> Result<Soc> {
    Ok(soc::find(name).ok_or_else(|| {
        let limit = format!("the known chips are {}", soc::ALL.map(|soc| soc.name).join(", "));
        Error::invalid("--soc", name, limit, "choose one of them")
    })?)
}
