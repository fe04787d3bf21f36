//! The examination: which checks run, each in a process of its own, and the report of them all.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use avsg_linker::ascend::cann;
use clap::ValueEnum as _;
use serde::de::DeserializeOwned;

use super::check::Check;
use super::harness;
use super::options::Options;
use super::report::{Bandwidth, Device, Field, Kernel, Report, Status, Toolkit};
use super::watch;

/// The result of a check, or how its process ended without one.
type Ended<T> = Result<T, (Status, String)>;

/// Runs a check in a process of its own.
fn watch<T: DeserializeOwned>(options: &Options, check: Check, folder: &Path) -> Result<Ended<T>> {
    let program = env::current_exe().context("finding this program")?;
    let mut command = Command::new(program);
    let device = options.device.to_possible_value().context("the device has a name")?;
    command.args(["doctor", "--device", device.get_name()]);
    command.args(["--ordinal", &options.ordinal.to_string()]);
    command.args(["--largest", &options.largest.to_string()]);
    command.args(["--limit", &options.limit.to_string()]);
    if let Some(library) = &options.library {
        command.arg("--library").arg(library);
    }
    for (name, value) in [("--k", options.k), ("--slots", options.slots)] {
        command.args(value.map(|value| format!("{name}={value}")));
    }
    command.args(["--check", &check.name()]).arg(folder);
    Ok(match watch::run(&mut command, Duration::from_secs(options.limit))? {
        Ok(text) => Ok(serde_json::from_str(&text)?),
        Err(end) => Err(end),
    })
}

/// Returns the CANN of this machine, and what it is too old for.
fn toolkit() -> Toolkit {
    let Some(home) = cann::home() else {
        let remark = "ASCEND_HOME_PATH is not set: source CANN's set_env.sh";
        return Toolkit { folder: None, version: None, remarks: vec![remark.into()] };
    };
    let folder = Some(home.display().to_string());
    match cann::version(&home) {
        Err(reason) => Toolkit { folder, version: None, remarks: vec![reason] },
        Ok(version) => {
            let too_old = cann::too_old_for(&version).map(|requirement| {
                let (major, minor) = requirement.since;
                let cann::Requirement { what, calls, .. } = requirement;
                format!(
                    "{version} is too old to {what}: {calls} are documented since {major}.{minor}"
                )
            });
            let remarks = too_old.collect();
            Toolkit { folder, version: Some(version.text), remarks }
        }
    }
}

/// Runs every check and returns the report.
pub fn examine(options: &Options) -> Result<Report> {
    let cann = toolkit();
    for remark in &cann.remarks {
        eprintln!("CANN: {remark}");
    }
    let described = watch::<Result<Device, String>>(options, Check::Device, Path::new(""))?;
    let (device, no_device, failure) = match described {
        Ok(Ok(device)) => (Some(device), None, None),
        Ok(Err(reason)) => (None, Some(reason.clone()), Some(format!("no device: {reason}"))),
        Err((_, text)) => (None, None, Some(format!("the device does not answer: {text}"))),
    };
    let chip = device.as_ref().map_or("", |device| &device.soc);
    let build = match &failure {
        Some(reason) => Err(anyhow::Error::msg(reason.clone())),
        None => {
            eprintln!("building the kernels");
            harness::build(options, chip)
        }
    };
    let not_built = || {
        let text = format!("the kernels were not built: {:#}", build.as_ref().err()?);
        eprintln!("{text}");
        Some(text)
    };
    let failure = failure.or_else(not_built);
    let mut exam =
        Exam { options, folder: build.as_ref().ok().cloned(), failure, kernels: BTreeMap::new() };
    let gather_mask_count = exam.field(Check::GatherCount)?;
    if let (Some(count), true) = (gather_mask_count.value.as_str(), exam.folder.is_some()) {
        eprintln!("the count of GatherMask: {count}");
    }
    for check in Check::KERNELS {
        exam.kernel(check)?;
    }
    let build = Field::new(build.map(|folder| folder.display().to_string()), "");
    let only_balanced = || {
        let reason =
            "device kernels implement only S3; avsg bench transfer measures S1 and S2 on the CPU";
        Field::without_value(reason.into(), "GB/s")
    };
    Ok(Report {
        cann,
        no_device,
        device,
        build,
        gather_mask_count,
        properties: (Check::PROPERTIES.into_iter())
            .map(|(name, check)| Ok((name, exam.field(check)?)))
            .collect::<Result<_>>()?,
        h2d_bandwidth: Bandwidth {
            request_s1: only_balanced(),
            position_s2: only_balanced(),
            balanced_s3: exam.field(Check::Bandwidth)?,
            paper_gigabytes_per_second: 105.0,
        },
        // This check is the last one, because it makes a kernel fault.
        kernel_fault_code: exam.field(Check::FaultCode)?,
        kernels: (exam.kernels.into_iter())
            .map(|(check, kernel)| (kernel_name(check), kernel))
            .collect(),
    })
}

fn kernel_name(check: Check) -> String {
    format!("avsg_{}", check.name())
}

/// The checks so far.
struct Exam<'a> {
    options: &'a Options,
    /// The folder of the kernels, if they were built.
    folder: Option<PathBuf>,
    /// The reason why no kernel can run.
    failure: Option<String>,
    kernels: BTreeMap<Check, Kernel>,
}

impl Exam<'_> {
    /// Returns the reason why a check cannot run.
    fn obstacle(&self, check: Check) -> Option<String> {
        let kernel = |need: &Check| {
            let kernel = self.kernels.get(need).filter(|kernel| kernel.status != Status::Good)?;
            let name = kernel_name(*need);
            let words = format!("it needs {name}, which was not right: {:?}", kernel.status);
            Some(words.to_lowercase())
        };
        self.failure.clone().or_else(|| check.needs().iter().find_map(kernel))
    }

    fn kernel(&mut self, check: Check) -> Result<()> {
        if !self.options.selects(check) {
            return Ok(());
        }
        let kernel = match (self.obstacle(check), &self.folder) {
            (Some(reason), _) => Kernel::bad(Status::NotRun, reason),
            (None, folder) => {
                let folder = folder.as_deref().unwrap_or(Path::new(""));
                watch(self.options, check, folder)?
                    .unwrap_or_else(|(status, text)| Kernel::bad(status, text))
            }
        };
        if self.folder.is_some() {
            let reason = kernel.reason.as_deref().map_or(String::new(), |r| format!(": {r}"));
            let status = serde_json::to_string(&kernel.status)?;
            eprintln!("{}: {}{reason}", kernel_name(check), status.trim_matches('"'));
        }
        self.kernels.insert(check, kernel);
        Ok(())
    }

    fn field(&self, check: Check) -> Result<Field> {
        if !self.options.selects(check) {
            return Ok(Field::without_value("it was not asked for".into(), ""));
        }
        if let Some(reason) = self.obstacle(check) {
            return Ok(Field::without_value(reason, ""));
        }
        let folder = self.folder.as_deref().unwrap_or(Path::new(""));
        Ok(watch(self.options, check, folder)?.unwrap_or_else(|(_, text)| {
            eprintln!("{}: {text}", check.name());
            Field::without_value(text, "")
        }))
    }
}
