//! What an engine is to be.

use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use avsg::device::params::{Lifetime, Params, Table};
use avsg::device::stage_two::Strategy;

use crate::sized::{self, Sized_};
use crate::status::avsg_status::{AVSG_INVALID, AVSG_UNSUPPORTED};
use crate::status::{Fail, Result};
use avsg::cpus::{MAX_CORES, allowed_cpus};
use avsg::engine::Config;
use avsg::engine::MachineChoice;
use avsg::geometry::frequency;

/// Which table an engine keeps.
#[repr(i32)]
pub enum avsg_table {
    /// More links than slots, the least valuable slots as victims: exact-LRU hit rates and better.
    AVSG_TABLE_WIDE = 0,
    /// The paper's, bit for bit.
    AVSG_TABLE_PAPER = 1,
}

/// What a hit makes of a slot's lifetime.
#[repr(i32)]
pub enum avsg_lifetime {
    /// What pays at this geometry: frequency between K and 4K slots of a wide table, else constant.
    AVSG_LIFETIME_AUTO = 0,
    /// `life`, always: least recently used.
    AVSG_LIFETIME_CONSTANT = 1,
    /// A count of uses that decays by `lambda` a step. Wide tables only.
    AVSG_LIFETIME_FREQUENCY = 2,
}

/// Which vector machine the device `cpu` runs its kernels on.
#[repr(i32)]
pub enum avsg_machine {
    /// The fastest that the CPU has, measured at creation.
    AVSG_MACHINE_AUTO = 0,
    /// Scalar code.
    AVSG_MACHINE_EMU = 1,
    /// AVX2.
    AVSG_MACHINE_AVX2 = 2,
    /// AVX-512.
    AVSG_MACHINE_AVX512 = 3,
    /// NEON.
    AVSG_MACHINE_NEON = 4,
}

/// How misses are spread over cores.
#[repr(i32)]
pub enum avsg_strategy {
    /// Equal shares of the misses: no two cores differ by more than one row.
    AVSG_STRATEGY_BALANCED = 0,
    /// Whole requests to cores. For comparison.
    AVSG_STRATEGY_REQUEST = 1,
    /// Equal shares of the selected positions, hits included. For comparison.
    AVSG_STRATEGY_POSITION = 2,
}

/// What an engine is to be. Zero the whole struct, set `size`, `k`, `tokens`, `slots` and `states`, and
/// whatever else is not to be the default: 0 is every other field's.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_engine_config {
    /// sizeof(avsg_engine_config).
    pub size: usize,
    /// One of `avsg_devices`. NULL: "cpu". An Ascend device takes pools whose pages its driver registers
    /// (AVSG_DEVICE otherwise: try smaller `pages`), rows of one or two segments and the balanced strategy;
    /// all its engines on one pool share one registration of it.
    pub device: *const c_char,
    /// K, the most ids a row selects: 1 to S.
    pub k: u32,
    /// N_q, the most rows (tokens) of a request in one step: 1 to 8, and N_q * K at most S.
    pub tokens: u32,
    /// S, the slots of each request state and layer: a power of two, 64 to 32768; from 128
    /// on an Ascend device.
    pub slots: u32,
    /// An `avsg_table`.
    pub table: i32,
    /// Multipliers of the paper's hash, odd; both 0: Knuth's and xxHash's. Unused by a wide table.
    pub paper_a1: u32,
    /// The second of them.
    pub paper_a2: u32,
    /// An `avsg_lifetime`.
    pub lifetime: i32,
    /// Of a constant lifetime: 0 to 127 (1 to 127 in a paper table), in decode steps.
    pub life: i32,
    /// Of frequency lifetimes: 0.5 to 0.965; 0: 0.87.
    pub lambda: f64,
    /// Links per slot: 1, 2 or 4; 0: the table's default (wide 4, paper 1).
    pub spread: u32,
    /// R, links looked at after the first: 1 to 15; 0: 3; -1: none.
    pub retries: i32,
    /// Tokens per block of the host's block tables: a power of two up to 65536; 0: no block tables, the
    /// row of token x is row x of the pool.
    pub page: u32,
    /// An `avsg_machine`. Only for "cpu".
    pub machine: i32,
    /// An `avsg_strategy`.
    pub strategy: i32,
    /// Cores of the device: 1 to 1024; 0: all of a device, or all CPUs that this process may use. The
    /// device `cpu` pins a thread for each but the caller's; others have as many as they have at most, and
    /// in a stream as many as its own limit (aclrtSetStreamResLimit) leaves when a call is queued.
    pub cores: u32,
    /// Request states: the most requests that are resident at once.
    pub states: usize,
    /// The kernels of this geometry, one file or a folder: for "ascend" compiled ones (`avsg emit` writes
    /// their sources), for "ascend-sim" sources. NULL: those in this library, which for "ascend" are those
    /// of the default geometries, if it was built where CANN's compiler is with the package feature
    /// `kernels` (AVSG_INVALID otherwise), and for "ascend-sim" every geometry's. Unused by "cpu".
    pub kernels: *const c_char,
    /// "ascend": path of the runtime's library (libascendcl.so). NULL: looked for by the system's library
    /// path.
    pub runtime: *const c_char,
    /// Which of several devices, as the runtime counts them.
    pub device_id: i32,
    /// Milliseconds after which a call stops waiting for an Ascend device; 0: 10000.
    pub timeout_ms: u32,
    /// Kernels that `avsg_engine_step` launches on an Ascend device. 1: one, whose cores wait for each
    /// other between the stages; it starts when all of them are idle. 2: one a stage. 0: one with a NULL
    /// stream, two in a stream of the caller's, beside which other streams may compute.
    pub launches: u32,
    /// 0.
    pub reserved: u32,
}

// SAFETY: repr(C), fields in order without padding (120 bytes, asserted below), size first, integers,
// pointers and a float.
unsafe impl Sized_ for avsg_engine_config {
    const NAME: &'static str = "avsg_engine_config";
    const FIRST: usize = 88;
}

/// Refuses a number that is none of an enumeration's.
pub(crate) fn unknown<T>(what: &str, value: i32, last: i32) -> Result<T> {
    let text =
        format!("{what} is {value}, but it must be 0..={last}; pass a constant of the header");
    Err(Fail::new(AVSG_INVALID, text))
}

impl avsg_engine_config {
    /// The geometry, not yet checked.
    fn params(&self) -> Result<Params> {
        let (k, tokens, slots) = (self.k, self.tokens, self.slots);
        let usual = match self.table {
            0 => Params::wide(k, tokens, slots),
            1 => Params::paper(k, tokens, slots),
            other => return unknown("table", other, 1),
        };
        let table = match (usual.table, self.paper_a1, self.paper_a2) {
            (Table::Paper { .. }, a1, a2) if (a1, a2) != (0, 0) => Table::Paper { a1, a2 },
            (usual, ..) => usual,
        };
        let lifetime = match self.lifetime {
            0 => usual.lifetime,
            1 => {
                let life = i8::try_from(self.life).map_err(|_| {
                    let life = self.life;
                    let text = format!("life is {life}, but it must be 0..=127; 127 is plain LRU");
                    Fail::new(AVSG_INVALID, text)
                })?;
                Lifetime::Constant(life)
            }
            2 if self.lambda == 0.0 => Lifetime::frequency(),
            2 => frequency(self.lambda)?,
            other => return unknown("lifetime", other, 2),
        };
        let spread = if self.spread == 0 { usual.spread } else { self.spread };
        let retries = match self.retries {
            0 => usual.retries,
            -1 => 0,
            n => u32::try_from(n).map_err(|_| {
                let text = format!("retries is {n}, but it must be -1..=15; 0 is the default");
                Fail::new(AVSG_INVALID, text)
            })?,
        };
        Ok(Params { table, lifetime, spread, retries, page: self.page, ..usual })
    }

    fn config(&self, on_cpu: bool) -> Result<Config> {
        if self.launches > 2 {
            return unknown("launches", i32::try_from(self.launches).unwrap_or(i32::MAX), 2);
        }
        if self.reserved != 0 {
            let value = self.reserved;
            let text = format!("reserved is {value}, but it must be 0; zero the struct first");
            return Err(Fail::new(AVSG_INVALID, text));
        }
        let strategy = match self.strategy {
            0 => Strategy::Balanced,
            1 => Strategy::Request,
            2 => Strategy::Position,
            other => return unknown("strategy", other, 2),
        };
        let machine = match self.machine {
            0 => MachineChoice::Auto,
            1 => MachineChoice::Emu,
            2 => MachineChoice::Avx2,
            3 => MachineChoice::Avx512,
            4 => MachineChoice::Neon,
            other => return unknown("machine", other, 4),
        };
        let cores = match self.cores {
            0 if on_cpu => allowed_cpus().len().max(1),
            // The device takes as many as it has.
            0 => MAX_CORES,
            n => n as usize,
        };
        Ok(Config { params: self.params()?, states: self.states, cores, machine, strategy })
    }
}

/// The device that an engine is to be on.
pub(crate) enum Target {
    Cpu,
    Ascend(Place),
}

/// An Ascend device.
pub(crate) struct Place {
    pub simulated: bool,
    pub kernels: Option<PathBuf>,
    pub runtime: Option<PathBuf>,
    pub id: i32,
    pub timeout_ms: u32,
    pub one_launch: Option<bool>,
}

/// A path that C passed.
///
/// # Safety
/// `path` is NULL or a string that ends with a NUL.
unsafe fn path(path: *const c_char) -> Option<PathBuf> {
    // SAFETY: the contract.
    let text = (!path.is_null()).then(|| unsafe { CStr::from_ptr(path) });
    text.map(|text| PathBuf::from(OsStr::from_bytes(text.to_bytes())))
}

/// The device that a configuration names.
///
/// # Safety
/// Its strings are NULL or end with a NUL.
unsafe fn target(config: &avsg_engine_config) -> Result<Target> {
    if config.device.is_null() {
        return Ok(Target::Cpu);
    }
    // SAFETY: the contract.
    let name = unsafe { CStr::from_ptr(config.device) };
    let refuse = |status, why, remedy| {
        let name: String = name.to_string_lossy().chars().take(32).collect();
        Err(Fail::new(status, format!("device is \"{name}\", but {why}; {remedy}")))
    };
    let simulated = match name.to_bytes() {
        b"cpu" => return Ok(Target::Cpu),
        b"ascend" => false,
        b"ascend-sim" if cfg!(feature = "sim") => true,
        b"ascend-sim" => {
            let why = "this libavsg was built without its simulator";
            let remedy = "build avsg-capi with --features sim, or pass \"cpu\" or \"ascend\"";
            return refuse(AVSG_UNSUPPORTED, why, remedy);
        }
        _ => {
            let remedy = "pass NULL, \"cpu\" or another name of avsg_devices";
            return refuse(AVSG_INVALID, "there is no such device", remedy);
        }
    };
    Ok(Target::Ascend(Place {
        simulated,
        // SAFETY: the contract.
        kernels: unsafe { path(config.kernels) },
        // SAFETY: the contract.
        runtime: unsafe { path(config.runtime) },
        id: config.device_id,
        timeout_ms: if config.timeout_ms == 0 { 10_000 } else { config.timeout_ms },
        one_launch: (config.launches != 0).then_some(config.launches == 1),
    }))
}

/// The engine's configuration, and its device.
///
/// # Safety
/// `config` is NULL or valid for as many bytes as its `size` says; its strings are NULL or end with a
/// NUL.
pub(crate) unsafe fn engine_config(config: *const avsg_engine_config) -> Result<(Config, Target)> {
    // SAFETY: the contract.
    let config = unsafe { sized::read(config)? };
    // SAFETY: the contract.
    let target = unsafe { target(&config)? };
    Ok((config.config(matches!(target, Target::Cpu))?, target))
}

const _: () = assert!(size_of::<avsg_engine_config>() == 120);
