//! fio, which does nothing but read and write, beside AVSG.

use std::cell::RefCell;
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use avsg::disk::DiskInfo;
use rustix::fs::{FallocateFlags, fallocate};
use serde_json::Value;

use crate::disk::{Setting, Step, setting};

/// Bytes of a sequential read or write, of which as many are under way as AVSG has writes. A write of AVSG has up to twice as many bytes.
const LARGE: usize = 1 << 20;
/// The options of reads.
const FOR_A_SECOND: &str = "--readonly --time_based --runtime=1";

/// What fio does.
#[derive(Clone, Copy)]
pub enum Job {
    /// Writes a new file from its start, with a flush at the end.
    Write,
    /// Reads that file from its start, for a second.
    Read,
    /// Reads records of so many bytes for a second, as many under way as Stage Two has.
    Random(usize),
}

/// fio, on a file of its own in a folder.
pub struct Fio<'a> {
    folder: &'a Path,
    /// What AVSG's file is. fio's has its length and its flags.
    info: &'a DiskInfo,
    file: RefCell<File>,
    /// Why there is no figure of fio.
    pub missing: RefCell<Option<String>>,
}

impl<'a> Fio<'a> {
    pub fn new(folder: &'a Path, info: &'a DiskInfo) -> Result<Self> {
        let file = RefCell::new(tempfile::tempfile_in(folder)?);
        Ok(Self { folder, info, file, missing: RefCell::default() })
    }

    /// Returns the setting whose time is that of `bytes` bytes at the rate of a job.
    pub fn setting(&self, name: &'static str, job: Job, bytes: usize) -> Setting<'_> {
        setting(name, 0, move |_| {
            let mut missing = self.missing.borrow_mut();
            let mut rate = None;
            if missing.is_none() {
                let fault = |fault| *missing = Some(format!("{fault:#}"));
                rate = self.rate(job).map_err(fault).ok();
            }
            let us = rate.map_or(f64::NAN, |rate| bytes as f64 / rate * 1e6);
            let block = if let Job::Random(block) = job { block } else { LARGE };
            Ok(Step { us, operations: bytes / block, bytes, wrong_rows: 0 })
        })
    }

    /// Returns the bytes per second of a job.
    fn rate(&self, job: Job) -> Result<f64> {
        let bytes = self.info.file_bytes.next_multiple_of(LARGE as u64);
        let job = match job {
            Job::Write => {
                let file = tempfile::tempfile_in(self.folder)?;
                fallocate(&file, FallocateFlags::empty(), 0, bytes)
                    .context("taking space for fio")?;
                self.file.replace(file);
                format!("write --bs={LARGE} --iodepth=16 --size={bytes} --end_fsync=1")
            }
            Job::Read => format!("read --bs={LARGE} --iodepth=16 {FOR_A_SECOND}"),
            Job::Random(block) => format!("randread --bs={block} --iodepth=256 {FOR_A_SECOND}"),
        };
        let options = format!(
            "--name=avsg --filename=/proc/{}/fd/{} --rw={job} --ioengine={} --direct={} --output-format=json",
            std::process::id(),
            self.file.borrow().as_raw_fd(),
            if self.info.io_uring { "io_uring" } else { "psync" },
            u8::from(!self.info.file.buffered)
        );
        let output = match Command::new("fio").args(options.split(' ')).output() {
            Err(error) if error.kind() == ErrorKind::NotFound => bail!("fio is not installed"),
            output => output.context("starting fio")?,
        };
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            bail!("fio failed: {}", errors.lines().next().unwrap_or("without a message"));
        }
        // Notes may stand before the results.
        let text = String::from_utf8_lossy(&output.stdout);
        let results = text.find('{').map(|start| serde_json::from_str::<Value>(&text[start..]));
        let results =
            results.context("fio printed no results")?.context("reading the results of fio")?;
        let bytes = ["read", "write"].map(|of| results["jobs"][0][of]["bw_bytes"].as_f64());
        let rate = bytes.into_iter().flatten().find(|&rate| rate > 0.0);
        rate.context("fio printed no bytes per second")
    }
}
