//! The setting `mapped`: the file is mapped, without padding, by a process whose page cache is limited.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Error, Result};
use serde::de::DeserializeOwned;

use super::map::Ready;
use super::page_cache::LimitBy;
use super::rows::{Records, Setting, Step};
use crate::disk::path_in_proc;

/// The name of the setting with a control group.
pub const GROUPED: &str = "mapped, control group";

pub struct Mapped {
    process: Child,
    steps: Option<ChildStdin>,
    answers: Lines<BufReader<ChildStdout>>,
    memory_bytes: usize,
    by: LimitBy,
    limited_by: String,
    /// The folder of its control group.
    group: Option<PathBuf>,
}

impl Mapped {
    /// Starts a process that maps `file`, which has `records`, with a page cache of `memory_bytes` bytes.
    ///
    /// # Errors
    /// If it cannot be started, or cannot limit its page cache.
    pub fn start(file: &File, records: &Records, memory_bytes: usize, by: LimitBy) -> Result<Self> {
        let exe = std::env::current_exe().context("finding this program")?;
        let mut command = Command::new(exe);
        command.args(["bench", "map", "--file"]).arg(path_in_proc(file));
        for (option, value) in [
            ("--memory", memory_bytes),
            ("--row-bytes", records.row_bytes),
            ("--layers", records.layers),
        ] {
            command.arg(option).arg(value.to_string());
        }
        command.args(["--page-cache", by.word()]);
        // A group of its own, so that Ctrl-C does not end it before it has removed its control group.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().context("starting a process that maps the file")?;
        let steps = process.stdin.take();
        let answers = process.stdout.take().context("the process has no output")?;
        let answers = BufReader::new(answers).lines();
        let limited_by = String::new();
        let mut mapped =
            Self { process, steps, answers, memory_bytes, by, limited_by, group: None };
        (mapped.limited_by, mapped.group) = mapped.answer::<Ready>()?.map_err(Error::msg)?;
        Ok(mapped)
    }

    fn answer<T: DeserializeOwned>(&mut self) -> Result<T> {
        let line = self
            .answers
            .next()
            .context("the process that maps the file was ended, for example for want of memory")?;
        Ok(serde_json::from_str(&line?)?)
    }
}

impl Setting for Mapped {
    fn name(&self) -> &'static str {
        match self.by {
            LimitBy::Fadvise => "mapped",
            LimitBy::Cgroup => GROUPED,
        }
    }

    fn page_cache(&self) -> Option<&str> {
        Some(&self.limited_by)
    }

    fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    fn step(&mut self, ids: &[i32]) -> Result<Step> {
        let steps = self.steps.as_mut().context("the process that maps the file gets no steps")?;
        writeln!(steps, "{}", serde_json::to_string(ids)?)?;
        self.answer()
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // The process ends when its input does, and removes its group unless the kernel ended it before.
        drop(self.steps.take());
        let _ = self.process.wait();
        self.group.iter().for_each(|folder| drop(fs::remove_dir(folder)));
    }
}
