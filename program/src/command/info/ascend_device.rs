//! The Ascend device that a deployment is sized for.

use anyhow::Result;
use avsg::device::params::Params;
use avsg_linker::ascend::kernels::Abi;
use avsg_linker::ascend::limits::UB_BYTES;
use serde::Serialize;

use crate::command::emit::kernels_of;
use crate::command::engine_options::{DeviceChoice, DeviceOptions};
use crate::command::output;

/// An Ascend device, or the reason why nothing is known of it.
#[derive(Serialize)]
pub struct Ascend {
    pub name: &'static str,
    /// Bytes of unified buffer that the largest kernel of the geometry uses, of 188416.
    pub unified_buffer_bytes: u32,
    #[serde(flatten)]
    pub found: Found,
}

/// What the runtime says of the device.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Found {
    Device { soc: String, vector_cores: usize, free_bytes: usize, total_bytes: usize },
    None { reason: String },
}

impl Ascend {
    /// Checks that the device can run the geometry, and asks the runtime for the device; `None` for the
    /// CPU.
    pub fn examine(options: &DeviceOptions, params: &Params) -> Result<Option<Self>> {
        let name = match options.device {
            DeviceChoice::Cpu => return Ok(None),
            DeviceChoice::Ascend => "ascend",
            DeviceChoice::AscendSim => "ascend-sim",
        };
        let (kernels, _) = kernels_of(params, Abi::Direct)?;
        let used = kernels.kernels.iter().map(|kernel| kernel.ub_bytes).max();
        // A deployment is also sized on machines without a device.
        let found = find(options).unwrap_or_else(|e| Found::None { reason: format!("{e:#}") });
        Ok(Some(Self { name, unified_buffer_bytes: used.unwrap_or(0), found }))
    }

    /// Returns whether `bytes` bytes fit the device's free memory, if a device was found.
    pub fn fits(&self, bytes: usize) -> Option<bool> {
        match self.found {
            Found::Device { free_bytes, .. } => Some(bytes <= free_bytes),
            Found::None { .. } => None,
        }
    }

    /// Returns a line that describes the device.
    pub fn line(&self) -> String {
        let found = match &self.found {
            Found::Device { soc, vector_cores, free_bytes, total_bytes } => format!(
                "{soc}, {}, {} of {} free",
                output::count(*vector_cores, "vector core"),
                output::bytes(*free_bytes),
                output::bytes(*total_bytes)
            ),
            Found::None { reason } => format!("not found ({reason})"),
        };
        let used = self.unified_buffer_bytes;
        format!("{}: {found}; kernels need {used} of {UB_BYTES} bytes of unified buffer", self.name)
    }
}

fn find(options: &DeviceOptions) -> Result<Found> {
    let Some(context) = options.context()? else { anyhow::bail!("the CPU is no Ascend device") };
    let (free_bytes, total_bytes) = context.free_and_total_bytes()?;
    let soc = context.acl().soc_name();
    Ok(Found::Device { soc, vector_cores: context.vector_cores()?, free_bytes, total_bytes })
}
