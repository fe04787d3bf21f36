//! `avsg opp`: a custom operator package of a geometry, ready for CANN to build.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use avsg_linker::ascendc::kernels::Abi;
use avsg_linker::opp::project;
use clap::Args;

use super::emit::{self, KernelOptions};

/// What to write.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  avsg opp --soc ascend910b3 --slots 8192 --out avsg_opp\n\n\
                        Then, where CANN is installed: avsg_opp/build.sh")]
pub struct Options {
    #[command(flatten)]
    kernels: KernelOptions,
    /// Write the project into this directory
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// Writes it.
pub fn run(options: &Options) -> Result<ExitCode> {
    let (soc, p) = (options.kernels.soc()?, options.kernels.params()?);
    let (kernels, _) = options.kernels.kernels(Abi::Operator)?;
    let files = project(&p, soc.unit, &kernels);
    for file in &files {
        let to = emit::write(&options.out, &file.path, &file.bytes)?;
        if file.executable {
            executable(&to)?;
        }
    }
    emit::print(&p, soc, &kernels);
    println!("{} files written to {}; README.md there goes on", files.len(), options.out.display());
    Ok(ExitCode::SUCCESS)
}

#[cfg(unix)]
fn executable(path: &std::path::Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn executable(_: &std::path::Path) -> std::io::Result<()> {
    Ok(())
}
