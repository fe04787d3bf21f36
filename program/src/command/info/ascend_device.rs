//! The Ascend device that a deployment is sized for.

use anyhow::{Context as _, Result};
use avsg::device::params::Params;
use avsg_linker::ascend::kernels::Abi;
use avsg_linker::ascend::limits::UB_BYTES;
use serde_json::{Value, json};

use crate::command::emit::kernels_of;
use crate::command::engine_options::{DeviceChoice, DeviceOptions};
use crate::command::output::{bytes, count};

/// An Ascend device, or the reason why nothing is known of it.
pub struct Ascend {
    /// What is known, as JSON and as a line.
    pub json: Value,
    pub line: String,
    /// Bytes of free memory, if the device was found.
    pub free: Option<usize>,
}

/// Checks that the device can run the geometry, and asks the runtime for the device; `None` for the CPU.
pub fn examine(options: &DeviceOptions, params: &Params) -> Result<Option<Ascend>> {
    let name = match options.device {
        DeviceChoice::Cpu => return Ok(None),
        DeviceChoice::Ascend => "ascend",
        DeviceChoice::AscendSim => "ascend-sim",
    };
    let (kernels, _) = kernels_of(params, Abi::Direct)?;
    // The largest kernel of the geometry.
    let used = kernels.kernels.iter().map(|kernel| kernel.ub_bytes).max().unwrap_or(0);
    let find = || {
        let context = options.context()?.context("the CPU is no Ascend device")?;
        let (free, total) = context.free_and_total_bytes()?;
        Ok::<_, anyhow::Error>((context.acl().soc_name(), context.vector_cores()?, free, total))
    };
    // A deployment is also sized on machines without a device.
    let (found, mut json, free) = match find() {
        Ok((soc, cores, free, total)) => (
            format!(
                "{soc}, {}, {} of {} free",
                count(cores, "vector core"),
                bytes(free),
                bytes(total)
            ),
            json!({"soc": soc, "vector_cores": cores, "free_bytes": free, "total_bytes": total}),
            Some(free),
        ),
        Err(error) => {
            let reason = format!("{error:#}");
            (format!("not found ({reason})"), json!({"reason": reason}), None)
        }
    };
    json["name"] = name.into();
    json["unified_buffer_bytes"] = used.into();
    let line =
        format!("{name}: {found}; kernels need {used} of {UB_BYTES} bytes of unified buffer");
    Ok(Some(Ascend { json, line, free }))
}
