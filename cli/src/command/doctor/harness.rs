//! What every check of a device needs: the device, the kernels and the geometry.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use avsg::ascend::acl::{Acl, Context, Source};
use avsg::ascend::{AscendOptions, simulated};
use avsg::device::params::{Lifetime, Params};
use avsg_linker::ascend::kernels::Abi;
use avsg_linker::ascend::toolchain::{self, Toolchain};
use avsg_linker::ascend::{ascendc, soc};

use super::options::{DeviceKind, Options};
use super::probe::Probe;
use super::report::Device;

/// The name of the probes' file.
const PROBES: &str = "avsg_probes";

/// The device and the settings of a check.
pub struct Harness {
    pub context: Arc<Context>,
    pub cores: usize,
    /// Whether the device is simulated, so that its times mean nothing.
    pub simulated: bool,
    /// The folder with the kernels of `params`.
    pub kernels: PathBuf,
    pub params: Params,
    /// Bytes of the largest registration that is tried.
    pub largest: usize,
    /// Milliseconds that a wait takes at most.
    pub timeout: u32,
}

impl Harness {
    pub fn new(options: &Options, kernels: &Path) -> Result<Self> {
        let context = open(options)?;
        // The runtime should report a kernel that hangs before this process is stopped.
        let timeout = u32::try_from(options.limit.saturating_mul(500)).unwrap_or(60_000);
        Ok(Self {
            cores: context.vector_cores()?,
            context,
            simulated: options.simulated(),
            kernels: kernels.into(),
            params: params(options),
            largest: options.largest,
            timeout,
        })
    }

    /// Returns the options of an engine with the kernels of the folder. The simulator's kernels are one
    /// text, which an engine without a folder loads.
    pub fn engine_options(&self) -> AscendOptions {
        let kernels = (!self.simulated).then(|| self.kernels.clone());
        AscendOptions { kernels, ..AscendOptions::new(self.context.clone()) }
    }

    pub fn probe(&self) -> Result<Probe> {
        let file = match self.simulated {
            true => self.kernels.join(format!("{PROBES}.cpp")),
            false => toolchain::object(&self.kernels, PROBES),
        };
        Probe::new(&self.context, &file, self.timeout)
    }

    /// Returns an error on the simulator, whose times mean nothing.
    pub fn require_hardware(&self) -> Result<()> {
        if self.simulated {
            bail!("the simulator has no times; only hardware gives this value");
        }
        Ok(())
    }

    pub fn describe(&self) -> Result<Device> {
        let acl = self.context.acl();
        let (free, total) = self.context.free_and_total_bytes()?;
        Ok(Device {
            device: if self.simulated { "ascend-sim" } else { "ascend" }.into(),
            library: acl.name().to_owned(),
            soc: acl.soc_name(),
            vector_cores: self.cores,
            memory_free_bytes: free,
            memory_total_bytes: total,
            runtime_lacks: acl.absent().map(String::from).collect(),
        })
    }
}

fn open(options: &Options) -> Result<Arc<Context>> {
    let source = match (&options.library, options.device) {
        (Some(path), _) => Source::Path(path.clone()),
        (None, DeviceKind::AscendSim) => simulated::source(),
        (None, DeviceKind::Ascend) => Source::System,
    };
    Ok(Context::for_device(Arc::new(Acl::open(&source)?), options.ordinal)?)
}

/// Returns the geometry of the kernels. The simulator is slow, so its default is small; a device
/// gets the geometry of a GLM or DeepSeek layer.
fn params(options: &Options) -> Params {
    let (k, slots) = if options.simulated() { (64, 256) } else { (2048, 8192) };
    let (k, slots) = (options.k.unwrap_or(k), options.slots.unwrap_or(slots));
    let wide = Params { lifetime: Lifetime::Constant(127), ..Params::wide(k, 1, slots) };
    Params { spread: 2, retries: 7, ..wide }
}

/// Writes the kernels and the probes into a folder, builds them for a chip or for the simulator, and
/// returns the folder.
pub fn build(options: &Options, chip: &str) -> Result<PathBuf> {
    let params = params(options);
    avsg::geometry::check(&params)?;
    let all = simulated::emit(&params)?;
    let folder = all.parent().unwrap_or(&all);
    let path = folder.join(format!("{PROBES}.cpp"));
    let temporary = path.with_extension(std::process::id().to_string());
    fs::write(&temporary, include_str!("probes.cpp"))?;
    fs::rename(&temporary, &path).with_context(|| format!("writing {}", path.display()))?;
    if options.simulated() {
        simulated::compile(&[&all, &path])?;
    } else {
        let kernels = ascendc(&params, Abi::Direct)?;
        kernels.write(folder)?;
        let names: Vec<_> = kernels.kernels.iter().map(|kernel| kernel.name).collect();
        // An unknown chip is built for the usual one: all have the same vector cores.
        let soc = soc::find(chip).unwrap_or(soc::OF_THE_PAPER);
        Toolchain::find()?.build(folder, &[&names[..], &[PROBES]].concat(), soc.name)?;
    }
    Ok(folder.into())
}
