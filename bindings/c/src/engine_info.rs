//! What is read beside an engine's calls: its description, its buffer and its counters.

use std::ffi::c_char;
use std::sync::Arc;

use avsg::device::params::{Lifetime, Table};

use crate::c_text::c_chars;
use crate::engine::avsg_engine;
use crate::handle::{self, Object};
use crate::sized::give_struct;
use crate::status::{Result, avsg_status};
use avsg::buffer::DeviceBuffer;
use avsg::engine::{Config, Engine, StatsReader};

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
    /// K, the most ids that a token selects.
    pub k: u32,
    /// N_q, the most tokens of a request in one step.
    pub tokens: u32,
    /// S, the number of slots per state and layer.
    pub slots: u32,
    /// An `avsg_table`.
    pub table: i32,
    /// An `avsg_lifetime`, but not AVSG_LIFETIME_AUTO.
    pub lifetime: i32,
    /// The constant lifetime in decode steps; 0 with AVSG_LIFETIME_LEARNED.
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
            Lifetime::Learned => 0,
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

impl Object for Engine {
    type C = avsg_engine;
    const KIND: u64 = 2;
    const NAME: &'static str = "engine";
    type Fixed = (avsg_engine_info, Arc<DeviceBuffer>, StatsReader);

    fn fixed(&self) -> Self::Fixed {
        (engine_info(self), Arc::clone(self.buffer()), self.stats_reader())
    }

    fn end(self) -> Result<()> {
        Ok(self.close()?)
    }
}

/// Describes an engine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_engine_get_info(
    engine: *const avsg_engine,
    info: *mut avsg_engine_info,
) -> avsg_status {
    let describe = || handle::fixed::<Engine, _>(engine, |&(info, ..)| Ok(info));
    contract!(give_struct(info, describe))
}
