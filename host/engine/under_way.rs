//! The transfers that were begun and not yet waited for.

use std::mem;
use std::time::Instant;

use avsg_device::memory::clear_state;

use super::order::TransferOrder;
use super::stats::Counters;
use crate::backend::Device;
use crate::call::HostCall;
use crate::plan::{Failure, Plan};
use crate::resources::{Config, Resources};
use crate::system::reserve;
use crate::{Error, Result, ensure};

/// The transfers of an engine. A table has at most one under way.
pub(super) struct UnderWay {
    /// The layers of each transfer; none at a free place.
    layers: Box<[Vec<usize>]>,
    /// `[tables]`, the place of the transfer that is under way, counted from 1; 0 if none is.
    tables: Box<[u8]>,
    states: usize,
}

impl UnderWay {
    pub fn new(config: &Config, layers: usize) -> Result<Self> {
        const WHAT: &str = "transfers under way";
        let mut all = reserve::with_capacity(WHAT, config.transfers())?;
        for _ in 0..config.transfers() {
            all.push(reserve::with_capacity(WHAT, layers)?);
        }
        let tables = reserve::filled(WHAT, config.tables(), 0)?.into();
        Ok(Self { layers: all.into(), tables, states: config.states })
    }

    /// Returns a place without a transfer.
    pub fn free_place(&self) -> Option<usize> {
        self.layers.iter().position(Vec::is_empty)
    }

    /// Returns the error of a call for which there is no free place.
    pub fn busy(&self) -> Error {
        Error::Busy { under_way: self.layers.len() }
    }

    /// Checks that no transfer of the tables of some states is under way, apart from that of `plan`.
    pub fn check(
        &self,
        indexer: usize,
        states: impl Iterator<Item = usize>,
        plan: Option<usize>,
    ) -> Result<()> {
        for state in states {
            let of = self.tables[indexer * self.states + state];
            ensure!(of == 0 || Some(usize::from(of) - 1) == plan, "state" is state, but
                "a transfer of its plan is under way, for indexer {indexer}";
                "wait for that plan first, and repeat the call");
        }
        Ok(())
    }

    fn set(&mut self, plan: &Plan, place: u8) {
        for (_, state) in plan.named() {
            self.tables[plan.indexer * self.states + state] = place;
        }
    }
}

/// The parts of an engine that a plan's transfer or discard changes.
pub(super) struct Parts<'a> {
    pub device: &'a mut dyn Device,
    pub resources: &'a Resources,
    pub order: &'a mut TransferOrder,
    pub counters: &'a mut Counters,
    pub under_way: &'a mut UnderWay,
}

impl Parts<'_> {
    /// Starts a checked transfer to at least one layer.
    pub fn begin(&mut self, call: &HostCall<'_>, plan: &mut Plan) -> Result<()> {
        let states = plan.named().map(|(_, state)| state);
        self.under_way.check(plan.indexer, states, None)?;
        let place = self.under_way.free_place().ok_or_else(|| self.under_way.busy())?;
        let layers = &mut self.under_way.layers[place];
        layers.extend_from_slice(call.layers);
        let start = Instant::now();
        // SAFETY: the resources are boxed and outlive the device. A plan that is dropped leaves its arrays to the
        // engine, and until the transfer has ended no call writes them, because each ends it first. The list of
        // layers is not written before that, either.
        let begun = unsafe {
            self.device.begin(self.resources, place, &HostCall { layers, ..*call }, plan)
        };
        self.note_times(start, begun.is_ok());
        if begun.is_err() {
            self.under_way.layers[place].clear();
            return begun;
        }
        plan.under_way = Some(place);
        // There are fewer places than a byte counts.
        self.under_way.set(plan, place as u8 + 1);
        Ok(())
    }

    /// Waits for the transfer of a plan, if one is under way.
    pub fn end(&mut self, plan: &mut Plan) -> Result<()> {
        let Some(place) = plan.under_way.take() else { return Ok(()) };
        self.under_way.set(plan, 0);
        let mut layers = mem::take(&mut self.under_way.layers[place]);
        let start = Instant::now();
        let done = self.device.wait(self.resources, place, &layers, plan);
        self.note_times(start, done.is_ok());
        if done.is_ok() {
            self.transferred(plan, &layers);
        }
        layers.clear();
        self.under_way.layers[place] = layers;
        done?;
        self.lose_failed(plan)
    }

    fn note_times(&mut self, start: Instant, succeeded: bool) {
        self.counters.live.read_wait.add_time(self.device.take_read_wait());
        if succeeded {
            self.counters.live.transfer_time.add_time(start.elapsed());
        }
    }

    /// Notes that layers hold the rows of a plan.
    pub fn transferred(&mut self, plan: &mut Plan, layers: &[usize]) {
        plan.held = true;
        let served = (0..plan.requests).filter(|&request| plan.missed(request));
        let rows: usize = served.map(|request| plan.places(request).len()).sum();
        let bytes = rows * self.resources.pool.format().bytes();
        self.counters.live.transfers.add(layers.len());
        self.counters.live.transferred_bytes.add(bytes * layers.len());
        layers.iter().for_each(|&layer| self.order.transferred(plan, layer));
    }

    /// Empties the tables of the requests that a transfer has left out, and returns an error if there are any.
    fn lose_failed(&mut self, plan: &Plan) -> Result<()> {
        let Some(Failure { layer, row, .. }) = plan.failures().next() else { return Ok(()) };
        for failure in plan.failures() {
            if self.order.lose(plan, failure) {
                let state = plan.state[failure.request] as usize;
                let config = &self.resources.config;
                let table = config.table(plan.indexer, state);
                self.counters.emptied(table..table + 1);
                self.device.edit_table(self.resources, table, &mut |words| {
                    clear_state(&config.params, words);
                    true
                })?;
            }
        }
        let remedy =
            "write the rows again that the plan's failures name, and plan these requests again";
        let (requests, place) = (plan.failures().count(), String::new());
        Err(Error::LostRows { requests, layer, row, place, remedy })
    }
}
