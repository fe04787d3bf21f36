//! The events of a serving deployment, in the order of time.
//!
//! Clients send requests at a rate and wait while too many are under way. Prefill instances take
//! prompts in the order in which they were sent, and the end of a prefill makes the first token. The
//! rank with the fewest tokens gets the request, reserves memory for its whole context in the order of
//! arrival, and receives its KV rows. From the next step on the request decodes: each step makes one
//! token and those of its drafts that are accepted. All ranks of a decode instance step together, so
//! the busiest rank sets the time of a step.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::decode::Instance;
use super::deployment::{Deployment, Load, Setting};
use super::outcome::{Occupancy, Outcome, Times};
use super::requests::{Request, draw, nanoseconds};

/// Something that happens; numbers are those of requests, instances and ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The client wants to send a request.
    Arrival(usize),
    /// The prefill of a request has ended.
    Prefilled(usize),
    /// The KV rows of a request have arrived at a rank.
    Received { request: usize, instance: usize, rank: usize },
    /// A decode step of an instance has ended.
    Stepped(usize),
}

/// Runs `seeds` runs, with the seeds 1, 2, .., and returns the mean of their figures.
pub fn mean(deployment: &Deployment, load: &Load, setting: Setting, seeds: u64) -> Outcome {
    let runs: Vec<_> = (1..=seeds).map(|seed| run(deployment, load, setting, seed)).collect();
    Outcome::mean(&runs)
}

/// Runs one run and returns its figures. The deployment and the load must have been checked.
pub fn run(deployment: &Deployment, load: &Load, setting: Setting, seed: u64) -> Outcome {
    let requests = draw(load, seed);
    let mut run = Run {
        deployment,
        setting,
        times: vec![Times::default(); requests.len()],
        made: vec![0; requests.len()],
        events: BinaryHeap::new(),
        scheduled: 0,
        at_client: VecDeque::new(),
        vacancies: load.concurrency,
        prompts: VecDeque::new(),
        idle_prefill: deployment.prefill_instances,
        decode: vec![Instance::new(deployment.ranks); deployment.decode_instances],
        occupancy: Occupancy::default(),
        requests,
    };
    for request in 0..run.requests.len() {
        run.at(run.requests[request].arrival, Event::Arrival(request));
    }
    while let Some(Reverse((now, _, event))) = run.events.pop() {
        run.handle(now, event);
    }
    let outputs: Vec<usize> = run.requests.iter().map(|request| request.output).collect();
    let ranks = deployment.ranks * deployment.decode_instances;
    Outcome::of(&run.times, &outputs, &run.occupancy, ranks)
}

/// The state of a run.
struct Run<'a> {
    deployment: &'a Deployment,
    setting: Setting,
    requests: Vec<Request>,
    times: Vec<Times>,
    /// Output tokens that each request has.
    made: Vec<usize>,
    /// (time, number, event): events of the same time happen in the order in which they were scheduled.
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    scheduled: u64,
    /// Requests that wait until fewer are under way.
    at_client: VecDeque<usize>,
    /// Requests that clients may still send.
    vacancies: usize,
    /// Requests that wait for a prefill instance.
    prompts: VecDeque<usize>,
    idle_prefill: usize,
    decode: Vec<Instance>,
    occupancy: Occupancy,
}

impl Run<'_> {
    /// Schedules an event a number of seconds after `now`.
    fn after(&mut self, now: u64, seconds: f64, event: Event) {
        self.at(now.saturating_add(nanoseconds(seconds)), event);
    }

    fn at(&mut self, time: u64, event: Event) {
        self.scheduled += 1;
        self.events.push(Reverse((time, self.scheduled, event)));
    }

    fn handle(&mut self, now: u64, event: Event) {
        match event {
            Event::Arrival(request) => self.at_client.push_back(request),
            Event::Prefilled(request) => self.prefilled(now, request),
            Event::Received { request, instance, rank } => {
                self.decode[instance].ranks[rank].receive(request);
                self.begin_step(now, instance);
            }
            Event::Stepped(instance) => {
                self.end_step(now, instance);
                self.begin_step(now, instance);
            }
        }
        self.send(now);
        self.prefill(now);
    }

    /// Sends requests while fewer than the allowed number are under way.
    fn send(&mut self, now: u64) {
        while self.vacancies > 0 {
            let Some(request) = self.at_client.pop_front() else { return };
            self.vacancies -= 1;
            self.times[request].sent = now;
            self.prompts.push_back(request);
        }
    }

    /// Gives prompts to idle prefill instances.
    fn prefill(&mut self, now: u64) {
        while self.idle_prefill > 0 {
            let Some(request) = self.prompts.pop_front() else { return };
            self.idle_prefill -= 1;
            let seconds = self.requests[request].prompt as f64 * self.deployment.prefill_ms / 1e6;
            self.after(now, seconds, Event::Prefilled(request));
        }
    }

    fn prefilled(&mut self, now: u64, request: usize) {
        self.idle_prefill += 1;
        self.made[request] = 1;
        self.times[request] =
            Times { first: now, reserved: now, decode: now, end: now, ..self.times[request] };
        if self.requests[request].output == 1 {
            self.vacancies += 1;
            return;
        }
        let places = self.decode.iter().enumerate().flat_map(|(instance, one)| {
            one.ranks.iter().enumerate().map(move |(rank, r)| (r.assigned(), instance, rank))
        });
        if let Some((_, instance, rank)) = places.min() {
            self.decode[instance].ranks[rank].give(request, self.requests[request].context());
            self.reserve(now, instance, rank);
        }
    }

    /// Reserves memory for the requests that wait at a rank, as far as it goes.
    fn reserve(&mut self, now: u64, instance: usize, rank: usize) {
        let (capacity, batch) = (self.deployment.capacity(self.setting), self.deployment.batch);
        let handoff = self.deployment.handoff_s;
        while let Some(request) = self.decode[instance].ranks[rank].reserve(capacity, batch) {
            self.times[request].reserved = now;
            self.after(now, handoff, Event::Received { request, instance, rank });
        }
    }

    /// Begins a step unless one is under way or no request runs.
    fn begin_step(&mut self, now: u64, instance: usize) {
        let one = &mut self.decode[instance];
        if one.stepping {
            return;
        }
        for request in one.ranks.iter_mut().flat_map(|rank| rank.admit()) {
            self.times[request].decode = now;
        }
        let busiest = one.busiest();
        if busiest == 0 {
            return;
        }
        one.stepping = true;
        let seconds = self.deployment.step_ms(self.setting, busiest) / 1e3;
        self.occupancy.request_s += one.running() as f64 * seconds;
        self.occupancy.step_s += seconds;
        self.occupancy.steps += 1;
        self.occupancy.peak = self.occupancy.peak.max(busiest);
        self.after(now, seconds, Event::Stepped(instance));
    }

    /// Adds the tokens of a step to all requests that ran, and ends those that are complete.
    fn end_step(&mut self, now: u64, instance: usize) {
        self.decode[instance].stepping = false;
        for rank in 0..self.deployment.ranks {
            for place in (0..self.decode[instance].ranks[rank].running.len()).rev() {
                let request = self.decode[instance].ranks[rank].running[place];
                self.made[request] += 1 + self.accepted(request);
                if self.made[request] >= self.requests[request].output {
                    self.times[request].end = now;
                    self.vacancies += 1;
                    let context = self.requests[request].context();
                    self.decode[instance].ranks[rank].end(place, context);
                }
            }
            self.reserve(now, instance, rank);
        }
    }

    /// Draws how many drafts of a step are accepted.
    fn accepted(&mut self, request: usize) -> usize {
        let Deployment { tokens, acceptance, .. } = *self.deployment;
        let drafts = &mut self.requests[request].drafts;
        // `unit` is in (0, 1], so an acceptance of 0 accepts none, and an acceptance of 1 accepts all.
        (1..tokens).take_while(|_| drafts.unit() <= acceptance).count()
    }
}
