//! A table without an engine, for measurements.

use avsg_device::memory::{clear_state, learn, table_words};
use avsg_device::one_request::{StageOne, work_words};
use avsg_device::params::{Lifetime, NO_STABLE_LEN, Params};
use avsg_device::request::summary;

use super::machine::Machine;
use crate::system::mapping::{MIB2, Mapping};
use crate::system::reserve;
use crate::{Result, geometry};

const WHAT: &str = "standalone table";

/// One table with its own memory and no engine, for measurements of machines and of hit rates.
pub struct StandaloneTable {
    params: Params,
    memory: Mapping,
    slot: Vec<i32>,
    valid: Vec<i32>,
    miss: [Vec<i32>; 4],
    summary: [i32; summary::WORDS],
}

impl StandaloneTable {
    /// Allocates an empty table.
    ///
    /// # Errors
    /// If the geometry is invalid or too little memory is available.
    pub fn new(params: &Params) -> Result<Self> {
        let params = Params { page: 0, ..*params };
        geometry::check(&params)?;
        let selected = (params.k * params.tokens) as usize;
        // An engine's tables get the same kind of memory, with hugepages.
        let bytes = (4 * (table_words(&params) + work_words(&params))).next_multiple_of(MIB2);
        let column = || reserve::filled(WHAT, selected, 0);
        let mut table = Self {
            params,
            memory: Mapping::anonymous(WHAT, bytes)?,
            slot: reserve::filled(WHAT, selected, -1)?,
            valid: reserve::filled(WHAT, params.tokens as usize, 0)?,
            miss: [column()?, column()?, column()?, column()?],
            summary: [0; summary::WORDS],
        };
        clear_state(&params, Self::split(&mut table.memory, &params).0);
        Ok(table)
    }

    /// Returns the words of the table and of the working columns. It is no method of `&mut self`,
    /// because a step borrows the outputs at the same time.
    fn split<'m>(memory: &'m mut Mapping, params: &Params) -> (&'m mut [i32], &'m mut [i32]) {
        let table = table_words(params);
        let words = table + work_words(params);
        // SAFETY: `new` made the mapping at least `words` words long; it is zeroed, begins on a
        // page, and is borrowed mutably.
        unsafe { core::slice::from_raw_parts_mut(memory.ptr().cast(), words) }.split_at_mut(table)
    }

    /// Runs one step over `ids`, `[tokens, K]`, and returns the number of misses: [`Self::stage_one`],
    /// then [`Self::learn`].
    pub fn step_on(&mut self, machine: Machine, ids: &[i32], tokens: usize, stable: i32) -> usize {
        let misses = self.stage_one(machine, ids, tokens, stable);
        self.learn();
        misses
    }

    /// Learns from the last Stage One, if lifetimes are learned. Each Stage One needs one call.
    pub fn learn(&mut self) {
        if self.params.lifetime == Lifetime::Learned {
            learn(&self.params, Self::split(&mut self.memory, &self.params).0);
        }
    }

    /// Runs Stage One of a step over `ids`, `[tokens, K]`, and returns the number of misses. A `stable`
    /// of -1 turns invalidation off.
    pub fn stage_one(
        &mut self,
        machine: Machine,
        ids: &[i32],
        tokens: usize,
        stable: i32,
    ) -> usize {
        let k = self.params.k as usize;
        let params = self.params;
        let [a, b, c, d] = &mut self.miss;
        let (state, work) = Self::split(&mut self.memory, &params);
        machine.kernels.stage_one(StageOne {
            params: &params,
            state,
            work,
            tokens,
            k,
            generation: 0,
            stable: if stable < 0 { NO_STABLE_LEN } else { stable },
            limit: if stable < 0 { NO_STABLE_LEN } else { stable + tokens as i32 },
            rows: NO_STABLE_LEN as usize,
            ids,
            ids_stride: k,
            blocks: &[],
            slot: &mut self.slot,
            valid: &mut self.valid,
            miss: [a, b, c, d],
            summary: &mut self.summary,
        });
        self.summary[summary::TOTAL as usize] as usize
    }
}
