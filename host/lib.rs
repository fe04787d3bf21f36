//! AVSG: exact sparse gather of top-K selected KV rows from host memory into a small device buffer.
//!
//! An engine decides for each decode step which selected rows are in the device buffer, gives the
//! missing ones slots, and copies only those. Attention reads every selected row through its slot:
//!
//! ```
//! use avsg::{device::params::Params, engine::*, pool::*, rows::RowFormat};
//!
//! # fn main() -> avsg::Result<()> {
//! let (layers, rows, k, slots) = (2, 256, 16, 64);
//! let pool = HostPool::new(&PoolConfig::new(layers, rows, RowFormat::single(1152)?))?;
//! # for row in 0..rows { for layer in 0..layers { pool.write_row(layer, row, &[row as u8; 1152])?; } }
//! let mut engine = Engine::new(Config::new(Params::wide(k, 1, slots), 1), pool)?; // K, N_q, S; states
//! let mut plan = engine.new_plan(1, 1)?; // rows and requests of the largest batch
//! let ids: Vec<i32> = (0..16).map(|i| i * 5).collect(); // what the top-K indexer selected
//! let batch = Batch {
//!     ids: &ids, ids_stride: 16, k: 16, cu_q: &[0, 1], state: &[0], generation: &[1],
//!     stable_len: &[-1], seq_len: &[200], block_table: &[], block_stride: 0, indexer: 0,
//! };
//! engine.plan(&batch, &mut plan)?; // once per step and indexer: slots and miss lists
//! for layer in 0..layers {
//!     engine.transfer(&mut plan, &[layer], None)?; // once per layer: copies the missing rows
//!     let slot = plan.slots(0)[3] as usize; // the slot of ids[3] of row 0
//!     let row = engine.buffer().view(0, layer, 0)?.ptr(slot); // attention reads it here
//! #   // SAFETY: the slot was filled by the transfer, and no other thread uses the buffer.
//! #   assert_eq!(unsafe { row.read() }, 15);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Modules, in the order in which an embedder needs them:
//! - [`rows`], [`pool`]: the format of a KV row, and the host pool that holds all rows;
//! - [`engine`]: the engine, its configuration, batches, and the calls of a step;
//! - [`plan`], [`buffer`]: the results of a plan, and the slots that attention reads;
//! - [`cpu`], [`ascend`]: the devices that an engine runs on, with [`system::cpus`], the CPUs of this process;
//! - [`indexers`]: the layers that share a table, for models with several indexers;
//! - [`copy`]: the loops that copy rows on the CPU;
//! - [`error`]: the errors that calls return;
//! - [`geometry`]: checks of a geometry;
//! - [`disk`]: rows in a file in place of memory;
//! - [`system`]: the memory available, the CPUs of this process, a forked child, memory from the caller's allocator;
//! - [`device`]: the kernels and their parameters ([`device::params`]).

pub mod ascend;
mod backend;
pub mod buffer;
mod call;
pub mod copy;
pub mod cpu;
mod device_arrays;
pub mod disk;
pub mod engine;
pub mod error;
pub mod geometry;
pub mod indexers;
mod overlap;
pub mod plan;
pub mod pool;
mod resources;
pub mod rows;
pub mod system;

pub use avsg_device as device;
pub use error::{Error, Result};
pub(crate) use error::{ensure, invalid};

/// Compiles the Rust code in docs/.
#[cfg(doctest)]
#[doc = include_str!("../docs/ascend.md")]
#[doc = include_str!("../docs/engine.md")]
struct DocsDoctests;
