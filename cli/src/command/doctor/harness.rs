//! What every check of a device needs: the device, the kernels and the geometry.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Error, Result, bail};
use avsg::ascend::acl::{Acl, Context, Source};
use avsg::ascend::{AscendOptions, simulated};
use avsg::device::params::{Lifetime, Params};
use avsg_linker::ascend::kernels::Abi;
use avsg_linker::ascend::toolchain::{self, Toolchain};
use avsg_linker::ascend::{ascendc, soc};
use avsg_sim::shim::Kernels;

use super::options::{DeviceKind, Options};
use super::probe::Probe;
use super::report::Device;
use super::report::Geometry;

/// A file of probes, by its name without the ending. Each is built alone, so that the others run if CANN refuses one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probes(&'static str);

pub const BEHAVIOUR: Probes = Probes("avsg_probes_behaviour");
pub const TIMES: Probes = Probes("avsg_probes_times");
pub const CODE: Probes = Probes("avsg_probes_code");

/// The files of probes with their texts, each behind the text that they share.
const PROBE_FILES: [(Probes, &str); 3] = [
    (BEHAVIOUR, include_str!("probes/behaviour.cpp")),
    (TIMES, include_str!("probes/times.cpp")),
    (CODE, include_str!("probes/code.cpp")),
];

/// The bytes of a row in the checks.
pub const ROW: usize = 1152;

/// The name of the simulated device in a report.
pub const SIMULATED: &str = "ascend-sim";

/// The file of the operator's kernels with times, for the simulator.
const TIMED_KERNELS: &str = "avsg_timed.cpp";

/// The device and the settings of a check.
pub struct Harness {
    pub context: Arc<Context>,
    pub cores: usize,
    /// Whether the device is simulated, so that its times are those of a model.
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
        if options.simulated() {
            avsg_sim::set_clock(options.constants()?.clock(&soc::OF_THE_PAPER));
        }
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

    /// Returns the harness of the simulated device of this process.
    pub fn simulated(params: Params, kernels: &Path) -> Result<Self> {
        let context = simulated::context()?;
        Ok(Self {
            cores: context.vector_cores()?,
            context,
            simulated: true,
            kernels: kernels.into(),
            params,
            largest: 0,
            timeout: 60_000,
        })
    }

    /// Returns the options of an engine with the kernels of the folder. The simulator's kernels are one
    /// text.
    pub fn engine_options(&self) -> AscendOptions {
        let kernels = match self.simulated {
            true => self.kernels.join(TIMED_KERNELS),
            false => self.kernels.clone(),
        };
        AscendOptions::new(self.context.clone()).with_kernels(kernels)
    }

    /// Loads a file of probes.
    ///
    /// # Errors
    /// If it was not built: contains CANN's words.
    pub fn probe(&self, probes: Probes) -> Result<Probe> {
        if self.simulated {
            return Probe::new(&self.context, &source(&self.kernels, probes), self.timeout);
        }
        if let Ok(why) = fs::read_to_string(refusal(&self.kernels, probes)) {
            bail!("CANN refuses {}: {why}", probes.0);
        }
        let object = toolchain::object(&self.kernels, probes.0);
        Probe::new(&self.context, &object, self.timeout)
    }

    pub fn describe(&self) -> Result<Device> {
        let acl = self.context.acl();
        let (free, total) = self.context.free_and_total_bytes()?;
        Ok(Device {
            device: if self.simulated { SIMULATED } else { "ascend" }.into(),
            library: acl.name().to_owned(),
            soc: acl.soc_name(),
            vector_cores: self.cores,
            memory_free_bytes: free,
            memory_total_bytes: total,
            runtime_lacks: acl.absent().map(String::from).collect(),
            geometry: Geometry { k: self.params.k, slots: self.params.slots, row_bytes: ROW },
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
    geometry(options.k.unwrap_or(k), options.slots.unwrap_or(slots))
}

/// Returns the geometry of K ids and S slots.
pub fn geometry(k: u32, slots: u32) -> Params {
    Params { lifetime: Lifetime::Constant(127), ..Params::compact(k, 1, slots) }
}

/// Writes the kernels and the probes into a folder, builds them for a chip or for the simulator, and
/// returns the folder.
pub fn build(options: &Options, chip: &str) -> Result<PathBuf> {
    let params = params(options);
    if options.simulated() {
        return build_simulated(&params);
    }
    let folder = write_probes(&params)?;
    build_kernels(&params, &folder, chip)?;
    let toolchain = Toolchain::find()?;
    for (probes, _) in PROBE_FILES {
        let why = refusal(&folder, probes);
        match toolchain.build(&folder, &[probes.0], built_for(chip)) {
            Err(error) => fs::write(&why, error.to_string())?,
            Ok(()) if why.exists() => fs::remove_file(&why)?,
            Ok(()) => {}
        }
    }
    Ok(folder)
}

/// Builds the kernels of four tokens with learned lifetimes, which make calls that those of one token and constant
/// lifetimes do not make.
pub fn build_learned(options: &Options, chip: &str) -> Result<()> {
    let params = Params { tokens: 4, lifetime: Lifetime::Learned, ..params(options) };
    avsg::geometry::check(&params)?;
    let all = simulated::emit(&params)?;
    if options.simulated() {
        return Kernels::compile(&fs::read_to_string(all)?, &[]).map(drop).map_err(Error::msg);
    }
    build_kernels(&params, all.parent().unwrap_or(&all), chip)
}

fn build_kernels(params: &Params, folder: &Path, chip: &str) -> Result<()> {
    let kernels = ascendc(params, Abi::Direct)?;
    kernels.write(folder)?;
    let names: Vec<_> = kernels.kernels.iter().map(|kernel| kernel.name).collect();
    Ok(Toolchain::find()?.build(folder, &names, built_for(chip))?)
}

/// Returns the name of the chip that kernels are built for: the usual one in place of an unknown one, because all have the
/// same vector cores.
fn built_for(chip: &str) -> &'static str {
    soc::find(chip).unwrap_or(soc::OF_THE_PAPER).name
}

/// Writes the kernels and the probes into a folder, compiles them for the simulator with its clock, and returns the
/// folder.
pub fn build_simulated(params: &Params) -> Result<PathBuf> {
    let folder = write_probes(params)?;
    let kernels = fs::read_to_string(simulated::emit(params)?).context("reading the kernels")?;
    let timed = write(&folder, TIMED_KERNELS, &format!("{}{kernels}", avsg_sim::TIMED))?;
    let probes = PROBE_FILES.map(|(probes, _)| source(&folder, probes));
    let [behaviour, times, code] = probes.each_ref().map(PathBuf::as_path);
    simulated::compile(&[&timed, times, behaviour, code])?;
    Ok(folder)
}

/// Writes the probes beside the kernels of a geometry, and returns their folder.
fn write_probes(params: &Params) -> Result<PathBuf> {
    avsg::geometry::check(params)?;
    let all = simulated::emit(params)?;
    let folder = all.parent().unwrap_or(&all).to_owned();
    for (probes, text) in PROBE_FILES {
        // A device ignores the definition by which the simulator times kernels.
        let text = [avsg_sim::TIMED, include_str!("probes/common.h"), "\n", text].concat();
        write(&folder, &format!("{}.cpp", probes.0), &text)?;
    }
    Ok(folder)
}

/// Returns the text of a file of probes.
fn source(folder: &Path, probes: Probes) -> PathBuf {
    folder.join(format!("{}.cpp", probes.0))
}

/// Returns the file with the words by which CANN refused a file of probes.
fn refusal(folder: &Path, probes: Probes) -> PathBuf {
    folder.join(format!("{}.refused", probes.0))
}

/// Replaces a file as a whole, because another process may be reading it.
fn write(folder: &Path, name: &str, text: &str) -> Result<PathBuf> {
    let path = folder.join(name);
    let temporary = path.with_extension(std::process::id().to_string());
    fs::write(&temporary, text)?;
    fs::rename(&temporary, &path).with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}
