//! The steps that are measured: those of AVSG and of the comparator, on the same memory.

use anyhow::{Result, anyhow};
use avsg::device::memory::{clear_state, table_words};
use avsg::device::params::Params;
use avsg::device::state::header;
use avsg::device::tiling::{self, Segment, Tiling};
use serde::Serialize;

use super::device::{Function, Launch, Module};
use super::memory::{Memory, bytes};
use super::sizes::Sizes;
use super::texts::comparator_bytes;

/// A kernel that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kernel {
    /// `avsg_step`: Stage One and the copies of all misses.
    Step,
    /// `avsg_plan`: Stage One alone.
    Plan,
    /// The batch LRU that AVSG is compared with, with its copies.
    Comparator,
}

impl Kernel {
    /// Returns the kernel of a module.
    ///
    /// # Errors
    /// If the module does not have it.
    pub fn find<'m>(
        self,
        module: &'m Module<'_>,
        p: &Params,
        threads: u32,
        shared_bytes: u32,
    ) -> Result<Function<'m>> {
        match self {
            Self::Step => module.function("avsg_step", shared_bytes),
            Self::Plan => module.function("avsg_plan", shared_bytes),
            Self::Comparator => module.function("avsg_comparator", comparator_bytes(p, threads)),
        }
    }

    /// Returns whether it copies rows.
    pub fn copies(self) -> bool {
        self != Self::Plan
    }

    /// Returns the bytes of the table of a request.
    pub fn table_bytes(self, p: &Params) -> usize {
        match self {
            // The id of each slot, and the slots in their order.
            Self::Comparator => p.slots as usize * 6,
            _ => table_words(p) * 4,
        }
    }

    /// Returns the bytes from the ids of the slots of a request to those of the next one, and where the first ones
    /// begin.
    pub fn ids_of_slots(self, p: &Params) -> (usize, usize) {
        match self {
            Self::Comparator => (p.slots as usize * 4, 0),
            _ => (table_words(p) * 4, header::WORDS * 4),
        }
    }

    /// Returns the tables of a batch before its first step.
    pub fn empty_tables(self, p: &Params, requests: usize) -> Vec<u8> {
        if self == Self::Comparator {
            // The ids of all slots, and then the orders of all requests.
            let mut all = bytes(&vec![-1; requests * p.slots as usize]);
            let order = (0..p.slots as i16).flat_map(i16::to_le_bytes);
            all.extend(order.collect::<Vec<_>>().repeat(requests));
            return all;
        }
        let mut table = vec![0; table_words(p)];
        clear_state(p, &mut table);
        bytes(&table).repeat(requests)
    }
}

/// A kernel on the memory of a batch.
pub struct Step<'m> {
    pub kernel: Kernel,
    pub function: &'m Function<'m>,
    pub memory: &'m Memory<'m>,
    pub sizes: &'m Sizes,
    pub p: Params,
    pub row_bytes: u32,
    pub requests: u32,
}

impl Step<'_> {
    /// Returns the launch for the first `k` ids of each request, of which the comparator needs K.
    pub fn launch(&self, k: u32) -> Result<Launch<'_>> {
        let m = self.memory;
        let tables = m.tables.address();
        let [position, id, slot, row] = m.misses.each_ref().map(|list| list.address());
        let batch = [&m.ids, &m.first_row, &m.state, &m.generation, &m.stable, &m.length];
        let batch = batch.map(|array| array.address());
        let outputs =
            [m.out.address(), m.valid.address(), position, id, slot, row, m.record.address()];
        let slots = m.slots.address();
        let pointers = match self.kernel {
            // No block table, no second segment, no table of slots, and no fresh row.
            Kernel::Step => {
                let rows = [0, tables, m.chunks.address(), slots, 0, 0, slots, 0];
                [&batch[..], &rows, &outputs].concat()
            }
            Kernel::Plan => [&batch[..], &[0, tables, 0], &outputs].concat(),
            Kernel::Comparator => {
                let order = tables + u64::from(self.requests) * u64::from(self.p.slots) * 4;
                let (host_row, device_row) = (m.host_row.address(), m.device_row.address());
                let (pool, out, requests) =
                    (m.pool.address(), m.out.address(), m.requests.address());
                vec![batch[0], tables, order, host_row, device_row, pool, slots, out, requests]
            }
        };
        let scalars = match self.kernel {
            Kernel::Comparator => vec![self.row_bytes as i32],
            _ => self.tiling(k)?.words().to_vec(),
        };
        let (function, blocks, threads) = (self.function, self.requests, self.sizes.threads);
        Ok(Launch { kernel: function, blocks, threads, pointers, scalars })
    }

    /// Returns the launch scalars of a kernel of AVSG.
    fn tiling(&self, k: u32) -> Result<Tiling> {
        let segment = Segment {
            bytes: self.row_bytes,
            host_stride: self.row_bytes,
            host_gap: 0,
            kv_stride: self.row_bytes,
            kv_gap: 0,
            fresh_stride: self.row_bytes,
            chunk_shift: self.sizes.pool_rows.ilog2(),
            chunks: 1,
        };
        let requests = self.requests;
        let launch = tiling::Launch {
            requests,
            rows: requests,
            k,
            ids_stride: self.p.k,
            block_stride: 0,
            pool_units: self.sizes.pool_rows,
            states: requests,
            cores: requests,
            copy_cores: requests,
            host_block_shift: 0,
            kv_block_shift: 0,
            kv_blocks: 0,
            slot_base: None,
            segments: &[segment],
        };
        Tiling::new(&self.p, &launch).map_err(|fault| anyhow!("{fault:?} of {launch:?}"))
    }
}
