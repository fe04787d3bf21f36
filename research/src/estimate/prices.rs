//! The constants of the model of a 910B: what each unit of work takes, in cycles of 1800 MHz.
//!
//! Each one is documented, measured by others in one setting, or assumed, as its comment says. None was fitted to the
//! paper's times of its kernel, and none was chosen by its effect on the operator's own. The documents are in the
//! public repository asc-devkit unless another one is named.

use avsg_linker::ascend::soc::{OF_THE_PAPER, Soc};
use avsg_sim::cycles::Prices;

/// The modelled chip.
pub const SOC: Soc = OF_THE_PAPER;

/// The appendix Vector指令理论性能汇总 (theoretical rates of vector instructions) of docs/zh/api has the rates that are
/// documented.
pub const PRICES: Prices = Prices {
    // Assumed, 1 to 20: a call with a count sets the mask and its mode before the instruction and restores them after it.
    issue: 5.0,
    // Measured, 8 to 11, with its share of a loop: examples, 00_vector_compute/add_high_performance, case 0.
    scalar: 9.5,
    // Measured, 20 to 30, Add of 4096 floats: examples, 04_memory_access/bank_conflict_ub.
    head: 24.0,
    // Documented, tables 6 to 10 and 13. 2 was measured where every repeat has a bank conflict, which the model does
    // not look for.
    repeat: 1.0,
    // Documented, table 9: 32 words per cycle.
    compact: 64.0 / 32.0,
    // Documented, table 15: 5 elements of any type per cycle.
    gather: 1.0 / 5.0,
    // Assumed, 0 to 60.
    barrier: 20.0,
    // Assumed, 10 to 150.
    flag: 40.0,
    // Assumed, 0.5 to 5 us: 1 us.
    sync_all: 1800.0,
    // Measured as an upper bound, 11.1 ns: examples, 04_memory_access/data_copy, scenario 1.
    dma: 21.0,
    // Assumed, 300 to 1500, in both directions.
    latency: 700.0,
    // Documented for HBM, 32 bytes per cycle: platform_config/Ascend910B3.ini of CANN 8.1.RC1, AICoreMemoryRates. UB
    // gives 64, and a core's share is 20 if all cores copy.
    byte: 1.0 / 32.0,
};
