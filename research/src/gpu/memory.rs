//! The memory of all cells, each array at its largest size.

use anyhow::Result;
use avsg::device::memory::table_words;
use avsg::device::params::{ID_LIMIT, NO_STABLE_LEN};
use avsg::device::request::record;

use super::device::{DeviceMemory, Gpu, HostMemory};
use super::sizes::{SELECTIONS, Sizes};

/// The arrays of a batch, the tables and slots of its requests, and the host pool.
pub struct Memory<'g> {
    /// Row n of the pool begins at n times the bytes of a row. Its words are all different.
    pub pool: HostMemory<'g>,
    /// The address of the pool.
    pub chunks: DeviceMemory<'g>,
    /// The rows of ids and the places of slots, which only the comparator reads: each is its own number.
    pub host_row: DeviceMemory<'g>,
    pub device_row: DeviceMemory<'g>,
    /// The tables, and what they are before a replay.
    pub tables: DeviceMemory<'g>,
    pub saved_tables: DeviceMemory<'g>,
    pub slots: DeviceMemory<'g>,
    pub saved_slots: DeviceMemory<'g>,
    /// The ids of a step, and the selections that replays take in turn.
    pub ids: DeviceMemory<'g>,
    pub selections: DeviceMemory<'g>,
    /// The words of each request: the first row, the state, the generation, the stable length, the length, and the
    /// number of requests.
    pub first_row: DeviceMemory<'g>,
    pub state: DeviceMemory<'g>,
    pub generation: DeviceMemory<'g>,
    pub stable: DeviceMemory<'g>,
    pub length: DeviceMemory<'g>,
    pub requests: DeviceMemory<'g>,
    /// The slots of a step, its valid counts, its four miss lists and its records.
    pub out: DeviceMemory<'g>,
    pub valid: DeviceMemory<'g>,
    pub misses: [DeviceMemory<'g>; 4],
    pub record: DeviceMemory<'g>,
}

impl<'g> Memory<'g> {
    /// Allocates all memory and fills what no cell changes.
    pub fn new(gpu: &'g Gpu, sizes: &Sizes) -> Result<Self> {
        let requests = Sizes::largest(sizes.requests);
        let slots = Sizes::largest(sizes.slots) * requests;
        let row_bytes = Sizes::largest(sizes.row_bytes);
        let words = requests * sizes.k as usize;
        let table = sizes.geometries().map(|p| table_words(&p)).max().unwrap_or_default();
        let most = requests.max(Sizes::largest(sizes.probes.tables));
        let tables = (most * table * 4).max(slots * 6);
        let array = |words: usize| gpu.allocate(words * 4);
        let filled = |word: &dyn Fn(usize) -> usize| -> Result<DeviceMemory<'g>> {
            let memory = array(requests + 1)?;
            let words: Vec<i32> = (0..=requests).map(|i| word(i) as i32).collect();
            memory.upload(&bytes(&words))?;
            Ok(memory)
        };
        let mut pool = gpu.allocate_host(sizes.pool_rows as usize * row_bytes)?;
        pool.fill(mixed);
        let chunks = gpu.allocate(8)?;
        chunks.upload(&pool.address().to_le_bytes())?;
        let host_row = gpu.allocate(sizes.pool_rows as usize * 8)?;
        let rows: Vec<u8> = (0..u64::from(sizes.pool_rows)).flat_map(u64::to_le_bytes).collect();
        host_row.upload(&rows)?;
        let device_row = array(slots)?;
        device_row.upload(&bytes(&(0..slots as i32).collect::<Vec<_>>()))?;
        Ok(Self {
            pool,
            chunks,
            host_row,
            device_row,
            tables: gpu.allocate(tables)?,
            saved_tables: gpu.allocate(tables)?,
            slots: gpu.allocate(slots * row_bytes)?,
            saved_slots: gpu.allocate(slots * row_bytes)?,
            ids: array(words)?,
            selections: array(words * SELECTIONS as usize)?,
            first_row: filled(&|i| i)?,
            state: filled(&|i| i)?,
            generation: filled(&|_| 1)?,
            stable: filled(&|_| NO_STABLE_LEN as usize)?,
            length: filled(&|_| ID_LIMIT as usize)?,
            requests: array(1)?,
            out: array(words)?,
            valid: array(requests)?,
            misses: [array(words)?, array(words)?, array(words)?, array(words)?],
            record: array(requests * record::WORDS)?,
        })
    }
}

/// Returns words as bytes.
pub fn bytes(words: &[i32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Returns bytes as words.
pub fn words(bytes: &[u8]) -> Vec<i32> {
    let word = |word: &[u8]| i32::from_le_bytes([word[0], word[1], word[2], word[3]]);
    bytes.chunks_exact(4).map(word).collect()
}

/// Returns a number that no other word of the pool has: the finalizer of SplitMix64, which is a permutation.
fn mixed(n: u64) -> u64 {
    let mut x = n;
    x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ x >> 31
}
