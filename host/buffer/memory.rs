//! The memory of a device buffer, and how its bytes are read.

use super::caller::CallerBuffer;
use super::table::{BlockTable, StateEntries};
use crate::Result;
use crate::system::address::Address;
use crate::system::array::ProcessMemory;
use crate::system::reserve;

/// The way to memory of a device, which this process cannot read directly. It keeps memory of the engine
/// allocated.
pub(crate) trait SlotMemory: Send + Sync {
    /// Copies the bytes from a device address on to `into`.
    fn read(&self, from: u64, into: &mut [u8]) -> Result<()>;
}

pub(super) enum Memory {
    Process(ProcessMemory),
    /// Memory of a device, and its length in bytes.
    Device(Box<dyn SlotMemory>, usize),
    /// Memory of the caller, on a device if there is a way to it.
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
            Self::Device(memory, _) | Self::Caller(_, Some(memory)) => Some(memory.as_ref()),
            Self::Process(_) | Self::Caller(_, None) => None,
        }
    }

    /// Returns the caller's table.
    pub fn table(&self) -> Option<BlockTable> {
        self.caller().and_then(CallerBuffer::table)
    }

    /// Returns the entries of an existing state in the caller's table, if there is one.
    pub fn entries(&self, state: usize, slots: usize) -> Option<StateEntries> {
        self.table().map(|table| StateEntries { table, at: Address(table.of(state, slots)) })
    }

    /// Returns the blocks of an existing state. Entries of a table in device memory are copied, which
    /// allocates.
    pub fn state_blocks(&self, state: usize, slots: usize) -> Result<StateBlocks> {
        const WHAT: &str = "block table";
        let (mut entries, mut copy) = (self.entries(state, slots), Vec::new());
        if let (Some(StateEntries { table, at }), Some(device)) = (&mut entries, self.device()) {
            copy = reserve::filled(WHAT, table.entries(slots), 0)?;
            let mut bytes = reserve::filled(WHAT, 4 * copy.len(), 0)?;
            device.read(at.0.addr() as u64, &mut bytes)?;
            for (entry, bytes) in copy.iter_mut().zip(bytes.as_chunks::<4>().0) {
                *entry = i32::from_ne_bytes(*bytes);
            }
            *at = Address(copy.as_mut_ptr());
        }
        Ok(StateBlocks { entries, _copy: copy })
    }
}

/// The blocks of one state.
pub(super) struct StateBlocks {
    /// The state's entries in the caller's table, if there is one. They are valid for as long as this value.
    pub entries: Option<StateEntries>,
    _copy: Vec<i32>,
}
