//! A process with a time limit: a check that hangs is stopped, and the others run.

use std::env;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::de::DeserializeOwned;
use serde_json::Value;
use wait_timeout::ChildExt;

use crate::output_file::to_stdout;

/// Begins the line of a result. Every other line names what the process does next.
const RESULT: &str = "result ";

/// Names what this process does next, for the process that watches this one.
pub fn progress(what: &str) {
    let _ = to_stdout(format!("running {what}\n").as_bytes());
}

/// Prints the result of a check for the process that watches this one.
pub fn answer(result: &Value) {
    let _ = to_stdout(format!("{RESULT}{result}\n").as_bytes());
}

/// Seconds that a stopped process gets to end. One that waits in a driver may never end.
const END_SECONDS: u64 = 5;

/// Runs a check in a process of its own until it prints a result, ends, or prints nothing for `limit`. Returns the result,
/// or how the process ended without one, and what it did.
///
/// # Errors
/// If the process does not start.
pub fn run<T: DeserializeOwned>(
    check: &str,
    folder: &Path,
    limit: Duration,
) -> Result<std::result::Result<T, (&'static str, String)>> {
    let mut command = Command::new(env::current_exe().context("finding this program")?);
    command.args(env::args_os().skip(1)).args(["--check", check]).arg(folder);
    let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut child = started.with_context(|| format!("starting {command:?}"))?;
    let (send, lines) = channel();
    if let Some(output) = child.stdout.take() {
        // The thread ends with the process. If that never ends, the thread does not matter.
        thread::spawn(move || {
            let mut lines = BufReader::new(output).lines().map_while(Result::ok);
            let _ = lines.try_for_each(|line| send.send(line));
        });
    }
    let mut doing = String::from("starting");
    loop {
        match lines.recv_timeout(limit) {
            Ok(line) => match line.strip_prefix(RESULT) {
                Some(result) => {
                    // The result counts, even if the runtime hangs while the process ends.
                    stop(&mut child, limit);
                    return Ok(Ok(serde_json::from_str(result)?));
                }
                None => doing = line,
            },
            Err(RecvTimeoutError::Timeout) => {
                let seconds = limit.as_secs();
                let mut text = format!("{doing}: no answer within {seconds} s, so it was stopped");
                if stop(&mut child, Duration::ZERO).is_none() {
                    text += "; the process could not be stopped and is still in the driver";
                }
                return Ok(Err(("hung", text)));
            }
            Err(RecvTimeoutError::Disconnected) => {
                let status = stop(&mut child, limit);
                let status = status.map_or_else(|| "it did not end".into(), |s| s.to_string());
                let text = format!("{doing}: the process died ({status})");
                return Ok(Err(("faulted", text)));
            }
        }
    }
}

/// Waits for a process, kills it after `limit`, and returns its status if it ends.
fn stop(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let ended = |child: &mut Child, limit| child.wait_timeout(limit).ok().flatten();
    ended(child, limit).or_else(|| {
        let _ = child.kill();
        ended(child, Duration::from_secs(END_SECONDS))
    })
}
