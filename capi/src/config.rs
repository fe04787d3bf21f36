//! The configuration of an engine.

use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use avsg::device::params::{Lifetime, Params, Table};
use avsg::device::stage_two::Strategy;

use crate::allocator::{allocator, avsg_allocator};
use crate::caller_buffer::{avsg_caller_buffer, caller_buffer};
use crate::choices::unknown_constant;
use crate::handle;
use crate::sized::{self, SizedStruct};
use crate::status::avsg_status::{AVSG_INVALID, AVSG_UNSUPPORTED};
use crate::status::{Failure, Result};
use crate::workers::avsg_workers;
use avsg::copy::Copier;
use avsg::cpu::worker_pool::WorkerPool;
use avsg::cpus::{MAX_CORES, allowed_cpu_count};
use avsg::engine::{Config, Indexers, MachineChoice};
use avsg::geometry::frequency;
use avsg::rows::RowFormat;

/// The configuration of an engine. `size`, `k`, `tokens`, `slots` and `states` must be set.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_engine_config {
    /// sizeof(avsg_engine_config).
    pub size: usize,
    /// A name of `avsg_devices`, or NULL for "cpu". An Ascend device needs a pool of pages that its
    /// driver can register (AVSG_DEVICE otherwise; try smaller `pages`), rows of one or two
    /// segments, and AVSG_STRATEGY_BALANCED. Its engines on one pool share one registration.
    pub device: *const c_char,
    /// K, the largest number of ids per row: 1 to S.
    pub k: u32,
    /// N_q, the largest number of rows of a request in one step: 1 to 8, with N_q * K at most S.
    pub tokens: u32,
    /// S, the number of slots per state and layer: a power of two from 64 (128 on an Ascend device)
    /// to 32768.
    pub slots: u32,
    /// An `avsg_table`.
    pub table: i32,
    /// The first multiplier of the paper's hash, odd. If both are 0, they are Knuth's and xxHash's.
    /// A wide table ignores both.
    pub paper_a1: u32,
    /// The second multiplier of the paper's hash, odd.
    pub paper_a2: u32,
    /// An `avsg_lifetime`.
    pub lifetime: i32,
    /// The constant lifetime in decode steps: 0 to 127 (1 to 127 in a paper table). 0 unless
    /// `lifetime` is AVSG_LIFETIME_CONSTANT.
    pub life: i32,
    /// The decay of frequency lifetimes per step: 0.5 to 0.965; 0 selects 0.87. 0 unless `lifetime`
    /// is AVSG_LIFETIME_FREQUENCY.
    pub lambda: f64,
    /// Links per slot: 1, 2 or 4; 0 selects 4 for a wide table and 1 for a paper table.
    pub spread: u32,
    /// R, the number of links probed after the first: 1 to 15; 0 selects 3, and -1 selects none.
    pub retries: i32,
    /// Tokens per block of the host's block tables: a power of two up to 65536. 0 means no block
    /// tables: row x of the pool belongs to id x.
    pub page: u32,
    /// An `avsg_machine`, used by "cpu".
    pub machine: i32,
    /// An `avsg_strategy`.
    pub strategy: i32,
    /// Cores to use: 1 to 1024; 0 selects all cores of the device, or all CPUs that this process
    /// may use, or one for each thread of `workers`. On "cpu" a core is a share of the copies, which
    /// any free thread takes. An Ascend device uses at most the cores that it has, and in a stream
    /// at most the stream's limit (aclrtSetStreamResLimit) at the time of the call.
    pub cores: u32,
    /// Request states: the largest number of requests that are resident at a time.
    pub states: usize,
    /// The path of the kernels of this geometry, a file or a folder: compiled ones for "ascend"
    /// (`avsg emit` writes their sources), sources for "ascend-sim". NULL selects the kernels in
    /// this library. For "ascend" these are the kernels of the default geometries, and only if the
    /// library was built with the package feature `kernels` where CANN's compiler is installed
    /// (AVSG_INVALID otherwise); for "ascend-sim" they are those of every geometry. "cpu" ignores
    /// it.
    pub kernels: *const c_char,
    /// The path of the runtime's library (libascendcl.so) for "ascend". NULL searches the system's
    /// library path.
    pub runtime: *const c_char,
    /// The index of the device, as the runtime counts devices.
    pub device_id: i32,
    /// Milliseconds after which a call stops waiting for an Ascend device; 0 selects 10000.
    pub timeout_ms: u32,
    /// Kernels that `avsg_engine_step` launches on an Ascend device. 1: a single kernel, which
    /// starts when all its cores are idle, and whose cores wait for each other between the stages.
    /// 2: one per stage, so that other streams can compute beside them. 0: one with a NULL stream,
    /// and two in a stream.
    pub launches: u32,
    /// Must be 0.
    pub reserved: u32,
    /// The threads of "cpu", which other engines may share. NULL starts a thread for each core but
    /// the caller's, not more than CPUs, and pins none.
    pub workers: *const avsg_workers,
    /// An `avsg_copier`, used by "cpu".
    pub copier: i32,
    /// The distance of the later row that AVSG_COPIER_PREFETCH and AVSG_COPIER_STREAM prefetch, in
    /// rows: 0 to 64; 0 prefetches nothing.
    pub copier_ahead: u32,
    /// layer_indexer[l] is the indexer of layer l of the pool, numbered from 0 without a gap. The
    /// layers of one indexer share a table of each state and are served by one plan. NULL means one
    /// indexer for all layers.
    pub layer_indexer: *const u32,
    /// Elements of `layer_indexer`: the pool's layers, or 0 with NULL.
    pub layer_indexers: usize,
    /// The memory of the slots; NULL lets the engine allocate it.
    pub buffer: *const avsg_caller_buffer,
    /// 1 makes the slots that a plan returns (`avsg_plan_arrays.slot`) indices among the slots of all
    /// states: slot_base + state * S + slot, or the place of the slot in a buffer with a table of
    /// blocks (-1 if the device found its block outside of the buffer). 0 leaves them slots of their
    /// state. Miss lists always have slots of the state.
    pub global_slots: i32,
    /// Added to every index if `global_slots` is 1; 0 or more.
    pub slot_base: i32,
    /// The caller's allocator for the memory of the engine and of its plans (`avsg_memory_bytes`);
    /// NULL for that of the system and of the device.
    pub allocator: *const avsg_allocator,
}

// SAFETY: the struct is repr(C) with `size` first, has no padding (176 bytes, asserted below), and
// its fields are integers, pointers and a float.
unsafe impl SizedStruct for avsg_engine_config {
    const NAME: &'static str = "avsg_engine_config";
    const FIRST_SIZE: usize = 88;
}

impl avsg_engine_config {
    /// Returns the geometry, which the engine checks.
    fn params(&self) -> Result<Params> {
        let (k, tokens, slots) = (self.k, self.tokens, self.slots);
        let defaults = match self.table {
            0 => Params::wide(k, tokens, slots),
            1 => Params::paper(k, tokens, slots),
            other => return unknown_constant("table", other, 1),
        };
        let table = match (defaults.table, self.paper_a1, self.paper_a2) {
            (Table::Paper { .. }, a1, a2) if (a1, a2) != (0, 0) => Table::Paper { a1, a2 },
            (defaults, ..) => defaults,
        };
        // A value that the lifetime does not use would be ignored without a word.
        let unused = match self.lifetime {
            0 if self.life != 0 => Some(("life", self.life.to_string())),
            0 | 1 if self.lambda != 0.0 => Some(("lambda", self.lambda.to_string())),
            2 if self.life != 0 => Some(("life", self.life.to_string())),
            _ => None,
        };
        if let Some((what, value)) = unused {
            let text = format!(
                "{what} is {value}, but lifetime is {}, which does not use it; set lifetime to \
                 AVSG_LIFETIME_{}, or {what} to 0",
                self.lifetime,
                if what == "life" { "CONSTANT" } else { "FREQUENCY" },
            );
            return Err(Failure::new(AVSG_INVALID, text));
        }
        let lifetime = match self.lifetime {
            0 => defaults.lifetime,
            1 => {
                let life = i8::try_from(self.life).map_err(|_| {
                    let life = self.life;
                    let text = format!("life is {life}, but it must be 0..=127; 127 is plain LRU");
                    Failure::new(AVSG_INVALID, text)
                })?;
                Lifetime::Constant(life)
            }
            2 if self.lambda == 0.0 => Lifetime::frequency(),
            2 => frequency(self.lambda)?,
            other => return unknown_constant("lifetime", other, 2),
        };
        let spread = if self.spread == 0 { defaults.spread } else { self.spread };
        let retries = match self.retries {
            0 => defaults.retries,
            -1 => 0,
            n => u32::try_from(n).map_err(|_| {
                let text = format!("retries is {n}, but it must be -1..=15; 0 is the default");
                Failure::new(AVSG_INVALID, text)
            })?,
        };
        Ok(Params { table, lifetime, spread, retries, page: self.page, ..defaults })
    }

    fn copier(&self) -> Result<Option<Copier>> {
        if self.copier_ahead > 64 {
            let ahead = self.copier_ahead;
            let text = format!("copier_ahead is {ahead}, but it must be 0..=64; 1 or 4 is usual");
            return Err(Failure::new(AVSG_INVALID, text));
        }
        let ahead = self.copier_ahead as usize;
        match self.copier {
            0 => Ok(None),
            1 => Ok(Some(Copier::Plain)),
            2 => Ok(Some(Copier::Prefetch { ahead })),
            3 => Ok(Some(Copier::Stream { ahead })),
            other => unknown_constant("copier", other, 3),
        }
    }

    /// Returns the indexers of the layers of a pool.
    ///
    /// # Safety
    /// `layer_indexer` is NULL or valid for reads of `layer_indexers` elements.
    unsafe fn indexers(&self, layers: usize) -> Result<Indexers> {
        if self.layer_indexers != 0 {
            Indexers::check_count(self.layer_indexers, layers)?;
        }
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let given =
            unsafe { sized::array("layer_indexer", self.layer_indexer, self.layer_indexers)? };
        if given.is_empty() {
            return Ok(Indexers::default());
        }
        let of_layer = sized::converted("layer_indexer", given, |&of| Ok(of as usize))?;
        Ok(Indexers::of_layers(&of_layer)?)
    }

    /// # Safety
    /// As for [`Self::indexers`], [`caller_buffer`] and [`allocator`].
    unsafe fn config(&self, device: &Device, layers: usize, format: &RowFormat) -> Result<Config> {
        if self.launches > 2 {
            return unknown_constant(
                "launches",
                i32::try_from(self.launches).unwrap_or(i32::MAX),
                2,
            );
        }
        if self.reserved != 0 {
            let value = self.reserved;
            let text = format!("reserved is {value}, but it must be 0; zero the struct first");
            return Err(Failure::new(AVSG_INVALID, text));
        }
        let strategy = match self.strategy {
            0 => Strategy::Balanced,
            1 => Strategy::Request,
            2 => Strategy::Position,
            other => return unknown_constant("strategy", other, 2),
        };
        let machine = match self.machine {
            0 => MachineChoice::Auto,
            1 => MachineChoice::Emu,
            2 => MachineChoice::Avx2,
            3 => MachineChoice::Avx512,
            4 => MachineChoice::Neon,
            5 => MachineChoice::Avx512Loads,
            6 => MachineChoice::Avx512Gather,
            other => return unknown_constant("machine", other, 6),
        };
        let cores = match self.cores {
            0 => match device {
                Device::Cpu(Some(workers)) => workers.threads(),
                Device::Cpu(None) => allowed_cpu_count(),
                // The device limits the number to its own cores.
                Device::Ascend(_) => MAX_CORES,
            },
            n => n as usize,
        };
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let indexers = unsafe { self.indexers(layers)? };
        let (params, copier) = (self.params()?, self.copier()?);
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let buffer = unsafe { caller_buffer(self.buffer, layers, format)? };
        let slot_base = match self.global_slots {
            0 => None,
            1 => Some(self.slot_base),
            other => return unknown_constant("global_slots", other, 1),
        };
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let allocator = unsafe { allocator(self.allocator)? };
        Ok(Config {
            params,
            states: self.states,
            cores,
            machine,
            copier,
            strategy,
            indexers,
            buffer,
            slot_base,
            allocator,
        })
    }
}

/// The device of an engine.
pub(crate) enum Device {
    Cpu(Option<WorkerPool>),
    Ascend(AscendDevice),
}

/// The fields of the configuration that concern an Ascend device.
pub(crate) struct AscendDevice {
    pub simulated: bool,
    pub kernels: Option<PathBuf>,
    pub runtime: Option<PathBuf>,
    pub id: i32,
    pub timeout_ms: u32,
    pub one_launch: Option<bool>,
}

/// Copies a path; None for NULL.
///
/// # Safety
/// `path` is NULL or a NUL-terminated string.
unsafe fn path(path: *const c_char) -> Option<PathBuf> {
    // SAFETY: the caller keeps the contract of this function (`# Safety`).
    let text = (!path.is_null()).then(|| unsafe { CStr::from_ptr(path) });
    text.map(|text| PathBuf::from(OsStr::from_bytes(text.to_bytes())))
}

/// Returns the device that a configuration names.
///
/// # Safety
/// The strings of `config` are NULL or NUL-terminated.
unsafe fn device(config: &avsg_engine_config) -> Result<Device> {
    let cpu = || {
        let workers = config.workers;
        let workers = (!workers.is_null()).then(|| handle::shared::<WorkerPool>(workers));
        Ok(Device::Cpu(workers.transpose()?.map(|workers| workers.clone())))
    };
    if config.device.is_null() {
        return cpu();
    }
    // SAFETY: the caller keeps the contract of this function (`# Safety`).
    let name = unsafe { CStr::from_ptr(config.device) };
    let refuse = |status, reason, remedy| {
        let name: String = name.to_string_lossy().chars().take(32).collect();
        Err(Failure::new(status, format!("device is \"{name}\", but {reason}; {remedy}")))
    };
    let simulated = match name.to_bytes() {
        b"cpu" => return cpu(),
        b"ascend" => false,
        b"ascend-sim" if cfg!(feature = "sim") => true,
        b"ascend-sim" => {
            let reason = "this libavsg was built without its simulator";
            let remedy = "build avsg-capi-so with --features sim, or pass \"cpu\" or \"ascend\"";
            return refuse(AVSG_UNSUPPORTED, reason, remedy);
        }
        _ => {
            let remedy = "pass NULL or a name of avsg_devices";
            return refuse(AVSG_INVALID, "libavsg has no such device", remedy);
        }
    };
    Ok(Device::Ascend(AscendDevice {
        simulated,
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        kernels: unsafe { path(config.kernels) },
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        runtime: unsafe { path(config.runtime) },
        id: config.device_id,
        timeout_ms: if config.timeout_ms == 0 { 10_000 } else { config.timeout_ms },
        one_launch: (config.launches != 0).then_some(config.launches == 1),
    }))
}

/// Reads the configuration of an engine on a pool of `layers` layers of rows of this format, and its
/// device. Arrays whose lengths do not fit the pool are not read.
///
/// # Safety
/// `config` is NULL or valid for reads of the number of bytes in its `size`, its strings are NULL or
/// NUL-terminated, and its arrays are NULL or valid for reads of their lengths.
pub(crate) unsafe fn engine_config(
    config: *const avsg_engine_config,
    layers: usize,
    format: &RowFormat,
) -> Result<(Config, Device)> {
    // SAFETY: the caller keeps the contract of this function (`# Safety`).
    let config = unsafe { sized::read(config)? };
    // SAFETY: the caller keeps the contract of this function (`# Safety`).
    let device = unsafe { device(&config)? };
    // SAFETY: the caller keeps the contract of this function (`# Safety`).
    Ok((unsafe { config.config(&device, layers, format)? }, device))
}

const _: () = assert!(size_of::<avsg_engine_config>() == 176);
