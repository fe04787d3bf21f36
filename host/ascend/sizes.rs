//! The memory that engines and plans on an Ascend device take, computed before anything is taken.
//!
//! What the runtime takes for itself is not known here: the code of the kernels, their argument
//! lists, streams and registrations.

use avsg_device::memory::table_words;
use avsg_device::rules::rules;

use super::{arrays::Arrays, launch, staging};
use crate::buffer::BufferConfig;
use crate::overlap::Grids;
use crate::pool::{Geometry, PoolConfig, Start};
use crate::resources::{Config, Resources};
use crate::system::allocator::MemoryBytes;
use crate::{Error, Result, invalid};

/// Returns the bytes that [`Engine::on_ascend`](crate::engine::Engine::on_ascend) takes on a pool of
/// this configuration: the slots, the tables, the chunk addresses (8 bytes for each chunk of rows),
/// the lifetimes after a hit if they are learned, and in host memory a copy of one table. The checks are those of
/// [`Engine::on_ascend`](crate::engine::Engine::on_ascend), except that the device, its kernels and the
/// memory of the pool are not known here.
///
/// # Errors
/// If the configuration is invalid, or the sizes overflow.
pub fn engine_bytes(config: &Config, pool: &PoolConfig) -> Result<MemoryBytes> {
    let (slots, tables) = slots_and_tables(config, pool)?;
    let parts = [slots, tables, rule(config).len(), 8 * pool.chunk_count()?];
    let device = parts.into_iter().try_fold(0usize, usize::checked_add);
    let device = device.ok_or_else(|| too_large("states", config.states))?;
    Ok(MemoryBytes { host: 4 * table_words(&config.params), pinned: 0, device })
}

/// Returns what [`Engine::bytes_needed`](crate::engine::Engine::bytes_needed) returns on the CPU: the
/// bytes of the slots and of the tables.
///
/// # Errors
/// As for [`engine_bytes`].
pub fn slots_and_tables(config: &Config, pool: &PoolConfig) -> Result<(usize, usize)> {
    let shape = check(config, &pool.geometry()?, pool.grids(Start::on_device))?;
    Ok((config.slot_bytes(&shape)?, tables(config)?))
}

/// Checks a configuration for a pool, whose rows are in `rows` if there is a pool. Returns the shape of
/// the buffer.
pub(super) fn check(
    config: &Config,
    pool: &Geometry,
    rows: impl Iterator<Item = Result<Grids>>,
) -> Result<BufferConfig> {
    pool.check_addresses()?;
    let shape = Resources::check(config, pool, rows)?;
    launch::check(config, pool)?;
    Ok(shape)
}

/// Returns the bytes that [`Engine::new_plan`](crate::engine::Engine::new_plan) takes on an Ascend
/// device, apart from host memory ([`Plan::bytes_needed`](crate::plan::Plan::bytes_needed)).
///
/// # Errors
/// If the sizes overflow.
pub fn plan_bytes(config: &Config, max_tokens: usize, max_requests: usize) -> Result<MemoryBytes> {
    let bytes = Arrays::bytes(config.params.k as usize, max_tokens, max_requests);
    let bytes = bytes.ok_or_else(|| too_large("max_tokens", max_tokens))?;
    Ok(MemoryBytes { host: 0, pinned: bytes, device: bytes })
}

/// Returns the bytes that calls with host arrays make an engine take in addition, once the largest
/// batch came: of `tokens` tokens with fresh rows, `requests` requests, and `entries` entries
/// per request in the block table. It is 0 for an engine whose calls are all put into streams.
///
/// # Errors
/// If the sizes overflow.
pub fn staging_bytes(
    config: &Config,
    pool: &PoolConfig,
    tokens: usize,
    requests: usize,
    entries: usize,
) -> Result<MemoryBytes> {
    let entries = if config.params.page == 0 { 0 } else { entries };
    let bytes = staging::bytes(&pool.format, tokens, requests, entries);
    let bytes = bytes.ok_or_else(|| too_large("tokens", tokens))?;
    Ok(MemoryBytes { host: 0, pinned: bytes, device: bytes })
}

/// Returns the bytes of all tables.
pub(super) fn tables(config: &Config) -> Result<usize> {
    let bytes = config.tables().checked_mul(4 * table_words(&config.params));
    bytes.ok_or_else(|| too_large("states", config.states))
}

/// Returns the bytes of the lifetimes after a hit in device memory; none for constant ones.
pub(super) fn rule(config: &Config) -> heapless::Vec<u8, 512> {
    rules(&config.params.lifetime).iter().flatten().flat_map(|h| h.to_ne_bytes()).collect()
}

fn too_large(what: &'static str, value: usize) -> Error {
    invalid!(what is value, but "its memory must fit the address space";
        "ask for fewer states, tokens or requests")
}
