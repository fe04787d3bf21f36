//! The constants of the choices in the configuration of an engine.

use crate::status::avsg_status::AVSG_INVALID;
use crate::status::{Failure, Result};

/// The table that maps ids to slots.
#[repr(i32)]
pub enum avsg_table {
    /// Several links per slot, with the least valuable slots as victims. Hit rates are those of
    /// exact LRU or better.
    AVSG_TABLE_WIDE = 0,
    /// The paper's table, bit for bit.
    AVSG_TABLE_PAPER = 1,
}

/// The lifetime that a hit gives to a slot.
#[repr(i32)]
pub enum avsg_lifetime {
    /// AVSG_LIFETIME_FREQUENCY for a wide table of K to 4 K slots, else AVSG_LIFETIME_CONSTANT.
    AVSG_LIFETIME_AUTO = 0,
    /// The constant `life`, which evicts the least recently used slot.
    AVSG_LIFETIME_CONSTANT = 1,
    /// A count of uses that decays by the factor `lambda` per step. Only for a wide table.
    AVSG_LIFETIME_FREQUENCY = 2,
}

/// The vector instructions that the device "cpu" runs its kernels with.
#[repr(i32)]
pub enum avsg_machine {
    /// The fastest that the CPU supports, as the first engine of the process measures it.
    AVSG_MACHINE_AUTO = 0,
    /// Scalar code.
    AVSG_MACHINE_EMU = 1,
    /// AVX2.
    AVSG_MACHINE_AVX2 = 2,
    /// AVX-512, with the faster of the next two, measured as for AVSG_MACHINE_AUTO.
    AVSG_MACHINE_AVX512 = 3,
    /// NEON.
    AVSG_MACHINE_NEON = 4,
    /// AVX-512 with gathers by scalar loads: "avx512".
    AVSG_MACHINE_AVX512_LOADS = 5,
    /// AVX-512 with gathers by vpgatherdd: "avx512 (vpgatherdd)".
    AVSG_MACHINE_AVX512_GATHER = 6,
}

/// How the device "cpu" copies rows.
#[repr(i32)]
pub enum avsg_copier {
    /// The fastest, as the first engine of the process with rows of this length measures it.
    AVSG_COPIER_AUTO = 0,
    /// One memcpy for each row.
    AVSG_COPIER_PLAIN = 1,
    /// Vector copies with prefetch of both ends of a later row.
    AVSG_COPIER_PREFETCH = 2,
    /// Non-temporal stores with prefetch of the source of a later row.
    AVSG_COPIER_STREAM = 3,
}

/// The distribution of misses over cores.
#[repr(i32)]
pub enum avsg_strategy {
    /// Equal shares of the misses: the shares of two cores differ by at most one row.
    AVSG_STRATEGY_BALANCED = 0,
    /// Whole requests per core, for comparison.
    AVSG_STRATEGY_REQUEST = 1,
    /// Equal shares of the selected positions, hits included, for comparison.
    AVSG_STRATEGY_POSITION = 2,
}

/// Returns the error of a number that is no constant of an enumeration from 0 to `last`.
pub(crate) fn unknown_constant<T>(what: &str, value: i32, last: i32) -> Result<T> {
    let text =
        format!("{what} is {value}, but it must be 0..={last}; pass a constant of the header");
    Err(Failure::new(AVSG_INVALID, text))
}
