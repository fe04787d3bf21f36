use anyhow::Result;
use std::process::ExitCode;
#[derive(clap::Args, Debug)]
pub struct Options {}
pub fn run(_: &Options) -> Result<ExitCode> {
    Ok(ExitCode::SUCCESS)
}
