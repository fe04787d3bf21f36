//! The memory of a device buffer, how its bytes are read, and the caller's table of its blocks.

use super::caller::{BlockTable, CallerBuffer};
use crate::process_memory::ProcessMemory;
use crate::{Result, reserve};

const TABLE: &str = "block table";

/// Device memory, which this process cannot read directly.
pub(crate) trait SlotMemory: Send + Sync {
    /// Returns the device address of the first byte.
    fn address(&self) -> u64;
    /// Returns the length in bytes.
    fn bytes(&self) -> usize;
    /// Copies the bytes from a device address on to `into`.
    fn read(&self, from: u64, into: &mut [u8]) -> Result<()>;
}

pub(super) enum Memory {
    Process(ProcessMemory),
    Device(Box<dyn SlotMemory>),
    /// Memory of the caller, on a device if there is a reader for it.
    Caller(CallerBuffer, Option<Box<dyn SlotMemory>>),
}

impl Memory {
    /// Returns the caller's memory, if the buffer is in it.
    pub fn caller(&self) -> Option<&CallerBuffer> {
        match self {
            Self::Caller(caller, _) => Some(caller),
            _ => None,
        }
    }

    /// Returns the device that holds the buffer and the caller's table; `None` for process memory.
    pub fn device(&self) -> Option<&dyn SlotMemory> {
        match self {
            Self::Device(memory) | Self::Caller(_, Some(memory)) => Some(memory.as_ref()),
            Self::Process(_) | Self::Caller(_, None) => None,
        }
    }

    /// Returns the length in bytes; 0 in memory of the caller, which has not said it.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Process(memory) => memory.len(),
            Self::Device(memory) => memory.bytes(),
            Self::Caller(..) => 0,
        }
    }

    /// Returns the bytes that transparent hugepages map; 0 in device memory, in memory of the caller and
    /// in that of an allocator.
    pub fn huge_bytes(&self) -> usize {
        match self {
            Self::Process(memory) => memory.huge_bytes(),
            Self::Device(_) | Self::Caller(..) => 0,
        }
    }

    /// Returns the caller's table.
    pub fn table(&self) -> Option<BlockTable> {
        self.caller().and_then(CallerBuffer::table)
    }

    /// Returns the entries of an existing state in the caller's table, if there is one. Those of a
    /// table in device memory are copied, which allocates.
    pub fn state_blocks(&self, state: usize, slots: usize) -> Result<Option<StateBlocks>> {
        let Some(table) = self.table() else { return Ok(None) };
        let entries = table.of(state, slots);
        let Some(device) = self.device() else {
            return Ok(Some(StateBlocks { table, entries, _copy: Vec::new() }));
        };
        let mut copy = reserve::filled(TABLE, table.entries(slots), 0)?;
        let mut bytes = reserve::filled(TABLE, 4 * copy.len(), 0)?;
        device.read(entries.addr() as u64, &mut bytes)?;
        for (entry, bytes) in copy.iter_mut().zip(bytes.as_chunks::<4>().0) {
            *entry = i32::from_ne_bytes(*bytes);
        }
        Ok(Some(StateBlocks { table, entries: copy.as_ptr(), _copy: copy }))
    }
}

/// The entries of one state in the caller's table.
pub(super) struct StateBlocks {
    table: BlockTable,
    /// The entries in process memory: the caller's, or the copy.
    entries: *const i32,
    _copy: Vec<i32>,
}

impl StateBlocks {
    /// Returns the table and the entries in process memory, which are valid for as long as this
    /// value.
    pub fn parts(&self) -> (BlockTable, *const i32) {
        (self.table, self.entries)
    }

    /// Returns the index of a slot below S; `None` if its block is not in the buffer.
    pub fn index(&self, slot: usize) -> Option<usize> {
        let (table, entries) = self.parts();
        table.index(entries, slot)
    }
}
