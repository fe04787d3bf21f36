//! What every check of a device needs: the device, the kernels and the geometry.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use avsg::ascend::acl::{Acl, Context, Need, Source};
use avsg::ascend::{AscendOptions, simulated};
use avsg::device::params::{Lifetime, Params};
use avsg_linker::ascend::kernels::Abi;
use avsg_linker::ascend::object::code_bytes;
use avsg_linker::ascend::toolchain::{self, Toolchain};
use avsg_linker::ascend::{ascendc, soc};

use serde_json::{Value, json};

use super::probe::Probe;
use super::target::{DeviceKind, Target};
use crate::output_file;

/// The files of probes by their names without the ending. Each is built alone, so that the other runs if CANN refuses one.
pub const BEHAVIOUR: &str = "avsg_probes_behaviour";
pub const TIMES: &str = "avsg_probes_times";

/// The files of probes with their texts, each behind the text that they share.
const PROBE_FILES: [(&str, &str); 2] =
    [(BEHAVIOUR, include_str!("probes/behaviour.cpp")), (TIMES, include_str!("probes/times.cpp"))];

/// The name of the file with all kernels for the simulator.
const TOGETHER: &str = "avsg_kernels.cpp";

/// The ending of the file with the words by which CANN refused a file of probes.
const REFUSED: &str = "refused";

/// The bytes of a row in the checks.
pub const ROW: usize = 1152;

/// The device and the settings of a check.
pub struct Harness {
    pub context: Arc<Context>,
    pub cores: usize,
    pub simulated: bool,
    pub params: Params,
    /// Milliseconds that a wait takes at most.
    pub timeout: u32,
    /// The folder with the kernels of `params` and the probes.
    folder: PathBuf,
}

impl Harness {
    pub fn new(target: &Target, folder: &Path, vary: fn(Params) -> Params) -> Result<Self> {
        let source = match (&target.library, target.device) {
            (Some(path), _) => Source::Path(path.clone()),
            (None, DeviceKind::AscendSim) => simulated::source(),
            (None, DeviceKind::Ascend) => Source::System,
        };
        let context = Context::for_device(Arc::new(Acl::open(&source)?), 0)?;
        // The runtime should report a kernel that hangs before this process is stopped.
        let timeout = u32::try_from(target.limit.saturating_mul(500)).unwrap_or(60_000);
        Ok(Self {
            cores: context.vector_cores()?,
            context,
            simulated: target.simulated(),
            params: vary(plain(target)),
            timeout,
            folder: folder.into(),
        })
    }

    /// Returns the options of an engine with the kernels of the folder.
    pub fn engine_options(&self) -> AscendOptions {
        let kernels = if self.simulated { self.folder.join(TOGETHER) } else { self.folder.clone() };
        AscendOptions {
            kernels: Some(kernels),
            timeout_ms: self.timeout,
            one_launch: Some(true),
            ..AscendOptions::new(self.context.clone())
        }
    }

    /// Returns the bytes of a kernel's code: all functions of its object.
    pub fn code_bytes(&self, kernel: &str) -> Result<usize> {
        if self.simulated {
            bail!("the simulator's kernels are code of this machine");
        }
        let object = toolchain::object(&self.folder, kernel);
        code_bytes(&fs::read(&object)?).context("the object has no table of symbols")
    }

    /// Loads a file of probes.
    ///
    /// # Errors
    /// If it was not built: contains CANN's words.
    pub fn probe(&self, name: &str) -> Result<Probe> {
        let mut file = source(&self.folder, name);
        if !self.simulated {
            if let Ok(why) = fs::read_to_string(file.with_extension(REFUSED)) {
                bail!("CANN refuses {name}: {why}");
            }
            file = toolchain::object(&self.folder, name);
        }
        Probe::new(&self.context, &file, self.timeout)
    }

    /// Returns the device as its runtime describes it, and the geometry of the kernels that run.
    pub fn describe(&self) -> Result<Value> {
        let acl = self.context.acl();
        let (free, total) = self.context.free_and_total_bytes()?;
        Ok(json!({
            "device": if self.simulated { "ascend-sim" } else { "ascend" },
            "library": acl.name(),
            "soc": acl.soc_name(),
            "vector_cores": self.cores,
            "memory_free_bytes": free,
            "memory_total_bytes": total,
            // The functions of a newer CANN.
            "runtime_lacks": acl.lacks(Need::Optional).map(String::from).collect::<Vec<_>>(),
            "k": self.params.k,
            "slots": self.params.slots,
            "row_bytes": ROW,
        }))
    }
}

/// Returns the geometry of most checks. The simulator is slow, so its default is small; a device
/// gets the geometry of a GLM or DeepSeek layer.
pub fn plain(target: &Target) -> Params {
    let (k, slots) = if target.simulated() { (64, 256) } else { (2048, 8192) };
    let (k, slots) = (target.k.unwrap_or(k), target.slots.unwrap_or(slots));
    Params { lifetime: Lifetime::Constant(127), ..Params::compact(k, 1, slots) }
}

/// Writes the kernels of a geometry into a folder, builds them for a chip or for the simulator, and returns the
/// folder. Their functions may be `inlined`.
pub fn build(target: &Target, chip: &str, params: &Params, inlined: bool) -> Result<PathBuf> {
    avsg::geometry::check(params)?;
    let mut file = simulated::emit(params)?;
    let mut kernels = ascendc(params, Abi::Direct)?;
    if inlined {
        let inline = |text: &str| format!("#define AVSG_NOINLINE __aicore__ inline\n{text}");
        let text = inline(&fs::read_to_string(&file)?);
        file = file.with_file_name("inlined").join(TOGETHER);
        fs::create_dir_all(file.with_file_name(""))?;
        output_file::write(&file, text.as_bytes())?;
        kernels.kernels.iter_mut().for_each(|kernel| kernel.text = inline(&kernel.text));
    }
    let folder = file.with_file_name("");
    if target.simulated() {
        simulated::compile(&[&file])?;
        return Ok(folder);
    }
    kernels.write(&folder)?;
    let names: Vec<_> = kernels.kernels.iter().map(|kernel| kernel.name).collect();
    Toolchain::find()?.build(&folder, &names, built_for(chip))?;
    Ok(folder)
}

/// Writes the probes into a folder of kernels, and builds them.
pub fn build_probes(target: &Target, chip: &str, folder: &Path) -> Result<()> {
    for (name, text) in PROBE_FILES {
        let text = [include_str!("probes/common.h"), "\n", text].concat();
        // It is replaced as a whole, because another process may be reading it.
        output_file::write(&source(folder, name), text.as_bytes())?;
    }
    if target.simulated() {
        let [behaviour, times] = PROBE_FILES.map(|(name, _)| source(folder, name));
        return Ok(simulated::compile(&[&behaviour, &times])?);
    }
    let toolchain = Toolchain::find()?;
    for (name, _) in PROBE_FILES {
        let why = source(folder, name).with_extension(REFUSED);
        match toolchain.build(folder, &[name], built_for(chip)) {
            Err(error) => fs::write(&why, error.to_string())?,
            Ok(()) if why.exists() => fs::remove_file(&why)?,
            Ok(()) => {}
        }
    }
    Ok(())
}

/// Returns the name of the chip that kernels are built for: the usual one in place of an unknown one, because all have the
/// same vector cores.
fn built_for(chip: &str) -> &'static str {
    soc::find(chip).unwrap_or(soc::OF_THE_PAPER).name
}

/// Returns the text of a file of probes.
fn source(folder: &Path, probes: &str) -> PathBuf {
    folder.join(format!("{probes}.cpp"))
}
