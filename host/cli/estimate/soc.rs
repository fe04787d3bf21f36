//! The chips of the dav-c220 family, from the platform files of CANN 8.1.

use anyhow::Result;
use avsg::Error;

/// A chip.
#[derive(Clone, Copy, Debug)]
pub struct Soc {
    /// As CANN names it, in small letters.
    pub name: &'static str,
    /// Vector cores.
    pub cores: usize,
    /// Their clock.
    pub mhz: f64,
}

/// All of them.
pub const SOCS: [Soc; 10] = [
    Soc { name: "ascend910b1", cores: 48, mhz: 1850.0 },
    Soc { name: "ascend910b2", cores: 48, mhz: 1800.0 },
    Soc { name: "ascend910b3", cores: 40, mhz: 1800.0 },
    Soc { name: "ascend910b4", cores: 40, mhz: 1500.0 },
    Soc { name: "ascend910_9391", cores: 48, mhz: 1850.0 },
    Soc { name: "ascend910_9392", cores: 48, mhz: 1850.0 },
    Soc { name: "ascend910_9381", cores: 48, mhz: 1800.0 },
    Soc { name: "ascend910_9382", cores: 48, mhz: 1800.0 },
    Soc { name: "ascend910_9372", cores: 40, mhz: 1800.0 },
    Soc { name: "ascend910_9362", cores: 40, mhz: 1500.0 },
];

/// The paper's: 40 copying cores fit its transfer times.
pub const OF_THE_PAPER: Soc = SOCS[2];

impl Soc {
    /// The chip of that name, however its letters are cased.
    pub fn named(name: &str) -> Result<Self> {
        let known = SOCS.iter().find(|soc| soc.name.eq_ignore_ascii_case(name));
        let names = SOCS.map(|soc| soc.name).join(", ");
        Ok(*known.ok_or_else(|| {
            let limit = format!("the model knows {names}");
            Error::invalid("--soc", name, limit, "choose one of those")
        })?)
    }

    /// Microseconds of cycles.
    pub fn us(&self, cycles: f64) -> f64 {
        cycles / self.mhz
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_chip_is_found_by_its_name() {
        for soc in &SOCS {
            let found = Soc::named(&soc.name.to_uppercase()).unwrap();
            assert_eq!(found.name, soc.name);
            assert!([40, 48].contains(&soc.cores));
            assert!((1.0..1.3).contains(&soc.us(1850.0)), "{}", soc.name);
        }
        assert!(Soc::named("ascend310p").is_err());
        assert_eq!((OF_THE_PAPER.cores, OF_THE_PAPER.mhz), (40, 1800.0));
    }
}
