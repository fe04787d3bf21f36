//! An engine's life, and what there is to know of it.

use std::ffi::{c_char, c_void};
use std::fmt::{self, Display, Write as _};
use std::ptr;
use std::sync::Arc;

use avsg::device::params::{Lifetime, Table};

use crate::config::{Place, Target, avsg_engine_config, engine_config};
use crate::handle::{self, Object};
use crate::pool::{Pool, avsg_pool};
use crate::pool_config::{avsg_pool_config, pool_config};
use crate::sized::{Out, Room, Sized_};
use crate::status::avsg_status::AVSG_INVALID;
#[cfg(not(feature = "sim"))]
use crate::status::avsg_status::AVSG_UNSUPPORTED;
use crate::status::{Fail, Result, avsg_status, enter};
use avsg::ascend::AscendOptions;
use avsg::ascend::acl::owned::Context;
use avsg::ascend::acl::{Acl, Source};
use avsg::buffer::BufferConfig;
use avsg::device::memory::table_words;
use avsg::engine::{Config, Engine};

/// The operator on one device: the tables and device buffer of every request state.
///
/// Threads: one may be inside plan, transfer, step, append, table or destroy at a time, whichever it is; a
/// second one gets AVSG_BUSY at once and nothing has changed. Different engines share nothing but a pool
/// and may run side by side. No call of a step (plan, transfer, step, append) allocates or waits for a
/// lock.
///
/// Devices: on "cpu" every address is this process's memory and a call has done its work when it returns.
/// On "ascend" and "ascend-sim" the device buffer is device memory, and `stream` says what a call of a
/// step is:
/// - NULL: its arrays are host memory. It copies them to the device (which allocates when a batch is
///   larger than any before), waits, and the plan can be read as on "cpu".
/// - an aclrtStream of the engine's device: its arrays are device memory, it puts its work into the stream
///   and returns. Nothing is read by the host, so that a capture may replay it, and contents cannot be
///   checked: `cu_q` must ascend from 0 by at most N_q, and states be in range and named once. The plan's
///   outputs are in device memory (`avsg_plan_get_device_arrays`).
///
/// A failed device (AVSG_DEVICE) makes the next plan start every table cold; calls with plans from before
/// are refused.
pub struct avsg_engine {
    _opaque: [u8; 0],
}

impl Object for Engine {
    type C = avsg_engine;
    const KIND: u64 = 2;
    const NAME: &'static str = "engine";
}

/// Bytes of memory.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_engine_memory {
    /// sizeof(avsg_engine_memory), set by the caller.
    pub size: usize,
    /// The device buffer: S rows for each state and layer.
    pub buffer: usize,
    /// Tables and working columns.
    pub tables: usize,
}

// SAFETY: repr(C), three words, size first.
unsafe impl Sized_ for avsg_engine_memory {
    const NAME: &'static str = "avsg_engine_memory";
    const FIRST: usize = 24;
}

/// What an engine is: its configuration with every default filled in, and what was found at creation.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_engine_info {
    /// sizeof(avsg_engine_info), set by the caller.
    pub size: usize,
    /// The device.
    pub device: [c_char; 16],
    /// The vector machine, such as "avx512"; "none" on a device.
    pub machine: [c_char; 32],
    /// How rows are copied, such as "stream+8"; "none" on a device.
    pub copier: [c_char; 32],
    /// K.
    pub k: u32,
    /// N_q.
    pub tokens: u32,
    /// S.
    pub slots: u32,
    /// An `avsg_table`.
    pub table: i32,
    /// AVSG_LIFETIME_CONSTANT or AVSG_LIFETIME_FREQUENCY.
    pub lifetime: i32,
    /// L, if constant.
    pub life: i32,
    /// Links per slot.
    pub spread: u32,
    /// R.
    pub retries: u32,
    /// Tokens per block of the host's block tables; 0: none.
    pub page: u32,
    /// Cores.
    pub cores: u32,
    /// Request states.
    pub states: usize,
    /// Layers, the pool's.
    pub layers: usize,
    /// Bytes of the device buffer.
    pub buffer_bytes: usize,
}

// SAFETY: repr(C) without padding (152 bytes, asserted below), size first, integers only.
unsafe impl Sized_ for avsg_engine_info {
    const NAME: &'static str = "avsg_engine_info";
    const FIRST: usize = 152;
}
const _: () = assert!(size_of::<avsg_engine_info>() == 152);

/// Text cut to a field, NUL at its end.
fn field<const N: usize>(text: impl Display) -> [c_char; N] {
    struct Cut<const N: usize>([c_char; N], usize);
    impl<const N: usize> fmt::Write for Cut<N> {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            for byte in text.bytes().take(N - 1 - self.1) {
                self.0[self.1] = byte as c_char;
                self.1 += 1;
            }
            Ok(())
        }
    }
    let mut cut = Cut([0; N], 0);
    // Cannot fail: what does not fit is left out.
    let _ = write!(cut, "{text}");
    cut.0
}

fn engine_info(engine: &Engine) -> avsg_engine_info {
    let Config { params, states, cores, .. } = *engine.config();
    avsg_engine_info {
        size: 0,
        device: field(engine.device()),
        machine: engine.machine().map_or_else(|| field("none"), field),
        copier: engine.copier().map_or_else(|| field("none"), field),
        k: params.k,
        tokens: params.tokens,
        slots: params.slots,
        table: i32::from(params.table != Table::Wide),
        lifetime: if matches!(params.lifetime, Lifetime::Constant(_)) { 1 } else { 2 },
        life: match params.lifetime {
            Lifetime::Constant(life) => life.into(),
            Lifetime::Frequency(_) => 0,
        },
        spread: params.spread,
        retries: params.retries,
        page: params.page,
        cores: cores as u32,
        states,
        layers: engine.pool().layers(),
        buffer_bytes: engine.buffer().bytes(),
    }
}

/// Device memory that an engine on a pool of this kind takes, without taking it.
///
/// # Safety
/// `config` and `pool` as their types say; `memory` has as many bytes as its `size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_bytes(
    config: *const avsg_engine_config,
    pool: *const avsg_pool_config,
    memory: *mut avsg_engine_memory,
) -> avsg_status {
    enter(|| {
        // SAFETY: the contract.
        let ((config, target), pool) = unsafe { (engine_config(config)?, pool_config(pool)?) };
        // SAFETY: the contract.
        let room = unsafe { Room::new(memory)? };
        let slots = config.params.slots as usize;
        let (states, layers, format) = (config.states, pool.layers, pool.format);
        let shape = BufferConfig { states, layers, slots, format };
        let (buffer, mut tables) = Engine::bytes_needed(&config, &shape)?;
        if matches!(target, Target::Ascend(_)) {
            // Working columns are the cores' own memory.
            tables = states.saturating_mul(4 * table_words(&config.params));
        }
        room.fill(avsg_engine_memory { size: 0, buffer, tables });
        Ok(())
    })
}

/// Takes all memory and starts the cores; layers and row format are the pool's. More memory than the
/// machine can give is refused (AVSG_NO_MEMORY) with nothing taken. Takes milliseconds: it measures which
/// machine and which copy are fastest. An Ascend device loads its kernels, and the simulated one compiles
/// them first, with the C++ compiler. AVSG_UNSUPPORTED if this library or this machine does not have the device: the
/// sentence lists what was tried.
///
/// # Safety
/// `config` as its type says, its strings NULL or with a NUL at their end; `engine` may be written. It is
/// NULL after a failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_create(
    config: *const avsg_engine_config,
    pool: *const avsg_pool,
    engine: *mut *mut avsg_engine,
) -> avsg_status {
    enter(|| {
        // SAFETY: the contract.
        let out = unsafe { Out::new("engine", engine, ptr::null_mut())? };
        // SAFETY: the contract.
        let (config, target) = unsafe { engine_config(config)? };
        let pool = handle::shared::<Pool>(pool)?;
        let engine = match target {
            Target::Cpu => Engine::new(config, Arc::clone(&pool.0))?,
            Target::Ascend(place) => on_ascend(config, &pool, &place)?,
        };
        out.set(handle::create(engine)?);
        Ok(())
    })
}

fn on_ascend(config: Config, pool: &Pool, place: &Place) -> Result<Engine> {
    let source = match &place.runtime {
        _ if place.simulated => simulator()?,
        Some(path) => Source::Path(path.clone()),
        None => Source::System,
    };
    let acl = Arc::new(Acl::open(&source)?);
    let same = |c: &Context| c.device() == place.id && c.acl().simulated() == place.simulated;
    let pool = pool.registered(same, || Context::for_device(acl, place.id))?;
    let Some(context) = pool.context() else {
        let text = "pool is empty, but a device needs rows; make it larger";
        return Err(Fail::new(AVSG_INVALID, text.into()));
    };
    let options = AscendOptions {
        timeout_ms: place.timeout_ms,
        one_launch: place.one_launch,
        kernels: place.kernels.clone(),
        ..AscendOptions::new(Arc::clone(context))
    };
    Ok(Engine::on_ascend(config, pool, &options)?)
}

#[cfg(feature = "sim")]
fn simulator() -> Result<Source> {
    Ok(avsg::ascend::simulated::source())
}

// A configuration that names the simulator was refused before.
#[cfg(not(feature = "sim"))]
fn simulator() -> Result<Source> {
    Err(Fail::new(
        AVSG_UNSUPPORTED,
        "device is \"ascend-sim\", but it is not built in; rebuild".into(),
    ))
}

/// What an engine is.
///
/// # Safety
/// `info` has as many bytes as its `size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_get_info(
    engine: *const avsg_engine,
    info: *mut avsg_engine_info,
) -> avsg_status {
    enter(|| {
        // SAFETY: the contract.
        let room = unsafe { Room::new(info)? };
        room.fill(engine_info(&*handle::shared::<Engine>(engine)?));
        Ok(())
    })
}

/// One state's table as plain words: header, ids, lifetimes, links. For snapshots and tests. It may be
/// read until the next call on the engine. From a device it is copied, behind nothing: wait for your
/// streams first.
///
/// # Safety
/// `words` and `count` may be written. They are NULL and 0 after a failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_table(
    engine: *mut avsg_engine,
    state: usize,
    words: *mut *const i32,
    count: *mut usize,
) -> avsg_status {
    enter(|| {
        // SAFETY: the contract.
        let (at, len) =
            unsafe { (Out::new("words", words, ptr::null())?, Out::new("count", count, 0)?) };
        let mut engine = handle::alone::<Engine>(engine)?;
        let table = engine.read_table(state)?;
        at.set(table.as_ptr());
        len.set(table.len());
        Ok(())
    })
}

/// Ends an engine: its cores, tables and device buffer. Plans stay readable and are destroyed by
/// themselves. NULL does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn avsg_engine_destroy(engine: *mut avsg_engine) -> avsg_status {
    enter(|| handle::destroy::<Engine>(engine))
}

/// The device buffer of one layer and segment: state t's slot s is at
/// base + t * state_stride + s * slot_stride.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_buffer {
    /// sizeof(avsg_buffer), set by the caller.
    pub size: usize,
    /// The first slot of state 0, in memory of the device. Page indices count from here.
    pub base: *mut c_void,
    /// Bytes from slot to slot: the segment's stride.
    pub slot_stride: usize,
    /// Bytes from state to state: S of them.
    pub state_stride: usize,
    /// Bytes of a row's segment.
    pub bytes: usize,
}

// SAFETY: repr(C), words only, size first.
unsafe impl Sized_ for avsg_buffer {
    const NAME: &'static str = "avsg_buffer";
    const FIRST: usize = 40;
}

/// Where attention finds the rows of a layer and segment. The same for the engine's whole life; its
/// memory must not be used after destroy, nor a slot be written by anyone else.
///
/// # Safety
/// `buffer` has as many bytes as its `size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_buffer(
    engine: *const avsg_engine,
    layer: usize,
    segment: usize,
    buffer: *mut avsg_buffer,
) -> avsg_status {
    enter(|| {
        // SAFETY: the contract.
        let room = unsafe { Room::new(buffer)? };
        let engine = handle::shared::<Engine>(engine)?;
        let base = engine.buffer().segment_base(layer, segment)?.cast();
        let config = engine.buffer().config();
        let shape = config.format.as_slice()[segment];
        room.fill(avsg_buffer {
            size: 0,
            base,
            slot_stride: shape.stride,
            state_stride: config.slots * shape.stride,
            bytes: shape.bytes,
        });
        Ok(())
    })
}
