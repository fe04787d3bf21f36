//! Slots in memory of the caller, in blocks whose table names them in reverse order, with indices
//! among the slots of all states: the form in which a serving engine owns them.

use anyhow::Result;
use avsg::ascend::acl::DeviceMemory;
use avsg::buffer::CallerBuffer;
use avsg::engine::Config;
use avsg::rows::Strides;

use super::harness::{Harness, ROW};

const BLOCK: usize = 64;
const BASE: i32 = 1000;

/// The slots and the table of an engine on the device, and those of one on the CPU.
pub struct Placed {
    device: [DeviceMemory; 2],
    cpu: (Vec<u8>, Vec<i32>),
}

impl Placed {
    /// Allocates zeroed slots for `states` states, for one layer.
    pub fn new(harness: &Harness, states: usize) -> Result<Self> {
        let slots = states * harness.params.slots as usize;
        let entries: Vec<i32> = (0..(slots / BLOCK) as i32).rev().collect();
        let bytes: Vec<u8> = entries.iter().flat_map(|entry| entry.to_ne_bytes()).collect();
        let table = DeviceMemory::copied(&harness.context, &bytes)?;
        let memory = DeviceMemory::zeroed(&harness.context, slots * ROW)?;
        Ok(Self { device: [memory, table], cpu: (vec![0; slots * ROW], entries) })
    }

    /// Returns the configuration of an engine that uses these slots, which must outlive it.
    pub fn configure(&mut self, config: Config, on_device: bool) -> Result<Config> {
        let (slots, entries) = &mut self.cpu;
        let [memory, table] = &self.device;
        let (base, table) = match on_device {
            true => (memory.address() as *mut u8, table.address() as *const i32),
            false => (slots.as_mut_ptr(), entries.as_ptr()),
        };
        let strides = Strides { block_rows: BLOCK, block: BLOCK * ROW, row: ROW };
        // SAFETY: both allocations have room for every slot and entry, are initialised and not written
        // by this program, and outlive the engine. No two entries are equal.
        let buffer = unsafe {
            let buffer = CallerBuffer::new(&[base], &[strides])?;
            buffer.with_block_table(table, entries.len(), entries.len())
        };
        Ok(Config { buffer: Some(buffer), slot_base: Some(BASE), ..config })
    }
}
