//! The model in cases whose figures have a closed form, and its agreement with the paper's table.

use super::simulation::{mean, run};
use super::{Cluster, HBM, Setting, WEIGHTS, draw};
use crate::published::SERVING;
use crate::tests::left_out;

/// One prefill instance, one rank, and one request of 1000 prompt tokens and 101 output tokens, which
/// makes one token per step.
const SMALL: Cluster = Cluster {
    prefill_instances: 1,
    prefill_ms: 1000.0,
    handoff_s: 0.5,
    ranks: 1,
    tokens: 1,
    acceptance: 0.0,
    step_ms: 20.0,
    requests: 1,
    prompt: 1000.0,
    prompt_cv: 0.0,
    output: 101.0,
    output_cv: 0.0,
    max_output: 101,
    max_context: 2000,
    concurrency: 1,
    rate: 1000.0,
    ..Cluster::PAPER
};

fn near(value: f64, expected: f64, percent: f64) {
    let error = 100.0 * (value / expected - 1.0).abs();
    assert!(error <= percent, "{value} is {error:.2} % away from {expected}");
}

#[test]
fn one_request_takes_its_prefill_its_handoff_and_its_steps() {
    let one = run(&SMALL, Setting::NoOffload, 1);
    near(one.ttft_s, 1.0, 1e-6);
    near(one.tpot_ms, 20.0, 1e-6);
    near(one.e2e_s, 1.0 + 0.5 + 100.0 * 0.020, 1e-6);
    assert_eq!((one.running, one.wait_s), (1.0, 0.0));

    // All drafts are accepted, so 100 tokens take 25 steps of 4.
    let drafts = Cluster { tokens: 4, acceptance: 1.0, ..SMALL };
    near(run(&drafts, Setting::NoOffload, 1).tpot_ms, 5.0, 1e-6);
    // The last step has room for 3 tokens more than the request wants.
    let longer = Cluster { output: 98.0, ..drafts.clone() };
    near(run(&longer, Setting::NoOffload, 1).e2e_s, 1.5 + 25.0 * 0.020, 1e-6);
    let single = Cluster { output: 1.0, ..drafts };
    near(run(&single, Setting::NoOffload, 1).e2e_s, 1.0, 1e-6);
}

#[test]
fn accepted_drafts_follow_the_geometric_law() {
    let long = Cluster { output: 20_001.0, max_output: 20_001, max_context: 30_000, ..SMALL };
    let drafts = Cluster { tokens: 4, acceptance: 0.7, ..long };
    near(run(&drafts, Setting::NoOffload, 1).tpot_ms, 20.0 / (1.0 + 0.7 + 0.49 + 0.343), 1.0);
}

#[test]
fn memory_for_one_request_makes_requests_take_turns() {
    let one =
        Cluster { kv_tokens: [2000; 2], prefill_ms: 1.0, requests: 40, concurrency: 8, ..SMALL };
    let all = run(&one, Setting::NoOffload, 1);
    let turn = 0.5 + 100.0 * 0.020;
    near(all.request_rate, 1.0 / turn, 0.2);
    // Eight requests are under way until the clients run out of requests: request i of the last eight
    // finds i fewer before it. The first eight find 0 to 7 before them.
    let turns: f64 = (1..=40).map(|i| f64::from(i.min(8))).sum::<f64>() / 40.0;
    near(all.e2e_s, turns * turn, 0.5);
    let two = Cluster { kv_tokens: [2 * 1101; 2], ..one };
    near(run(&two, Setting::NoOffload, 1).output_tok_s, 2.0 * all.output_tok_s, 2.0);
}

#[test]
fn prefill_is_an_m_d_1_queue() {
    if left_out() {
        return;
    }
    let outputs = Cluster { output: 1.0, max_output: 1, ..SMALL };
    for load in [0.3, 0.6, 0.8] {
        let open =
            Cluster { requests: 20_000, concurrency: 1 << 20, rate: load, ..outputs.clone() };
        let waits = mean(&open, Setting::NoOffload, 4).ttft_s - 1.0;
        near(waits, load / (2.0 * (1.0 - load)), 6.0);
    }
    // Saturated: the client's requests wait for each other, and C are under way all the time.
    let closed = Cluster { requests: 2000, concurrency: 12, prefill_instances: 3, ..outputs };
    let all = run(&closed, Setting::NoOffload, 1);
    near(all.ttft_s, 12.0 / 3.0, 1.0);
    near(all.request_rate, 3.0, 0.1);
}

#[test]
fn lengths_have_their_means_and_keep_their_limits() {
    let requests = draw(&Cluster::PAPER, 3);
    let mean = |length: fn((usize, usize)) -> usize| {
        requests.iter().map(|r| length((r.prompt, r.output))).sum::<usize>() as f64 / 2000.0
    };
    near(mean(|r| r.0), 48_000.0, 0.1);
    near(mean(|r| r.1), 1101.0, 0.1);
    assert!(requests.iter().all(|r| r.output <= 32_768 && r.prompt + r.output <= 131_072));
    near(requests[1999].arrival as f64 / 1e9, 2000.0, 10.0);
}

#[test]
fn a_step_is_the_sum_of_its_parts() {
    let c = Cluster::PAPER;
    let copy_ms = 3.0 * 4.0 * 2048.0 * 79.0 * 1152.0 / (c.link_gbs * 1e6);
    near(c.step_ms(Setting::NoOffload, 3), 108.0, 1e-9);
    near(c.step_ms(Setting::KvOffload, 3), 108.0 + copy_ms, 1e-9);
    let matching_ms = 4.0 * 79.0 * 0.097;
    near(c.step_ms(Setting::Avsg, 3), 108.0 + matching_ms + copy_ms * (1.0 - 0.9483), 1e-9);
    // The weights leave 16.22 GB of device memory without offload, as the paper states.
    let free = |setting| c.hbm_percent(setting, 0.0) / 100.0 * HBM - WEIGHTS;
    near(free(Setting::NoOffload), 16.22e9, 0.5);
}

#[test]
fn fitted_figures_are_the_papers_and_the_prediction_for_avsg_is_within_15_percent() {
    if left_out() {
        return;
    }
    let [plain, offload, avsg] = Setting::ALL.map(|s| mean(&Cluster::PAPER, s, 10));
    let [ttft, tpot, _, e2e, tok_s, rate, _] = SERVING.map(|row| row.1);
    near(plain.tpot_ms, tpot[0], 1.0);
    near(offload.tpot_ms, tpot[1], 1.0);
    near(offload.ttft_s, ttft[1], 1.0);
    near(offload.e2e_s, e2e[1], 2.5);
    near(plain.output_tok_s, tok_s[0], 2.0);
    near(offload.output_tok_s, tok_s[1], 2.0);
    near(plain.request_rate, rate[0], 2.0);
    near(offload.request_rate, rate[1], 2.0);
    near(avsg.tpot_ms, tpot[2], 15.0);
    near(avsg.e2e_s, e2e[2], 15.0);
    near(avsg.output_tok_s, tok_s[2], 15.0);
}
