//! The examination: which checks run, and the report of them all.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, anyhow};
use avsg::Error;
use avsg_linker::ascend::cann;
use serde_json::{Map, Value, json};

use super::check::{CHECKS, Check, CheckKind};
use super::options::Options;
use super::report::{Line, Report, shown};
use super::times::ROWS;
use super::{harness, watch};

/// Returns the version of the CANN of this machine, and what it is too old for.
fn toolkit() -> (Option<String>, Vec<String>) {
    let unset = || "ASCEND_HOME_PATH is not set: source CANN's set_env.sh".to_owned();
    let version = match cann::home().ok_or_else(unset).and_then(|home| cann::version(&home)) {
        Err(reason) => return (None, vec![reason]),
        Ok(version) => version,
    };
    let remark = |requirement: &cann::Requirement| {
        let cann::Requirement { what, calls, since: (major, minor) } = requirement;
        format!("{version} is too old to {what}: {calls} are documented since {major}.{minor}")
    };
    let remarks = cann::too_old_for(&version).map(remark).collect();
    (Some(version.text), remarks)
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
pub fn examine(options: &Options) -> Result<Report> {
    let (version, remarks) = toolkit();
    let mut report = Report {
        versions: versions(),
        cann: json!({"version": version, "remarks": remarks}),
        no_device: None,
        device: None,
        lines: Vec::new(),
    };
    type Described = std::result::Result<Map<String, Value>, (String, Option<String>)>;
    let limit = Duration::from_secs(options.target.limit);
    match watch::run::<Described>("device", Path::new(""), limit)? {
        Ok(Ok(device)) => report.device = Some(device),
        Ok(Err((reason, tried))) => {
            // A file that does not exist is no mistake: the same command then runs on machines with and without a device.
            let file = options.target.library.as_deref().filter(|file| file.exists());
            if let Some((file, tried)) = file.zip(tried) {
                let limit = format!("this file is no Ascend runtime: {tried}");
                let remedy = "pass the path of libascendcl.so, or leave it out";
                return Err(Error::invalid("--library", file.display(), limit, remedy).into());
            }
            report.no_device = Some(reason);
        }
        Err((status, text)) => add(&mut report.lines, "device", Line::bad(status, text)),
    }
    let Some(device) = &report.device else { return Ok(report) };
    let chip = device["soc"].as_str().unwrap_or_default();
    remarks.iter().for_each(|remark| eprintln!("CANN: {remark}"));
    eprintln!("building the kernels");
    let target = &options.target;
    let plain = harness::plain(target);
    let built = harness::build(target, chip, &plain, false);
    let built =
        built.and_then(|folder| harness::build_probes(target, chip, &folder).map(|()| folder));
    let line = Line::new(built.as_ref().map(|_| true.into()).map_err(|e| anyhow!("{e:#}")));
    add(&mut report.lines, "build", Line { expected: "true".into(), ..line });
    let Ok(folder) = built else { return Ok(report) };
    eprintln!("the kernels are in {}", folder.display());
    for check in CHECKS.iter().filter(|check| options.selects(check)) {
        eprintln!("checking {}", check.name);
        let params = (check.vary)(plain);
        let folder = match params == plain && !check.inlined {
            true => Ok(folder.clone()),
            false => harness::build(target, chip, &params, check.inlined),
        };
        for (name, line) in examined(limit, check, folder, &report.lines)? {
            let line = Line { expected: check.expected.into(), ..line };
            add(&mut report.lines, &name, line);
        }
    }
    Ok(report)
}

/// Returns the lines of a check with the kernels of a folder, or the reason why it cannot run.
fn examined(
    limit: Duration,
    check: &Check,
    folder: Result<PathBuf>,
    lines: &[(String, Line)],
) -> Result<Vec<(String, Line)>> {
    let bad = |(name, line): &&(String, Line)| {
        check.needs.contains(&name.as_str()) && line.value != "good"
    };
    let ended = match (lines.iter().find(bad), folder) {
        (Some((kernel, _)), _) => {
            Err(("not_run", format!("it needs {kernel}, which was not right")))
        }
        (None, Err(error)) => Err(("not_run", format!("{error:#}"))),
        (None, Ok(folder)) => watch::run(check.name, &folder, limit)?,
    };
    let (status, reason) = match ended {
        Ok(lines) => return Ok(lines),
        Err(end) => end,
    };
    let names: Vec<&str> = match check.work {
        CheckKind::Times => {
            ROWS.iter().filter(|row| row.1 == check.name).map(|row| row.0).collect()
        }
        _ => vec![check.name],
    };
    let is_kernel = matches!(check.work, CheckKind::Kernels(_));
    let value = if is_kernel { status.into() } else { Value::Null };
    let without = |name: &str| (name.to_owned(), Line::bad(value.clone(), reason.clone()));
    Ok(names.into_iter().map(without).collect())
}

/// Adds a line to the report, and says on standard error what is not as expected.
fn add(lines: &mut Vec<(String, Line)>, name: &str, line: Line) {
    let (shown, expected) = (shown(&line.value).unwrap_or_default(), &line.expected);
    if let Some(reason) = &line.reason {
        eprintln!("{name}: {reason}");
    } else if !line.is_expected() {
        eprintln!("{name}: {shown}, expected {expected}; docs/ascend.md says what it decides");
    }
    lines.push((name.to_owned(), line));
}
