//! Traces and workloads by the kernels that are shipped, on the simulated device and on the CPU in
//! lockstep: on 1 to 40 cores, as one launch and as two, by host arrays, in a stream, captured. After
//! every step slots, miss lists, counts, tables, slots' bytes and the pool are the same.

use std::sync::Arc;

use avsg::ascend::acl::owned::{Context, Stream};
use avsg::ascend::simulated;
use avsg_cli::trace::Trace;
use avsg_sim::{Options, Session};
use avsg_testkit::tier;

use crate::lockstep::{Form, Pair};
use crate::random::Random;
use crate::traced::Traced;
use crate::{random, stand, traced};

/// How a step comes to the device.
#[derive(Clone, Copy, Debug)]
enum Way {
    Host,
    Stream,
    Captured,
}

const WAYS: [Way; 3] = [Way::Host, Way::Stream, Way::Captured];

/// A workload in lockstep.
trait Lockstep {
    fn pair(&mut self) -> &mut Pair;
    /// Brings the next step to the device.
    fn next(&mut self);
    /// Has the last word on it.
    fn check(&mut self);
}

impl Lockstep for Random {
    fn pair(&mut self) -> &mut Pair {
        &mut self.pair
    }
    fn next(&mut self) {
        self.next();
    }
    fn check(&mut self) {
        self.check();
    }
}

impl Lockstep for Traced<'_> {
    fn pair(&mut self) -> &mut Pair {
        &mut self.pair
    }
    fn next(&mut self) {
        self.next();
    }
    fn check(&mut self) {
        self.expect_exact();
    }
}

/// Lives `steps` steps.
fn run(workload: &mut impl Lockstep, way: Way, steps: usize, context: &Arc<Context>) {
    let stream = Stream::new(context).unwrap();
    let graph = match way {
        Way::Captured => Some(stream.capture(|| workload.pair().enqueue(stream.raw())).unwrap()),
        _ => None,
    };
    for _ in 0..steps {
        workload.next();
        let pair = workload.pair();
        match (way, &graph) {
            (Way::Host, _) => pair.step_by_host(),
            (_, graph) => {
                match graph {
                    Some(graph) => stream.replay(graph).unwrap(),
                    None => pair.enqueue(stream.raw()).unwrap(),
                }
                stream.synchronize(60_000).unwrap();
                pair.compare();
            }
        }
        workload.check();
    }
}

/// Numbers of cores with each launch and way, numbered: as many as this run takes.
fn cases(what: &str, cores: &[usize]) -> Vec<(usize, usize, bool, Way)> {
    let launches = cores.iter().flat_map(|&cores| [false, true].map(|one| (cores, one)));
    let all = launches.flat_map(|(cores, one)| WAYS.map(|way| (cores, one, way))).enumerate();
    let all = all.map(|(case, (cores, one, way))| (case, cores, one, way)).collect();
    tier::cases(what, all, 0, |(_, cores, one, way)| {
        vec![cores.to_string(), one.to_string(), format!("{way:?}")]
    })
}

fn sample() -> Trace {
    Trace::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/nomicon-4k-k256.npz")).unwrap()
}

/// Every step of the committed trace, in pieces, each piece another way.
#[test]
fn the_trace_is_the_same_on_any_cores_by_any_launch() {
    if !stand::compiler() {
        return;
    }
    let trace = sample();
    for (case, cores, one_launch, way) in cases("trace", &[1, 2, 8, 20, 40]) {
        let session = Session::new(Options { seed: case as u64, ..Options::default() });
        let context = simulated::context().unwrap();
        let form = Form { one_launch, ..traced::form(&trace, case * 2, 1024, cores) };
        let pair = Pair::new(&form, &context, None);
        let mut workload = Traced::new(&trace, pair, case * 2);
        run(&mut workload, way, 3, &context);
        assert!(workload.pair.compared == 3 * 2 * 1024, "{cores} {one_launch} {way:?}");
        drop((workload, context));
        assert_eq!(session.leaks(), Vec::<String>::new());
    }
}

/// Random workloads, with block tables, two segments and two layers, where cores outnumber requests.
#[test]
fn lives_are_the_same_on_many_cores() {
    if !stand::compiler() {
        return;
    }
    for (_, cores, one_launch, way) in cases("workloads", &[8, 40]) {
        let session = Session::new(Options { seed: 5, ..Options::default() });
        let context = simulated::context().unwrap();
        let form = random::form(cores, one_launch);
        let mut workload = Random::new(&form, &context, None, 31 + u64::from(cores == 40));
        run(&mut workload, way, 8, &context);
        drop((workload, context));
        assert_eq!(session.leaks(), Vec::<String>::new());
    }
}

/// Four threads, each with an engine, a stream and a captured step of its own, over one pool that all
/// of them write.
#[test]
fn four_threads_replay_over_one_pool() {
    if !stand::compiler() {
        return;
    }
    let session = Session::new(Options { seed: 7, ..Options::default() });
    let trace = sample();
    let context = simulated::context().unwrap();
    let form = traced::form(&trace, 0, 1024, 8);
    let pool = form.pool(&context);
    std::thread::scope(|scope| {
        for (thread, way) in
            [Way::Captured, Way::Stream, Way::Captured, Way::Host].into_iter().enumerate()
        {
            let form = Form { one_launch: thread < 2, ..form.clone() };
            let (trace, context, pool) = (&trace, &context, pool.clone());
            scope.spawn(move || {
                let pair = Pair::on(&form, context, None, pool);
                let mut workload = Traced::new(trace, pair, 0);
                run(&mut workload, way, 10, context);
                assert!(workload.pair.compared == 10 * 2 * 1024, "thread {thread}");
            });
        }
    });
    drop((pool, context));
    assert_eq!(session.leaks(), Vec::<String>::new());
}

/// A trace of the reader's own, K = 2048 perhaps, on 40 cores, in turn by each way and launch:
/// ```text
/// AVSG_TRACE=../shared/traces/prose-rustbook-34k-l5-rope.npz AVSG_STEPS=12 \
///   cargo test --release --test ascend -- --ignored --nocapture
/// ```
/// `AVSG_SLOTS` is 8192 unless it says otherwise.
#[test]
#[ignore = "needs a trace: AVSG_TRACE=file.npz"]
fn a_given_trace_is_the_same() {
    let number = |name: &str, or: usize| {
        std::env::var(name).map_or(or, |text| text.parse().expect("a number"))
    };
    let path = std::env::var("AVSG_TRACE").expect("AVSG_TRACE names a trace");
    let trace = Trace::read(&path).unwrap();
    let (steps, slots) = (number("AVSG_STEPS", 6), number("AVSG_SLOTS", 8192));
    let mut compared = 0;
    for one_launch in [false, true] {
        for way in WAYS {
            let _session = Session::new(Options::default());
            let context = simulated::context().unwrap();
            let form = Form { one_launch, ..traced::form(&trace, 0, slots, 40) };
            let pair = Pair::new(&form, &context, None);
            let mut workload = Traced::new(&trace, pair, 0);
            run(&mut workload, way, steps, &context);
            compared += workload.pair.compared;
            println!("{path}: {way:?}, one launch {one_launch}: {steps} steps are the same");
        }
    }
    println!("{path}: {compared} slots compared, 0 differ");
}
