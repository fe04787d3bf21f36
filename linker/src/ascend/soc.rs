//! The Ascend chips that kernels are written for. All of them have dav-c220 vector cores. The
//! numbers of cores are those in the platform files of CANN 8.1.

/// An Ascend chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Soc {
    /// Its name in lower case.
    pub name: &'static str,
    /// The name of its family in operator packages.
    pub unit: &'static str,
    /// Vector cores; a kernel with SyncAll may have at most as many blocks.
    pub cores: u32,
}

const fn soc(name: &'static str, unit: &'static str, cores: u32) -> Soc {
    Soc { name, unit, cores }
}

/// All supported chips.
pub const ALL: [Soc; 10] = [
    soc("ascend910b1", "ascend910b", 48),
    soc("ascend910b2", "ascend910b", 48),
    soc("ascend910b3", "ascend910b", 40),
    soc("ascend910b4", "ascend910b", 40),
    soc("ascend910_9391", "ascend910_93", 48),
    soc("ascend910_9392", "ascend910_93", 48),
    soc("ascend910_9381", "ascend910_93", 48),
    soc("ascend910_9382", "ascend910_93", 48),
    soc("ascend910_9372", "ascend910_93", 40),
    soc("ascend910_9362", "ascend910_93", 40),
];

/// The chip of the paper's measurements.
pub const OF_THE_PAPER: Soc = ALL[2];

/// Returns the chip with a name in any case; `None` if there is none.
pub fn find(name: &str) -> Option<Soc> {
    ALL.into_iter().find(|soc| soc.name.eq_ignore_ascii_case(name))
}
