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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_chip_is_found_by_its_name() {
        for soc in &soc::ALL {
            assert_eq!(named(&soc.name.to_uppercase()).unwrap(), *soc);
            assert!([40, 48].contains(&soc.cores));
            assert!((1.0..1.3).contains(&soc.us(1850.0)), "{}", soc.name);
        }
        assert!(named("ascend310p").is_err());
        assert_eq!((soc::OF_THE_PAPER.cores, soc::OF_THE_PAPER.mhz), (40, 1800));
    }
}
