//! The operator's emitted kernels on the clocks of the shim.

use std::ptr::null_mut;

use anyhow::{Context, Result, anyhow};
use avsg::Error;
use avsg::device::memory::{clear_state, table_words};
use avsg::device::params::{ID_LIMIT, Params};
use avsg::device::request::record;
use avsg::device::rules::rules;
use avsg::device::tiling::{Launch, Segment, Tiling};
use avsg_cli::trace::Trace;
use avsg_linker::ascend::code_size::Calls;
use avsg_linker::ascend::kernels::{Abi, kernels};
use avsg_linker::ascend::ub::TooLarge;
use avsg_linker::ascend::{Failed, stage_one};
use avsg_sim::cycles::{Prices, Times};
use avsg_sim::shim::{self, Kind};

use super::code::{Size, with_fetches};
use super::phase::{means, with_marks};

/// A way to run Stage One.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// `avsg_step`: several cores probe for a request if there are enough of them, and refreshes that
    /// cannot change a victim run beside Stage Two.
    Step,
    /// `avsg_step` with one core per request.
    Unshared,
    /// `avsg_plan`: one core per request, and all refreshes before victims are chosen.
    Plan,
    /// `avsg_step` with a copy of each function for each of its calls.
    Copied,
}

/// A step of the trace, and the table before it.
struct Step {
    ids: Vec<i32>,
    /// Tokens with final KV before the step; -1 if not known.
    stable: i32,
    table: Vec<i32>,
}

/// The kernels of a geometry, and the steps on which they are timed.
pub struct Ours {
    params: Params,
    segments: Vec<usize>,
    step: shim::Kernels,
    plan: shim::Kernels,
    copied: shim::Kernels,
    /// The sizes of `avsg_step`: as it is, and with a copy of each function for each of its calls.
    pub sizes: [Size; 2],
    steps: Vec<Step>,
    /// Bytes of the unified buffer that Stage One uses.
    pub ub_bytes: u32,
    /// Hits per step.
    pub hits: f64,
    /// Misses per step.
    pub misses: f64,
}

impl Ours {
    /// Compiles the kernels, and runs all steps of the trace, which have one token each. All but the first
    /// `warm` steps are timed later.
    ///
    /// # Errors
    /// If the table does not fit the unified buffer, or there is no C++ compiler.
    pub fn new(params: &Params, trace: &Trace, warm: usize, segments: &[usize]) -> Result<Self> {
        let text = match stage_one(params) {
            Err(Failed::TooLarge(TooLarge { needs, limit })) => {
                let limit = format!("a vector core of a 910B has {limit} bytes");
                let remedy = "choose fewer slots, less spread or a smaller K";
                let value = format!("{needs} bytes");
                return Err(Error::invalid("unified buffer", value, limit, remedy).into());
            }
            text => text.context("lowering Stage One for a 910B")?,
        };
        let all = kernels(params, &text, Abi::Direct)?;
        let compile = |name: &str, calls: Calls| {
            let kernel = all.kernels.iter().find(|kernel| kernel.name == name);
            let text = &kernel.with_context(|| format!("{name} is no kernel"))?.text;
            let (text, size) = with_fetches(&all.whole(text), name, calls);
            let text = format!("#define AVSG_SHIM_CYCLES\n{}", with_marks(&text));
            shim::Kernels::compile(&text, &[]).map_err(|e| anyhow!(e)).map(|kernel| (kernel, size))
        };
        let (step, step_size) = compile("avsg_step", Calls::Marked)?;
        let (copied, copied_size) = compile("avsg_step", Calls::Copied)?;
        let mut ours = Self {
            params: *params,
            segments: segments.to_vec(),
            step,
            plan: compile("avsg_plan", Calls::Marked)?.0,
            copied,
            sizes: [step_size, copied_size],
            steps: Vec::new(),
            ub_bytes: text.ub_bytes,
            hits: 0.0,
            misses: 0.0,
        };
        let mut table = vec![0; table_words(params)];
        clear_state(params, &mut table);
        let counted = trace.steps.saturating_sub(warm).max(1) as f64;
        for step in 0..trace.steps {
            let stable = trace.stable.as_ref().map_or(-1, |stable| stable[step]);
            let step_of = Step { ids: trace.row(step, 0).to_vec(), stable, table };
            let after = ours.run(&step_of, Variant::Plan, 1, 1, &[])?;
            table = after.table;
            if step >= warm {
                ours.hits += f64::from(after.valid - after.misses) / counted;
                ours.misses += f64::from(after.misses) / counted;
                ours.steps.push(step_of);
            }
        }
        Ok(ours)
    }

    /// Returns the number of timed steps.
    pub fn steps(&self) -> usize {
        self.steps.len()
    }

    /// Returns the mean times of a step under each of the prices. All requests select the same ids.
    ///
    /// # Errors
    /// If a kernel breaks a rule of the shim.
    pub fn times(
        &self,
        variant: Variant,
        requests: usize,
        cores: u32,
        prices: &[Prices],
    ) -> Result<Vec<Times>> {
        means(&self.steps, |step| Ok(self.run(step, variant, requests, cores, prices)?.times))
    }

    fn run(
        &self,
        step: &Step,
        variant: Variant,
        requests: usize,
        cores: u32,
        prices: &[Prices],
    ) -> Result<Ran> {
        let (p, k) = (&self.params, step.ids.len());
        let each = |value: i32| vec![value; requests];
        let mut ids = step.ids.repeat(requests);
        // The host blocks are in order, because the cost of a lookup does not depend on its result.
        let largest = step.ids.iter().copied().max().unwrap_or(0);
        let entries = if p.page == 0 { 0 } else { largest / p.page.cast_signed() + 1 };
        let blocks: Vec<i32> = (0..entries).collect();
        let mut blocks = if blocks.is_empty() { vec![0] } else { blocks.repeat(requests) };
        let mut tables = step.table.repeat(requests);
        let mut rule = rules(&p.lifetime).unwrap_or([0; 256]);
        let limit = if step.stable < 0 { ID_LIMIT } else { step.stable + 1 };
        let (mut stable, mut generation) = (each(step.stable), each(1));
        let (mut seq, mut state) = (each(limit), (0..requests as i32).collect::<Vec<_>>());
        let mut cu_q: Vec<i32> = (0..=requests as i32).collect();
        // Every host row and every fresh row is the same one: the time of a copy does not depend on its
        // address.
        let mut rows: Vec<Vec<u8>> = self.segments.iter().map(|&bytes| vec![0; bytes]).collect();
        let mut fresh = rows.clone();
        fresh.resize(2, Vec::new());
        let mut chunks: Vec<u64> = rows.iter().map(|row| row.as_ptr() as u64).collect();
        let slots = p.slots as usize * requests;
        let in_step = usize::from(variant != Variant::Plan);
        let bytes = self.segments.iter().map(|bytes| bytes * slots * in_step);
        let mut kv: Vec<Vec<u8>> = bytes.chain([0]).take(2).map(|bytes| vec![0; bytes]).collect();
        let segment = |&bytes: &usize| Segment {
            bytes: bytes as u32,
            host_stride: 0,
            host_gap: 0,
            kv_stride: bytes as u32,
            kv_gap: 0,
            fresh_stride: 0,
            chunk_shift: 30,
            chunks: 1,
        };
        let segments: Vec<_> = self.segments.iter().map(segment).collect();
        let launch = Launch {
            requests: requests as u32,
            rows: requests as u32,
            k: k as u32,
            ids_stride: k as u32,
            block_stride: entries.cast_unsigned(),
            pool_units: if p.page == 0 { ID_LIMIT } else { entries }.cast_unsigned(),
            states: requests as u32,
            cores,
            copy_cores: cores,
            host_block_shift: 0,
            kv_block_shift: 0,
            kv_blocks: 0,
            slot_base: None,
            segments: &segments,
        };
        let mut tiling = Tiling::new(p, &launch).map_err(|fault| anyhow!("{fault:?}"))?;
        if variant == Variant::Unshared {
            tiling.sharers = 1;
        }
        let mut tiling = tiling.words();
        let lists = p.k as usize * requests;
        let [mut slot, mut pos, mut id, mut victim, mut row] = [(); 5].map(|()| vec![-1; lists]);
        let (mut valid, mut records) = (each(0), vec![0; record::WORDS * requests]);
        let (name, kernels) = match variant {
            Variant::Plan => ("avsg_plan", &self.plan),
            Variant::Copied => ("avsg_step", &self.copied),
            _ => ("avsg_step", &self.step),
        };
        let mut launch = shim::Launch::new(name)
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
            .device(&mut rule);
        if variant == Variant::Plan {
            launch = launch.raw(null_mut());
        } else {
            launch = launch.device(&mut chunks);
            launch = kv.iter_mut().fold(launch, |launch, kv| launch.device(kv)).raw(null_mut());
            launch = fresh.iter_mut().fold(launch, |launch, row| launch.device(row));
        }
        let times = rows
            .iter_mut()
            .fold(launch, |launch, row| launch.region(row, Kind::Host))
            .device(&mut slot)
            .device(&mut valid)
            .device(&mut pos)
            .device(&mut id)
            .device(&mut victim)
            .device(&mut row)
            .device(&mut records)
            .raw(null_mut())
            .device(&mut tiling)
            .run_timed(kernels, prices)
            .map_err(|e| anyhow!(e.text))?;
        tables.truncate(table_words(p));
        Ok(Ran { times, table: tables, misses: records[record::TOTAL as usize], valid: valid[0] })
    }
}

/// The result of a launch: its times, and the first request's table, misses and valid ids.
struct Ran {
    times: Vec<Times>,
    table: Vec<i32>,
    misses: i32,
    valid: i32,
}
