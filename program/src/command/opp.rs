//! `avsg opp` writes a custom operator project with the kernels of a geometry.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use anyhow::Result;
use avsg_linker::ascend::kernels::Abi;
use avsg_linker::ascend::opp::project;
use clap::Args;

use super::emit::{self, KernelOptions};

#[derive(Args, Debug)]
#[command(after_help = "Example:\n  avsg opp --soc ascend910b3 --slots 8192 --out avsg_opp\n\n\
                        Run avsg_opp/build.sh on a machine with CANN to build the operator package.")]
pub struct Options {
    #[command(flatten)]
    kernels: KernelOptions,
    /// Write the files into this directory, which is created if it does not exist
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// Writes the project and prints the plan of its kernels.
pub fn run(options: &Options) -> Result<()> {
    let (soc, p) = (options.kernels.soc, options.kernels.params()?);
    let (kernels, _) = emit::kernels_of(&p, Abi::Operator)?;
    let files = project(&p, soc.unit, &kernels);
    for file in &files {
        let to = emit::write(&options.out, &file.path, &file.bytes)?;
        if file.executable {
            fs::set_permissions(&to, Permissions::from_mode(0o755))?;
        }
    }
    let (count, out) = (files.len(), options.out.display());
    let written = format!(
        "{count} files were written to {out}; its README.md says how to build and install the package"
    );
    emit::describe(&p, soc, &kernels, &written).print()
}
