//! The Ascend device that a deployment is sized for.

use anyhow::{Context as _, Result};
use avsg::device::params::Params;
use avsg_linker::ascend::kernels::Abi;
use avsg_linker::ascend::limits::UB_BYTES;
use serde_json::{Value, json};

use crate::command::emit::kernels_of;
use crate::command::engine_options::{DeviceChoice, DeviceOptions};
use crate::command::output::{bytes, count};

/// Checks that the device can run the geometry, and asks the runtime for the device. Returns what is known of it as
/// a line and as JSON, or why nothing is; `None` for the CPU.
pub fn examine(options: &DeviceOptions, params: &Params) -> Result<Option<(String, Value)>> {
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
        let (soc, cores) = (context.acl().soc_name(), context.vector_cores()?);
        let [shown, of] = [free, total].map(bytes);
        let line = format!("{soc}, {}, {shown} of {of} free", count(cores, "vector core"));
        let json =
            json!({"soc": soc, "vector_cores": cores, "free_bytes": free, "total_bytes": total});
        anyhow::Ok((line, json))
    };
    // A deployment is also sized on machines without a device.
    let (found, mut json) = find().unwrap_or_else(|error| {
        let reason = format!("{error:#}");
        (format!("not found ({reason})"), json!({"reason": reason}))
    });
    json["name"] = name.into();
    json["unified_buffer_bytes"] = used.into();
    let line =
        format!("{name}: {found}; kernels need {used} of {UB_BYTES} bytes of unified buffer");
    Ok(Some((line, json)))
}
