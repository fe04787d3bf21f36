//! The emitted `avsg_step` on the clocks of the shim.

use anyhow::{Context, Result, anyhow};
use avsg::Error;
use avsg::device::memory::{clear_state, table_words};
use avsg::device::params::{ID_LIMIT, Params};
use avsg::device::request::record;
use avsg::device::rules::rules;
use avsg::device::tiling::{Launch, Segment, Tiling};
use avsg_cli::trace::Trace;
use avsg_linker::ascend::kernels::{Abi, kernels};
use avsg_linker::ascend::ub::TooLarge;
use avsg_linker::ascend::{Failed, stage_one};
use avsg_sim::cycles::Cycles;
use avsg_sim::shim::{self, Kernels, Kind};

use super::phase::{means, with_marks};
use super::prices::{PRICES, SOC};

/// Bytes of a row.
const ROW: usize = 1152;

/// The kernel of a geometry, and the steps on which it is timed: the ids of each, and the table before it.
pub struct Ours {
    params: Params,
    kernel: Kernels,
    steps: Vec<(Vec<i32>, Vec<i32>)>,
    /// Misses per step.
    pub misses: f64,
}

/// The result of a launch: its times, and the first request's table and misses.
struct Ran {
    cycles: Cycles,
    table: Vec<i32>,
    misses: i32,
}

impl Ours {
    /// Compiles the kernel, and runs all steps of the trace, which have one token each. All but the first
    /// `warm` steps are timed later.
    ///
    /// # Errors
    /// If the table does not fit the unified buffer, or there is no C++ compiler.
    pub fn new(params: &Params, trace: &Trace, warm: usize) -> Result<Self> {
        let text = match stage_one(params) {
            Err(Failed::TooLarge(TooLarge { needs, limit })) => {
                let limit = format!("a vector core of a 910B has {limit} bytes");
                let remedy = "choose fewer slots or a smaller K";
                let value = format!("{needs} bytes");
                return Err(Error::invalid("unified buffer", value, limit, remedy).into());
            }
            text => text.context("lowering Stage One for a 910B")?,
        };
        let all = kernels(params, &text, Abi::Direct)?;
        let step = all.kernels.iter().find(|kernel| kernel.name == "avsg_step");
        let text = with_marks(&all.whole(&step.context("there is no avsg_step")?.text));
        let kernel = Kernels::compile(&text, &[]).map_err(|e| anyhow!(e))?;
        let mut ours = Self { params: *params, kernel, steps: Vec::new(), misses: 0.0 };
        let mut table = vec![0; table_words(params)];
        clear_state(params, &mut table);
        for step in 0..trace.steps {
            let ids = trace.row(step, 0).to_vec();
            let after = ours.run(&ids, &table, 1, 1)?;
            if step >= warm {
                ours.misses += f64::from(after.misses) / (trace.steps - warm) as f64;
                ours.steps.push((ids, table));
            }
            table = after.table;
        }
        Ok(ours)
    }

    /// Returns the mean microseconds of each phase of a step. All requests select the same ids.
    ///
    /// # Errors
    /// If the kernel breaks a rule of the shim.
    pub fn phases(&self, requests: usize) -> Result<[f64; 16]> {
        means(&self.steps, |(ids, table)| Ok(self.run(ids, table, requests, SOC.cores)?.cycles))
    }

    fn run(&self, ids: &[i32], table: &[i32], requests: usize, cores: u32) -> Result<Ran> {
        let p = &self.params;
        let each = |value: i32| vec![value; requests];
        let (mut ids, mut tables) = (ids.repeat(requests), table.repeat(requests));
        let (mut generation, mut stable, mut seq) = (each(1), each(-1), each(ID_LIMIT));
        let mut state: Vec<i32> = (0..requests as i32).collect();
        let mut cu_q: Vec<i32> = (0..=requests as i32).collect();
        let mut rule = rules(&p.lifetime).unwrap_or([0; 256]);
        // Every host row is the same one: the time of a copy does not depend on its address.
        let (mut row, mut fresh) = (vec![0u8; ROW], vec![0u8; ROW]);
        let mut chunks = vec![row.as_ptr() as u64];
        let mut kv = vec![0u8; ROW * p.slots as usize * requests];
        let segment = Segment {
            bytes: ROW as u32,
            host_stride: 0,
            host_gap: 0,
            kv_stride: ROW as u32,
            kv_gap: 0,
            fresh_stride: 0,
            chunk_shift: 30,
            chunks: 1,
        };
        let launch = Launch {
            requests: requests as u32,
            rows: requests as u32,
            k: p.k,
            ids_stride: p.k,
            block_stride: 0,
            pool_units: ID_LIMIT.cast_unsigned(),
            states: requests as u32,
            cores,
            copy_cores: cores,
            host_block_shift: 0,
            kv_block_shift: 0,
            kv_blocks: 0,
            slot_base: None,
            segments: &[segment],
        };
        let tiling = Tiling::new(p, &launch).map_err(|fault| anyhow!("{fault:?}"))?;
        let mut tiling = tiling.words();
        let lists = p.k as usize * requests;
        let [mut slot, mut pos, mut id, mut victim, mut line] = [(); 5].map(|()| vec![-1; lists]);
        let (mut valid, mut records) = (each(0), vec![0; record::WORDS * requests]);
        let [mut blocks, mut no_kv, mut no_fresh] = [(); 3].map(|()| vec![0]);
        let cycles = shim::Launch::new("avsg_step")
            .blocks(cores)
            .cores(cores)
            .device(&mut ids)
            .device(&mut cu_q)
            .device(&mut state)
            .device(&mut generation)
            .device(&mut stable)
            .device(&mut seq)
            .device(&mut blocks)
            .device(&mut tables)
            .device(&mut rule)
            .device(&mut chunks)
            .device(&mut kv)
            .device(&mut no_kv)
            .raw(std::ptr::null_mut())
            .device(&mut fresh)
            .device(&mut no_fresh)
            .region(&mut row, Kind::Host)
            .device(&mut slot)
            .device(&mut valid)
            .device(&mut pos)
            .device(&mut id)
            .device(&mut victim)
            .device(&mut line)
            .device(&mut records)
            .raw(std::ptr::null_mut())
            .device(&mut tiling)
            .run_timed(&self.kernel, PRICES)
            .map_err(|e| anyhow!(e.text))?;
        tables.truncate(table_words(p));
        Ok(Ran { cycles, table: tables, misses: records[record::TOTAL as usize] })
    }
}
