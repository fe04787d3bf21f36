//! The examination: which checks run, and the report of them all.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use avsg::Error;
use avsg_linker::ascend::{cann, soc};
use clap::ValueEnum as _;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::check::{Check, PROPERTIES};
use super::options::Options;
use super::report::{Device, Field, Kernel, NoDevice, Report, Status, Time, Toolkit};
use super::times::{Measured, ROWS, Row};
use super::{clocks, harness, watch};
use crate::constants::Constants;

/// The result of a check, or how its process ended without one.
type Ended<T> = Result<T, (Status, String)>;

/// Runs a check with the kernels of a folder.
type Run<'a> = &'a dyn Fn(Check, &Path) -> Result<Ended<Value>>;

/// The reason of what `--only` leaves out.
const NOT_ASKED: &str = "it was not asked for";

/// Runs a check in a process of its own.
pub fn watched(options: &Options, check: Check, folder: &Path) -> Result<Ended<Value>> {
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
    command.args(options.set.iter().map(|set| format!("--set={set}")));
    command.args(["--check", &check.name()]).arg(folder);
    Ok(match watch::run(&mut command, Duration::from_secs(options.limit))? {
        Ok(text) => Ok(serde_json::from_str(&text)?),
        Err(end) => Err(end),
    })
}

fn typed<T: DeserializeOwned>(ended: Ended<Value>) -> Result<Ended<T>> {
    Ok(match ended {
        Ok(value) => Ok(serde_json::from_value(value)?),
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

/// Returns the versions of what is below and beside CANN. The driver and the firmware state theirs in files.
fn versions() -> BTreeMap<&'static str, Option<String>> {
    let stated = |part: &str| {
        let file = format!("/usr/local/Ascend/{part}/version.info");
        cann::stated(Path::new(&file)).map(|version| version.text)
    };
    let linux = fs::read_to_string("/proc/sys/kernel/osrelease").ok();
    BTreeMap::from([
        ("avsg", Some(env!("CARGO_PKG_VERSION").into())),
        ("driver", stated("driver")),
        ("firmware", stated("firmware")),
        ("linux", linux.map(|release| release.trim().into())),
    ])
}

/// Runs every check and returns the report.
pub fn examine(options: &Options, run: Run<'_>) -> Result<Report> {
    options.constants()?;
    let described = typed::<Result<Device, NoDevice>>(run(Check::Device, Path::new(""))?)?;
    let (device, no_device, failure) = match described {
        Ok(Ok(device)) => (Some(device), None, None),
        Ok(Err(NoDevice { reason, no_runtime })) => {
            refuse_file(options.library.as_deref(), no_runtime)?;
            (None, Some(reason.clone()), Some(format!("no device: {reason}")))
        }
        Err((_, text)) => (None, None, Some(format!("the device does not answer: {text}"))),
    };
    let cann = toolkit();
    for remark in &cann.remarks {
        eprintln!("CANN: {remark}");
    }
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
    let learned = match &failure {
        Some(reason) => Err(anyhow::Error::msg(reason.clone())),
        None if !options.only.is_empty() => Err(anyhow::Error::msg(NOT_ASKED)),
        None => harness::build_learned(options, chip),
    };
    let failure = failure.or_else(not_built);
    let folder = build.as_ref().ok().cloned();
    if let Some(folder) = &folder {
        eprintln!("the kernels are in {}", folder.display());
    }
    let mut exam = Exam { options, run, folder, failure, kernels: BTreeMap::new() };
    let [count, others @ ..] = &PROPERTIES;
    let counted = exam.field(count.check)?.of(count);
    if let (Some(value), true) = (counted.value.as_str(), exam.folder.is_some()) {
        eprintln!("the count of GatherMask: {value}");
    }
    for check in Check::KERNELS {
        exam.kernel(check)?;
    }
    let modelled = exam.clocks(device.as_ref());
    let no_clocks = modelled.as_ref().err().map(|error| format!("{error:#}"));
    let times = exam.times(device.as_ref(), &modelled.unwrap_or_default())?;
    let mut properties = vec![(count.name, counted)];
    for property in others {
        properties.push((property.name, exam.field(property.check)?.of(property)));
    }
    for (name, field) in &properties {
        if let (Some(false), Some(expected)) = (field.as_expected, &field.expected) {
            let seen = &field.value;
            eprintln!("{name}: {seen}, expected {expected}; docs/ascend.md says what it decides");
        }
    }
    let kernels = exam.kernels.into_iter();
    Ok(Report {
        versions: versions(),
        cann,
        no_device,
        device,
        build: Field::new(build.map(|_| true)),
        build_learned: Field::new(learned.map(|()| true)),
        kernels: kernels.map(|(check, kernel)| (kernel_name(check), kernel)).collect(),
        properties,
        times,
        no_clocks,
    })
}

/// Refuses a file that was named as the runtime and is none. A file that does not exist is no mistake: the same
/// command then runs on machines with and without a device.
fn refuse_file(library: Option<&Path>, no_runtime: Option<String>) -> Result<()> {
    let file = library.filter(|file| file.exists());
    let Some((file, tried)) = file.zip(no_runtime) else { return Ok(()) };
    let limit = format!("this file is no Ascend runtime: {tried}");
    let remedy = "pass the path of libascendcl.so, or leave it out";
    Err(Error::invalid("--library", file.display(), limit, remedy).into())
}

fn kernel_name(check: Check) -> String {
    format!("avsg_{}", check.name())
}

/// The checks so far.
struct Exam<'a> {
    options: &'a Options,
    run: Run<'a>,
    /// The folder of the kernels, if they were built.
    folder: Option<PathBuf>,
    /// The reason why no kernel can run.
    failure: Option<String>,
    kernels: BTreeMap<Check, Kernel>,
}

impl Exam<'_> {
    /// Returns the reason why a check does not run.
    fn obstacle(&self, check: Check) -> Option<String> {
        if !self.options.selects(check) {
            return Some(NOT_ASKED.into());
        }
        let kernel = |need: &Check| {
            let kernel = self.kernels.get(need).filter(|kernel| kernel.status != Status::Good)?;
            let name = kernel_name(*need);
            let words = format!("it needs {name}, which was not right: {:?}", kernel.status);
            Some(words.to_lowercase())
        };
        self.failure.clone().or_else(|| check.needs().iter().find_map(kernel))
    }

    fn result<T: DeserializeOwned>(&self, check: Check) -> Result<Ended<T>> {
        let folder = self.folder.as_deref().unwrap_or(Path::new(""));
        typed((self.run)(check, folder)?)
    }

    fn kernel(&mut self, check: Check) -> Result<()> {
        if !self.options.selects(check) {
            return Ok(());
        }
        let kernel = match self.obstacle(check) {
            Some(reason) => Kernel::bad(Status::NotRun, reason),
            None => self.result(check)?.unwrap_or_else(|(status, text)| Kernel::bad(status, text)),
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
        if let Some(reason) = self.obstacle(check) {
            return Ok(Field::without_value(reason));
        }
        Ok(self.result(check)?.unwrap_or_else(|(_, text)| {
            eprintln!("{}: {text}", check.name());
            Field::without_value(text)
        }))
    }

    /// Returns the times of the clocks, if any time was asked for and the kernels were built.
    fn clocks(&self, device: Option<&Device>) -> Result<BTreeMap<String, f64>> {
        let asked = Check::TIMES.iter().any(|&check| self.options.selects(check));
        let (Some(device), None, true) = (device, &self.failure, asked) else {
            return Ok(BTreeMap::new());
        };
        let soc = soc::find(&device.soc).unwrap_or(soc::OF_THE_PAPER);
        let (cores, geometry) = (device.vector_cores as u32, device.geometry);
        clocks::times(&Constants::default(), &soc, cores, geometry.k, geometry.slots)
    }

    fn times(
        &self,
        device: Option<&Device>,
        clocks: &BTreeMap<String, f64>,
    ) -> Result<Vec<(&'static str, Time)>> {
        let mut measured = Measured::new();
        for check in Check::TIMES {
            let all = match self.obstacle(check) {
                Some(reason) => Err(reason),
                None => self.result::<Measured>(check)?.map_err(|(_, text)| text),
            };
            let rows = ROWS.iter().filter(|row| row.check == check);
            match all {
                Ok(times) => measured.extend(times),
                Err(why) => measured.extend(rows.map(|row| (row.name.into(), Err(why.clone())))),
            }
        }
        let mut time = |row: &Row| {
            let (spread, reason) = match measured.remove(row.name) {
                Some(Ok(spread)) => (Some(spread), None),
                Some(Err(reason)) => (None, Some(reason)),
                None => (None, Some("the check did not measure it".into())),
            };
            let all = device.map_or(0, |device| device.vector_cores);
            let cores = if row.all_cores { all } else { 1 };
            let clocks_us = clocks.get(row.name).copied();
            (row.name, Time { of: row.of, cores, measured: spread, clocks_us, reason })
        };
        Ok(ROWS.iter().map(&mut time).collect())
    }
}
