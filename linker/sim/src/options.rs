//! The options of the simulator.

use std::env;

use crate::fault::LaunchFault;

/// The simulated machine and its random choices.
#[derive(Clone, Debug)]
pub struct Options {
    /// Number of devices.
    pub devices: u32,
    /// Number of vector cores per device.
    pub cores: u32,
    /// Seed of all random choices.
    pub seed: u64,
    /// Percentage of the calls that run some queued work first, 0 to 100.
    pub jitter: u32,
    /// Bytes of memory per device.
    pub device_bytes: usize,
    /// Maximum size of a registration in bytes.
    pub registration_bytes: usize,
    /// Whether the shim reorders instructions that no synchronisation orders.
    pub adversarial: bool,
    /// The faults of every launch of a kernel, by the kernel's name.
    pub kernel_faults: Vec<(String, LaunchFault)>,
}

impl Default for Options {
    /// Returns the options of one Ascend 910B with 40 vector cores and 64 GiB.
    fn default() -> Self {
        Self {
            devices: 1,
            cores: 40,
            seed: 1,
            jitter: 25,
            device_bytes: 64 << 30,
            registration_bytes: 200 << 30,
            adversarial: true,
            kernel_faults: Vec::new(),
        }
    }
}

impl Options {
    /// Returns the defaults with the faults of kernels that `AVSG_SIM` names, separated by commas:
    /// `hang=KERNEL`, `stall=KERNEL`, `exception=KERNEL` and `corrupt=KERNEL/ARGUMENT/WORD/VALUE`.
    /// It is the only way to set options of the shared library. The second result has the words that
    /// are no faults.
    pub(crate) fn from_env() -> (Self, Vec<String>) {
        let (mut options, mut unknown) = (Self::default(), Vec::new());
        let text = env::var("AVSG_SIM").unwrap_or_default();
        for pair in text.split(',').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match LaunchFault::from_option(name, value) {
                Some(fault) => options.kernel_faults.push(fault),
                None => unknown.push(pair.to_owned()),
            }
        }
        (options, unknown)
    }
}
