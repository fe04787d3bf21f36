//! `avsg doctor`: what an Ascend device does that nobody could look up, as a report.

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

/// Which runtime.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Device {
    /// The device of this machine
    Ascend,
    /// The simulated one: the same code, without what only hardware can tell
    AscendSim,
}

#[derive(Args, Debug)]
#[command(after_help = "On a machine with a 910B and CANN:\n  \
                        source /usr/local/Ascend/ascend-toolkit/set_env.sh\n  \
                        avsg doctor --device ascend --json report.json")]
pub struct Options {
    /// Which device
    #[arg(long, value_enum, default_value = "ascend")]
    device: Device,
    /// Number of the device
    #[arg(long, value_name = "N", default_value_t = 0)]
    ordinal: i32,
    /// The runtime's library [default: libacl_rt.so, then libascendcl.so]
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
    /// The largest registration that is tried
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 30)]
    largest: usize,
    /// Write the report as JSON to this file, - for standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What the checks have in common.
struct Patient {
    context: Arc<Context>,
    probe: Probe,
    cores: usize,
    /// Why times mean nothing here.
    simulated: bool,
    /// The kernels of `params`.
    kernels: PathBuf,
    params: Params,
    largest: usize,
}

impl Patient {
    /// Refuses what the simulator cannot tell.
    fn hardware(&self) -> Result<()> {
        if self.simulated {
            bail!("only hardware can tell");
        }
        Ok(())
    }
}

/// Runs the command.
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
    // Small enough for a simulator; what a GLM or DeepSeek layer has otherwise.
    let (k, slots) = if simulated { (64, 256) } else { (2048, 8192) };
    let wide = Params { lifetime: Lifetime::Constant(127), ..Params::wide(k, 1, slots) };
    let params = Params { spread: 2, retries: 7, ..wide };
    let kernels = simulated::emit(&params)?;
    let probes = probes(&kernels)?;
    let probes = if simulated { probes } else { compile(&kernels, &probes)? };
    let probe = Probe::new(context, &probes)?;
    let cores = context.vector_cores()?;
    let (context, largest) = (Arc::clone(context), options.largest);
    let patient = Patient { context, probe, cores, simulated, kernels, params, largest };
    report(&patient)
}

/// Writes the probe kernels beside the others.
fn probes(folder: &Path) -> Result<PathBuf> {
    let path = folder.join("avsg_probes.cpp");
    let fresh = path.with_extension(std::process::id().to_string());
    fs::write(&fresh, include_str!("doctor/probes.cpp"))?;
    fs::rename(&fresh, &path).with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}

/// Compiles every kernel of a folder for the device; returns the probes' object.
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

fn report(p: &Patient) -> Result<Report> {
    let acl = p.context.acl();
    let (free, total) = {
        let _current = p.context.bind()?;
        api::device::memory(acl)?
    };
    let out = DeviceMemory::zeroed(&p.context, 4096)?;
    let none = "";
    Ok(Report {
        device: if p.simulated { "ascend-sim" } else { "ascend" },
        library: acl.name().to_owned(),
        soc: api::process::soc_name(acl),
        vector_cores: p.cores,
        memory_free_bytes: free,
        memory_total_bytes: total,
        int32_overflow: Field::of(overflow(p, &out), none),
        gather_rate: Field::of(gather(p, &out), "words per nanosecond and core"),
        sync_all_cost: Field::of(sync_all(p, &out), "microseconds"),
        launch_cost: Field::of(launch(p, &out), "microseconds"),
        mte2_rows_in_flight: Field::of(memory::rows_in_flight(p, &out), "[rows, GB/s]"),
        hugetlb_registration: Field::of(memory::hugetlb(p), none),
        largest_registration: Field::of(memory::largest(p), "bytes"),
        rewritten_row_seen: Field::of(operator::rewritten_row(p), none),
        match_latency: Field::of(operator::matching(p), "microseconds"),
        h2d_bandwidth: Bandwidth {
            request_s1: Field::of(only_balanced(), "GB/s"),
            position_s2: Field::of(only_balanced(), "GB/s"),
            balanced_s3: Field::of(operator::bandwidth(p), "GB/s"),
            paper_gigabytes_per_second: 105.0,
        },
        // Last: it leaves the context unusable.
        kernel_fault_code: Field::of(operator::fault_code(p), "ACL code"),
    })
}

fn only_balanced() -> Result<f64> {
    bail!("device kernels spread misses evenly; S1 and S2 are measured on the CPU (bench transfer)")
}

fn overflow(p: &Patient, out: &DeviceMemory) -> Result<&'static str> {
    if p.simulated {
        bail!("only hardware can tell; the shim raises an exception");
    }
    p.probe.run(c"avsg_probe_overflow", 0, out, [0; 4], 1)?;
    let mut word = [0; 4];
    out.read(0, &mut word)?;
    Ok(match i32::from_ne_bytes(word) {
        i32::MIN => "wraps",
        i32::MAX => "saturates",
        _ => "something else",
    })
}

fn gather(p: &Patient, out: &DeviceMemory) -> Result<f64> {
    let run = |n| p.probe.best(|probe| probe.run(c"avsg_probe_gather", 0, out, [n, 0, 0, 0], 1));
    let (few, many) = (run(10)?, run(if p.simulated { 11 } else { 1010 })?);
    let mut word = [0; 4];
    out.read(0, &mut word)?;
    if i32::from_ne_bytes(word) != 7 {
        bail!("gathered {} instead of 7", i32::from_ne_bytes(word));
    }
    p.hardware()?;
    Ok(1000.0 * 2048.0 / ((many - few) * 1e3))
}

fn sync_all(p: &Patient, out: &DeviceMemory) -> Result<f64> {
    let run =
        |n| p.probe.best(|probe| probe.run(c"avsg_probe_sync", 0, out, [n, 0, 0, 0], p.cores));
    let (few, many) = (run(1)?, run(if p.simulated { 3 } else { 1001 })?);
    p.hardware()?;
    Ok((many - few) / 1000.0)
}

fn launch(p: &Patient, out: &DeviceMemory) -> Result<f64> {
    let best = p.probe.best(|probe| probe.run(c"avsg_probe_empty", 0, out, [0; 4], p.cores))?;
    p.hardware()?;
    Ok(best)
}
