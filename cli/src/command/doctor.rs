//! `avsg doctor` measures properties of an Ascend device that its documentation leaves open.

mod memory;
mod operator;
mod probe;
mod report;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use avsg::ascend::acl::owned::{Context, DeviceMemory};
use avsg::ascend::acl::{Acl, Source, api};
use avsg::ascend::simulated;
use avsg::device::params::{Lifetime, Params};
use avsg_linker::toolchain::Toolchain;
use clap::{Args, ValueEnum};

use super::output;
use probe::Probe;
use report::{Bandwidth, Field, Report};

/// The device that is examined.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Device {
    /// An Ascend 910B of this machine
    Ascend,
    /// The simulated runtime, which runs the same code but gives no times
    AscendSim,
}

/// Options of `avsg doctor`.
#[derive(Args, Debug)]
#[command(
    after_help = "The report is JSON: every field has a value, or the reason why it has none. Without a device,\n\
                        nothing is measured and the exit status is 0. On a machine with a 910B and CANN:\n  \
                        source /usr/local/Ascend/ascend-toolkit/set_env.sh\n  \
                        avsg doctor --device ascend --json report.json"
)]
pub struct Options {
    /// Device that is examined
    #[arg(long, value_enum, default_value = "ascend")]
    device: Device,
    /// Number of the device among those of this machine, from 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    ordinal: i32,
    /// Library of the runtime [default: libacl_rt.so, then libascendcl.so]
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
    /// Largest registration of host memory that is tried
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 30)]
    largest: usize,
    /// Write the report as JSON to this file; - is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// The device and the settings that all checks share.
struct Harness {
    context: Arc<Context>,
    probe: Probe,
    cores: usize,
    /// Whether the device is simulated, so that its times mean nothing.
    simulated: bool,
    /// The folder with the kernels of `params`.
    kernels: PathBuf,
    params: Params,
    /// Bytes of the largest registration that is tried.
    largest: usize,
}

impl Harness {
    /// Returns an error on the simulator, whose times mean nothing.
    fn require_hardware(&self) -> Result<()> {
        if self.simulated {
            bail!("the simulator has no times; only hardware gives this value");
        }
        Ok(())
    }
}

/// Examines the device and prints the report.
pub fn run(options: &Options) -> Result<ExitCode> {
    let simulated = options.device == Device::AscendSim;
    let source = match (&options.library, simulated) {
        (Some(path), _) => Source::Path(path.clone()),
        (None, true) => simulated::source(),
        (None, false) => Source::System,
    };
    let opened =
        Acl::open(&source).and_then(|acl| Context::for_device(Arc::new(acl), options.ordinal));
    let context = match opened {
        Ok(context) => context,
        Err(error) => {
            println!("skipped: no device: {error}");
            return Ok(ExitCode::SUCCESS);
        }
    };
    let report = examine(options, &context, simulated)?;
    if let Some(path) = &options.json {
        output::json(path, &report)?;
    }
    if !output::is_stdout(options.json.as_deref()) {
        println!("{}", serde_json::to_string_pretty(&report)?);
    }
    Ok(ExitCode::SUCCESS)
}

fn examine(options: &Options, context: &Arc<Context>, simulated: bool) -> Result<Report> {
    // The simulator is slow. A device gets the geometry of a GLM or DeepSeek layer.
    let (k, slots) = if simulated { (64, 256) } else { (2048, 8192) };
    let wide = Params { lifetime: Lifetime::Constant(127), ..Params::wide(k, 1, slots) };
    let params = Params { spread: 2, retries: 7, ..wide };
    let kernels = simulated::emit(&params)?;
    let probes = write_probes(&kernels)?;
    let probes = if simulated { probes } else { compile(&kernels, &probes)? };
    let probe = Probe::new(context, &probes)?;
    let cores = context.vector_cores()?;
    let (context, largest) = (Arc::clone(context), options.largest);
    let harness = Harness { context, probe, cores, simulated, kernels, params, largest };
    report(&harness)
}

/// Writes the source of the probe kernels into the folder of the emitted kernels.
fn write_probes(folder: &Path) -> Result<PathBuf> {
    let path = folder.join("avsg_probes.cpp");
    let temporary = path.with_extension(std::process::id().to_string());
    fs::write(&temporary, include_str!("doctor/probes.cpp"))?;
    fs::rename(&temporary, &path).with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}

/// Compiles every kernel of a folder for the device, and returns the path of the probes' object file.
fn compile(folder: &Path, probes: &Path) -> Result<PathBuf> {
    let toolchain = Toolchain::find()?;
    for entry in fs::read_dir(folder)? {
        let source = entry?.path();
        if source.extension().is_some_and(|end| end == "cpp") {
            toolchain.compile(&source, &source.with_extension("o"))?;
        }
    }
    Ok(probes.with_extension("o"))
}

fn report(harness: &Harness) -> Result<Report> {
    let acl = harness.context.acl();
    let (free, total) = {
        let _current = harness.context.bind()?;
        api::device::memory(acl)?
    };
    let out = DeviceMemory::zeroed(&harness.context, 4096)?;
    let none = "";
    Ok(Report {
        device: if harness.simulated { "ascend-sim" } else { "ascend" },
        library: acl.name().to_owned(),
        soc: api::process::soc_name(acl),
        vector_cores: harness.cores,
        memory_free_bytes: free,
        memory_total_bytes: total,
        int32_overflow: Field::new(overflow(harness, &out), none),
        gather_rate: Field::new(gather(harness, &out), "words per nanosecond and core"),
        sync_all_cost: Field::new(sync_all(harness, &out), "microseconds"),
        launch_cost: Field::new(launch(harness, &out), "microseconds"),
        mte2_rows_in_flight: Field::new(memory::rows_in_flight(harness, &out), "[rows, GB/s]"),
        hugetlb_registration: Field::new(memory::hugetlb(harness), none),
        largest_registration: Field::new(memory::largest(harness), "bytes"),
        rewritten_row_seen: Field::new(operator::rewritten_row(harness), none),
        match_latency: Field::new(operator::matching(harness), "microseconds"),
        h2d_bandwidth: Bandwidth {
            request_s1: Field::new(only_balanced(), "GB/s"),
            position_s2: Field::new(only_balanced(), "GB/s"),
            balanced_s3: Field::new(operator::bandwidth(harness), "GB/s"),
            paper_gigabytes_per_second: 105.0,
        },
        // This check is the last one, because it leaves the context unusable.
        kernel_fault_code: Field::new(operator::fault_code(harness), "ACL code"),
    })
}

/// Returns the reason why S1 and S2 have no bandwidth.
fn only_balanced() -> Result<f64> {
    bail!("device kernels implement only S3; avsg bench transfer measures S1 and S2 on the CPU")
}

fn overflow(harness: &Harness, out: &DeviceMemory) -> Result<&'static str> {
    if harness.simulated {
        bail!("the simulator raises an exception; only hardware gives this value");
    }
    harness.probe.run(c"avsg_probe_overflow", 0, out, [0; 4], 1)?;
    let mut word = [0; 4];
    out.read(0, &mut word)?;
    Ok(match i32::from_ne_bytes(word) {
        i32::MIN => "wraps",
        i32::MAX => "saturates",
        _ => "something else",
    })
}

fn gather(harness: &Harness, out: &DeviceMemory) -> Result<f64> {
    let run =
        |n| harness.probe.best(|probe| probe.run(c"avsg_probe_gather", 0, out, [n, 0, 0, 0], 1));
    let (few, many) = (run(10)?, run(if harness.simulated { 11 } else { 1010 })?);
    let mut word = [0; 4];
    out.read(0, &mut word)?;
    if i32::from_ne_bytes(word) != 7 {
        bail!("gathered {} instead of 7", i32::from_ne_bytes(word));
    }
    harness.require_hardware()?;
    Ok(1000.0 * 2048.0 / ((many - few) * 1e3))
}

fn sync_all(harness: &Harness, out: &DeviceMemory) -> Result<f64> {
    let run = |n| {
        harness
            .probe
            .best(|probe| probe.run(c"avsg_probe_sync", 0, out, [n, 0, 0, 0], harness.cores))
    };
    let (few, many) = (run(1)?, run(if harness.simulated { 3 } else { 1001 })?);
    harness.require_hardware()?;
    Ok((many - few) / 1000.0)
}

fn launch(harness: &Harness, out: &DeviceMemory) -> Result<f64> {
    let best = harness
        .probe
        .best(|probe| probe.run(c"avsg_probe_empty", 0, out, [0; 4], harness.cores))?;
    harness.require_hardware()?;
    Ok(best)
}
