//! The events of the cluster, in the order of time.
//!
//! Clients send requests at a rate and wait while too many are under way. Prefill instances take
//! prompts in the order in which they were sent, and the end of a prefill makes the first token. The
//! rank with the fewest tokens gets the request, reserves memory for its whole context in the order of
//! arrival, and receives its KV rows. From the next step on the request decodes: each step makes one
//! token and those of its drafts that are accepted. All ranks step together, so the busiest one sets
//! the time of a step.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::{Cluster, Request, Setting, draw, nanoseconds};

/// The figures of a run, or their means over several runs. Times of requests are means.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Seconds from sending a request to its first token.
    pub ttft_s: f64,
    /// Seconds that a request waits for memory of a rank after its first token.
    pub wait_s: f64,
    /// Milliseconds per output token from the second token on, while the request decodes.
    pub tpot_ms: f64,
    /// The 99th percentile of the requests' milliseconds per output token.
    pub tpot_p99_ms: f64,
    /// Seconds from sending a request to its last token.
    pub e2e_s: f64,
    /// Output tokens per second from the start to the end of the run.
    pub output_tok_s: f64,
    /// Requests per second from the start to the end of the run.
    pub request_rate: f64,
    /// Requests that a rank runs, averaged over the time of the decode steps.
    pub running: f64,
}

/// Runs `seeds` runs, with the seeds 1, 2, .., and returns the means of their figures.
pub fn mean(cluster: &Cluster, setting: Setting, seeds: u64) -> Figures {
    let runs: Vec<_> = (1..=seeds).map(|seed| run(cluster, setting, seed)).collect();
    let mean =
        |figure: fn(&Figures) -> f64| runs.iter().map(figure).sum::<f64>() / runs.len() as f64;
    Figures {
        ttft_s: mean(|r| r.ttft_s),
        wait_s: mean(|r| r.wait_s),
        tpot_ms: mean(|r| r.tpot_ms),
        tpot_p99_ms: mean(|r| r.tpot_p99_ms),
        e2e_s: mean(|r| r.e2e_s),
        output_tok_s: mean(|r| r.output_tok_s),
        request_rate: mean(|r| r.request_rate),
        running: mean(|r| r.running),
    }
}

/// Something that happens; numbers are those of requests and ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The client wants to send a request.
    Arrival(usize),
    /// The prefill of a request has ended.
    Prefilled(usize),
    /// The KV rows of a request have arrived at a rank.
    Received { request: usize, rank: usize },
    /// A decode step has ended.
    Stepped,
}

/// The times of the parts of a request, in nanoseconds since the start of the run.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    sent: u64,
    /// The prefill ended, which makes the first token.
    first: u64,
    /// A rank reserved memory for the request.
    reserved: u64,
    /// The first decode step began.
    decode: u64,
    /// The last token was made.
    end: u64,
}

/// A data-parallel rank.
#[derive(Clone, Debug, Default)]
struct Rank {
    /// Requests that wait for memory, in the order of arrival.
    waiting: VecDeque<usize>,
    /// Requests whose KV rows have arrived since the last step began.
    received: Vec<usize>,
    /// Requests that take part in the current step.
    running: Vec<usize>,
    /// Tokens that memory is reserved for.
    reserved: usize,
    /// Tokens of all requests that the rank was given and that have not ended.
    assigned: usize,
}

/// The state of a run.
struct Run<'a> {
    cluster: &'a Cluster,
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
    ranks: Vec<Rank>,
    /// Whether a decode step is under way.
    stepping: bool,
    /// Seconds of all decode steps, and the same times the requests that ran in them.
    step_s: f64,
    request_s: f64,
}

/// Runs one run and returns its figures.
pub fn run(cluster: &Cluster, setting: Setting, seed: u64) -> Figures {
    let requests = draw(cluster, seed);
    let mut run = Run {
        cluster,
        setting,
        times: vec![Times::default(); requests.len()],
        made: vec![0; requests.len()],
        events: BinaryHeap::new(),
        scheduled: 0,
        at_client: VecDeque::new(),
        vacancies: cluster.concurrency,
        prompts: VecDeque::new(),
        idle_prefill: cluster.prefill_instances,
        ranks: vec![Rank::default(); cluster.ranks],
        stepping: false,
        step_s: 0.0,
        request_s: 0.0,
        requests,
    };
    for request in 0..run.requests.len() {
        run.at(run.requests[request].arrival, Event::Arrival(request));
    }
    while let Some(Reverse((now, _, event))) = run.events.pop() {
        run.handle(now, event);
    }
    run.figures()
}

impl Run<'_> {
    fn at(&mut self, time: u64, event: Event) {
        self.scheduled += 1;
        self.events.push(Reverse((time, self.scheduled, event)));
    }

    fn handle(&mut self, now: u64, event: Event) {
        match event {
            Event::Arrival(request) => self.at_client.push_back(request),
            Event::Prefilled(request) => self.prefilled(now, request),
            Event::Received { request, rank } => {
                self.ranks[rank].received.push(request);
                self.begin_step(now);
            }
            Event::Stepped => {
                self.end_step(now);
                self.begin_step(now);
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
            let seconds = self.requests[request].prompt as f64 * self.cluster.prefill_ms / 1e6;
            self.at(now + nanoseconds(seconds), Event::Prefilled(request));
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
        let least = (0..self.ranks.len()).min_by_key(|&rank| self.ranks[rank].assigned);
        if let Some(rank) = least {
            self.ranks[rank].assigned += self.context(request);
            self.ranks[rank].waiting.push_back(request);
            self.reserve(now, rank);
        }
    }

    /// Returns the tokens that a rank reserves memory for.
    fn context(&self, request: usize) -> usize {
        self.requests[request].prompt + self.requests[request].output
    }

    /// Reserves memory for the requests that wait at a rank, as far as it goes.
    fn reserve(&mut self, now: u64, rank: usize) {
        while let Some(&request) = self.ranks[rank].waiting.front() {
            let reserved = self.ranks[rank].reserved + self.context(request);
            if reserved > self.cluster.capacity(self.setting) {
                return;
            }
            self.ranks[rank].reserved = reserved;
            self.ranks[rank].waiting.pop_front();
            self.times[request].reserved = now;
            let arrival = now + nanoseconds(self.cluster.handoff_s);
            self.at(arrival, Event::Received { request, rank });
        }
    }

    /// Begins a step unless one is under way or no request runs.
    fn begin_step(&mut self, now: u64) {
        if self.stepping {
            return;
        }
        for rank in &mut self.ranks {
            rank.received.iter().for_each(|&request| self.times[request].decode = now);
            rank.running.append(&mut rank.received);
        }
        let running = || self.ranks.iter().map(|rank| rank.running.len());
        let busiest = running().max().unwrap_or(0);
        if busiest == 0 {
            return;
        }
        self.stepping = true;
        let seconds = self.cluster.step_ms(self.setting, busiest) / 1e3;
        self.request_s += running().sum::<usize>() as f64 * seconds;
        self.step_s += seconds;
        self.at(now + nanoseconds(seconds), Event::Stepped);
    }

    /// Adds the tokens of a step to all requests that ran, and ends those that are complete.
    fn end_step(&mut self, now: u64) {
        self.stepping = false;
        for rank in 0..self.ranks.len() {
            for place in (0..self.ranks[rank].running.len()).rev() {
                let request = self.ranks[rank].running[place];
                self.made[request] += 1 + self.accepted(request);
                if self.made[request] >= self.requests[request].output {
                    self.times[request].end = now;
                    self.vacancies += 1;
                    let context = self.context(request);
                    let rank = &mut self.ranks[rank];
                    rank.running.swap_remove(place);
                    rank.reserved -= context;
                    rank.assigned -= context;
                }
            }
            self.reserve(now, rank);
        }
    }

    /// Draws how many drafts of a step are accepted.
    fn accepted(&mut self, request: usize) -> usize {
        let Cluster { tokens, acceptance, .. } = *self.cluster;
        let drafts = &mut self.requests[request].drafts;
        // `unit` is in (0, 1], so an acceptance of 0 accepts none, and an acceptance of 1 accepts all.
        (1..tokens).take_while(|_| drafts.unit() <= acceptance).count()
    }

    fn figures(&self) -> Figures {
        let n = self.times.len() as f64;
        let mean =
            |ns: fn(&Times) -> u64| self.times.iter().map(|t| ns(t) as f64 / 1e9).sum::<f64>() / n;
        let decoded = self.times.iter().zip(&self.requests).filter(|(_, r)| r.output > 1);
        let mut tpot: Vec<f64> =
            decoded.map(|(t, r)| (t.end - t.decode) as f64 / 1e6 / (r.output - 1) as f64).collect();
        tpot.sort_unstable_by(f64::total_cmp);
        let end = self.times.iter().map(|t| t.end).max().unwrap_or(0) as f64 / 1e9;
        let output = self.requests.iter().map(|r| r.output).sum::<usize>() as f64;
        Figures {
            ttft_s: mean(|t| t.first - t.sent),
            wait_s: mean(|t| t.reserved - t.first),
            tpot_ms: tpot.iter().sum::<f64>() / tpot.len().max(1) as f64,
            tpot_p99_ms: tpot.get(tpot.len() * 99 / 100).copied().unwrap_or_default(),
            e2e_s: mean(|t| t.end - t.sent),
            output_tok_s: output / end,
            request_rate: n / end,
            running: self.request_s / self.step_s.max(1e-9) / self.ranks.len() as f64,
        }
    }
}
