//! What is simulated.

use std::env;

/// The machine and the dice.
#[derive(Clone, Debug)]
pub struct Options {
    /// Devices.
    pub devices: u32,
    /// Vector cores of a device.
    pub cores: u32,
    /// Where the dice start.
    pub seed: u64,
    /// In a hundred calls, how many let some queued work run before they do their own.
    pub jitter: u32,
    /// Bytes of a device's memory.
    pub device_bytes: usize,
    /// The largest registration that is accepted.
    pub registration_bytes: usize,
    /// Whether the shim reorders what nothing orders.
    pub adversarial: bool,
}

impl Default for Options {
    /// One Ascend 910B with 40 vector cores and 64 GiB.
    fn default() -> Self {
        Self {
            devices: 1,
            cores: 40,
            seed: 1,
            jitter: 25,
            device_bytes: 64 << 30,
            registration_bytes: 200 << 30,
            adversarial: true,
        }
    }
}

impl Options {
    /// The defaults, changed by `AVSG_SIM`: `name=number` pairs with commas between, by the names of
    /// the fields. For the shared library, whose user has no other way in. Unknown names are
    /// returned for a message.
    pub(crate) fn from_env() -> (Self, Vec<String>) {
        let (mut options, mut unknown) = (Self::default(), Vec::new());
        let text = env::var("AVSG_SIM").unwrap_or_default();
        for pair in text.split(',').filter(|pair| !pair.is_empty()) {
            let number = pair.split_once('=').and_then(|(name, n)| Some((name, n.parse().ok()?)));
            if !number.is_some_and(|(name, n)| options.set(name, n)) {
                unknown.push(pair.to_owned());
            }
        }
        (options, unknown)
    }

    fn set(&mut self, name: &str, value: u64) -> bool {
        match name {
            "devices" => self.devices = value as u32,
            "cores" => self.cores = value as u32,
            "seed" => self.seed = value,
            "jitter" => self.jitter = value as u32,
            "device_bytes" => self.device_bytes = value as usize,
            "registration_bytes" => self.registration_bytes = value as usize,
            "adversarial" => self.adversarial = value != 0,
            _ => return false,
        }
        true
    }
}
