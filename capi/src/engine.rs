//! Creation, description and destruction of engines.

use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::Arc;

use avsg::device::params::{Lifetime, Table};

use crate::c_text::c_chars;
use crate::config::{AscendDevice, Device, avsg_engine_config, engine_config};
use crate::handle::{self, Object};
use crate::pool::{Pool, avsg_pool};
use crate::pool_config::{avsg_pool_config, pool_config};
use crate::sized::{OutPtr, OutStruct, SizedStruct};
use crate::sizes::slots_and_tables;
#[cfg(not(feature = "sim"))]
use crate::status::Failure;
#[cfg(not(feature = "sim"))]
use crate::status::avsg_status::AVSG_UNSUPPORTED;
use crate::status::{Result, avsg_status, enter};
use avsg::ascend::AscendOptions;
use avsg::ascend::acl::{Acl, Context, Source};
use avsg::engine::{Config, Engine};

/// The operator on one device: the tables and the device buffer of every state. Engines share
/// nothing but a pool and workers, so that calls on different engines may overlap. On "cpu" the
/// functions of a step allocate nothing and take no lock; they sleep only while another worker runs
/// a piece of the step. After AVSG_DEVICE of a call that may have changed something, the next plan
/// empties every state, and plans that were made before are refused.
pub struct avsg_engine {
    _opaque: [u8; 0],
}

impl Object for Engine {
    type C = avsg_engine;
    const KIND: u64 = 2;
    const NAME: &'static str = "engine";

    fn end(self) -> Result<()> {
        Ok(self.close()?)
    }
}

/// Device memory of an engine, in bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_engine_memory {
    /// sizeof(avsg_engine_memory).
    pub size: usize,
    /// Bytes of the device buffer: S rows for each state and layer.
    pub buffer: usize,
    /// Bytes of the tables and, on "cpu", of the cores' working memory.
    pub tables: usize,
}

// SAFETY: the struct is repr(C) with `size` first, and its fields are three words.
unsafe impl SizedStruct for avsg_engine_memory {
    const NAME: &'static str = "avsg_engine_memory";
    const FIRST_SIZE: usize = 24;
}

/// The description of an engine: its configuration with the defaults filled in, and what creation
/// measured.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_engine_info {
    /// sizeof(avsg_engine_info).
    pub size: usize,
    /// The name of the device.
    pub device: [c_char; 16],
    /// The vector instructions, such as "avx512"; "none" on an Ascend device.
    pub machine: [c_char; 32],
    /// The method that copies rows, such as "stream+8"; "none" on an Ascend device.
    pub copier: [c_char; 32],
    /// K, the largest number of ids per row.
    pub k: u32,
    /// N_q, the largest number of rows of a request in one step.
    pub tokens: u32,
    /// S, the number of slots per state and layer.
    pub slots: u32,
    /// An `avsg_table`.
    pub table: i32,
    /// AVSG_LIFETIME_CONSTANT or AVSG_LIFETIME_FREQUENCY.
    pub lifetime: i32,
    /// The constant lifetime in decode steps; 0 with AVSG_LIFETIME_FREQUENCY.
    pub life: i32,
    /// Links per slot.
    pub spread: u32,
    /// R, the number of links probed after the first.
    pub retries: u32,
    /// Tokens per block of the host's block tables; 0 if there are none.
    pub page: u32,
    /// Cores in use.
    pub cores: u32,
    /// Request states.
    pub states: usize,
    /// Layers of the pool.
    pub layers: usize,
    /// Bytes of the device buffer.
    pub buffer_bytes: usize,
    /// Threads that run a launch on "cpu", the caller's included; 0 on an Ascend device.
    pub threads: u32,
    /// Always 0.
    pub reserved: u32,
    /// Indexers: the tables of each state.
    pub indexers: usize,
}

// SAFETY: the struct is repr(C) with `size` first, has no padding (168 bytes, asserted below), and
// its fields are integers.
unsafe impl SizedStruct for avsg_engine_info {
    const NAME: &'static str = "avsg_engine_info";
    const FIRST_SIZE: usize = 152;
}
const _: () = assert!(size_of::<avsg_engine_info>() == 168);

fn engine_info(engine: &Engine) -> avsg_engine_info {
    let Config { params, states, cores, ref indexers, .. } = *engine.config();
    avsg_engine_info {
        size: 0,
        device: c_chars(&engine.device()),
        machine: c_chars(&engine.machine().unwrap_or("none")),
        copier: engine.copier().map_or_else(|| c_chars(&"none"), |copier| c_chars(&copier)),
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
        threads: engine.threads().unwrap_or(0) as u32,
        reserved: 0,
        indexers: indexers.count(),
    }
}

/// Computes the device memory of an engine with this configuration on a pool of that one, and
/// allocates nothing. It checks as `avsg_memory_bytes` does.
///
/// # Safety
/// The pointers keep the rule Pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_bytes(
    config: *const avsg_engine_config,
    pool: *const avsg_pool_config,
    memory: *mut avsg_engine_memory,
) -> avsg_status {
    enter(|| {
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let out = unsafe { OutStruct::new(memory)? };
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let pool = unsafe { pool_config(pool)? };
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let (config, device) = unsafe { engine_config(config, pool.layers, &pool.format)? };
        let (buffer, tables) = slots_and_tables(&config, &device, &pool)?;
        out.write(avsg_engine_memory { size: 0, buffer, tables });
        Ok(())
    })
}

/// Creates an engine with the layers and the row format of the pool, allocates all its memory and
/// starts its cores. On "cpu" the automatic choices of instructions and copy method are measured by
/// the first engine of a process (the copy method, for each length of a row), which takes tens of
/// milliseconds; every later engine takes the same ones. On an Ascend device it loads the kernels, which
/// "ascend-sim" first compiles with the C++ compiler. AVSG_UNSUPPORTED: the library or the machine
/// lacks the device, and the message lists what was tried.
///
/// # Safety
/// The pointers keep the rule Pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_create(
    config: *const avsg_engine_config,
    pool: *const avsg_pool,
    engine: *mut *mut avsg_engine,
) -> avsg_status {
    enter(|| {
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let out = unsafe { OutPtr::new("engine", engine, ptr::null_mut())? };
        let pool = handle::shared::<Pool>(pool)?;
        let (layers, format) = (pool.host.layers(), pool.host.format());
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let (config, device) = unsafe { engine_config(config, layers, format)? };
        let engine = match device {
            Device::Cpu(None) => Engine::new(config, Arc::clone(&pool.host))?,
            Device::Cpu(Some(workers)) => {
                Engine::with_workers(config, Arc::clone(&pool.host), &workers)?
            }
            Device::Ascend(device) => create_on_ascend(config, &pool, &device)?,
        };
        out.write(handle::create(engine)?);
        Ok(())
    })
}

fn create_on_ascend(config: Config, pool: &Pool, device: &AscendDevice) -> Result<Engine> {
    let source = match &device.runtime {
        _ if device.simulated => simulator()?,
        Some(path) => Source::Path(path.clone()),
        None => Source::System,
    };
    let acl = Arc::new(Acl::open(&source)?);
    let same = |c: &Context| c.device() == device.id && c.acl().simulated() == device.simulated;
    let pool = pool.registered(same, || Context::for_device(acl, device.id))?;
    let context = pool.context();
    let options = AscendOptions {
        timeout_ms: device.timeout_ms,
        one_launch: device.one_launch,
        kernels: device.kernels.clone(),
        ..AscendOptions::new(Arc::clone(context))
    };
    Ok(Engine::on_ascend(config, pool, &options)?)
}

#[cfg(feature = "sim")]
fn simulator() -> Result<Source> {
    Ok(avsg::ascend::simulated::source())
}

// `config::device` has refused a configuration that names the simulator.
#[cfg(not(feature = "sim"))]
fn simulator() -> Result<Source> {
    Err(Failure::new(
        AVSG_UNSUPPORTED,
        "device is \"ascend-sim\", but this libavsg was built without it; pass \"cpu\"".into(),
    ))
}

/// Describes an engine.
///
/// # Safety
/// The pointers keep the rule Pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_get_info(
    engine: *const avsg_engine,
    info: *mut avsg_engine_info,
) -> avsg_status {
    enter(|| {
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let out = unsafe { OutStruct::new(info)? };
        out.write(engine_info(&*handle::shared::<Engine>(engine)?));
        Ok(())
    })
}

/// Gives the table of one state and indexer 0 as words: header, ids, lifetimes, links. It is meant for snapshots
/// and tests. The words are valid until the next call that takes the engine's handle as a non-const
/// pointer. On an Ascend device they are copied without waiting for the caller's streams:
/// synchronize those first.
///
/// # Safety
/// The pointers keep the rule Pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_table(
    engine: *mut avsg_engine,
    state: usize,
    words: *mut *const i32,
    count: *mut usize,
) -> avsg_status {
    enter(|| {
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let (at, len) =
            unsafe { (OutPtr::new("words", words, ptr::null())?, OutPtr::new("count", count, 0)?) };
        let mut engine = handle::exclusive::<Engine>(engine)?;
        let table = engine.read_table(state)?;
        at.write(table.as_ptr());
        len.write(table.len());
        Ok(())
    })
}

/// Gives the table of one state and any indexer, as `avsg_engine_table` does.
///
/// # Safety
/// The pointers keep the rule Pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_indexer_table(
    engine: *mut avsg_engine,
    indexer: usize,
    state: usize,
    words: *mut *const i32,
    count: *mut usize,
) -> avsg_status {
    enter(|| {
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let (at, len) =
            unsafe { (OutPtr::new("words", words, ptr::null())?, OutPtr::new("count", count, 0)?) };
        let mut engine = handle::exclusive::<Engine>(engine)?;
        let table = engine.read_indexer_table(indexer, state)?;
        at.write(table.as_ptr());
        len.write(table.len());
        Ok(())
    })
}

/// Destroys an engine with its cores, tables and device buffer. Its plans are destroyed separately,
/// and their host arrays stay readable until then. AVSG_DEVICE: the runtime refused to release
/// something, and the rest was released; the handle is invalid in any case.
#[unsafe(no_mangle)]
pub extern "C" fn avsg_engine_destroy(engine: *mut avsg_engine) -> avsg_status {
    enter(|| handle::destroy::<Engine>(engine))
}

/// The device buffer of one layer and segment. Slot s of state t is at
/// base + t * state_stride + s * slot_stride.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_buffer {
    /// sizeof(avsg_buffer).
    pub size: usize,
    /// Slot 0 of state 0, in the device's memory. The pages of `avsg_engine_block_table` count from
    /// here.
    pub base: *mut c_void,
    /// Bytes from one slot to the next: the segment's stride.
    pub slot_stride: usize,
    /// Bytes from one state to the next: S * slot_stride.
    pub state_stride: usize,
    /// Bytes of the segment in a row.
    pub bytes: usize,
}

// SAFETY: the struct is repr(C) with `size` first, and its fields are words.
unsafe impl SizedStruct for avsg_buffer {
    const NAME: &'static str = "avsg_buffer";
    const FIRST_SIZE: usize = 40;
}

/// Describes the device buffer of a layer and segment, which attention reads. Its memory is valid
/// until the engine is destroyed, and only the engine may write it. AVSG_INVALID for a buffer of the
/// caller whose slots are no single stride apart.
///
/// # Safety
/// The pointers keep the rule Pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_buffer(
    engine: *const avsg_engine,
    layer: usize,
    segment: usize,
    buffer: *mut avsg_buffer,
) -> avsg_status {
    enter(|| {
        // SAFETY: the caller keeps the contract of this function (`# Safety`).
        let out = unsafe { OutStruct::new(buffer)? };
        let engine = handle::shared::<Engine>(engine)?;
        let base = engine.buffer().segment_base(layer, segment)?.cast();
        let (state_stride, slot_stride) = engine.buffer().strides(segment)?;
        let bytes = engine.buffer().config().format.as_slice()[segment].bytes;
        out.write(avsg_buffer { size: 0, base, slot_stride, state_stride, bytes });
        Ok(())
    })
}
