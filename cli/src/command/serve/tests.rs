//! The model in cases whose figures have a closed form, and its prediction for the paper's deployment.

use avsg_testkit::tier::thorough;

use super::calibration::calibrate;
use super::deployment::{Deployment, Load, Setting};
use super::measured::{Measured, published};
use super::simulation::{mean, run};

/// A deployment with one instance of each kind and one rank, which makes one token per step.
const SMALL: Deployment = Deployment {
    prefill_instances: 1,
    prefill_ms: 1000.0,
    handoff_s: 0.5,
    ranks: 1,
    tokens: 1,
    acceptance: 0.0,
    step_ms: 20.0,
    ..Deployment::PAPER
};

/// Requests of 1000 prompt tokens and 101 output tokens.
const EQUAL: Load = Load {
    requests: 1,
    prompt: 1000.0,
    prompt_cv: 0.0,
    output: 101.0,
    output_cv: 0.0,
    max_output: 101,
    max_context: 2000,
    concurrency: 1,
    rate: 1000.0,
};

fn near(value: f64, expected: f64, percent: f64) {
    let error = 100.0 * (value / expected - 1.0).abs();
    assert!(error <= percent, "{value} is {error:.2} % away from {expected}");
}

#[test]
fn one_request_takes_its_prefill_its_handoff_and_its_steps() {
    let one = run(&SMALL, &EQUAL, Setting::NoOffload, 1);
    near(one.ttft_s, 1.0, 1e-6);
    near(one.tpot_ms, 20.0, 1e-6);
    near(one.e2e_s, 1.0 + 0.5 + 100.0 * 0.020, 1e-6);
    assert_eq!((one.running, one.running_peak, one.wait_s), (1.0, 1.0, 0.0));

    // All drafts are accepted, so 100 tokens take 25 steps of 4.
    let drafts = Deployment { tokens: 4, acceptance: 1.0, ..SMALL };
    let one = run(&drafts, &EQUAL, Setting::NoOffload, 1);
    near(one.tpot_ms, 5.0, 1e-6);
    // The last step has room for 3 tokens more than the request wants.
    let longer = Load { output: 98.0, ..EQUAL };
    near(run(&drafts, &longer, Setting::NoOffload, 1).e2e_s, 1.5 + 25.0 * 0.020, 1e-6);
    let single = Load { output: 1.0, ..EQUAL };
    near(run(&drafts, &single, Setting::NoOffload, 1).e2e_s, 1.0, 1e-6);
}

#[test]
fn accepted_drafts_follow_the_geometric_law() {
    let deployment = Deployment { tokens: 4, acceptance: 0.7, ..SMALL };
    near(deployment.tokens_per_step(), 1.0 + 0.7 + 0.49 + 0.343, 1e-6);
    let long = Load { output: 20_001.0, max_output: 20_001, max_context: 30_000, ..EQUAL };
    let one = run(&deployment, &long, Setting::NoOffload, 1);
    near(one.tpot_ms, 20.0 / deployment.tokens_per_step(), 1.0);
}

#[test]
fn memory_for_one_request_makes_requests_take_turns() {
    let deployment = Deployment { kv_tokens: 2000, prefill_ms: 1.0, ..SMALL };
    let load = Load { requests: 40, concurrency: 8, ..EQUAL };
    let all = run(&deployment, &load, Setting::NoOffload, 1);
    let turn = 0.5 + 100.0 * 0.020;
    near(all.request_rate, 1.0 / turn, 0.2);
    assert_eq!(all.running_peak, 1.0);
    // Eight requests are under way until the clients run out of requests: request i of the last eight
    // finds i fewer before it. The first eight find 0 to 7 before them.
    let turns: f64 = (1..=40).map(|i| f64::from(i.min(8))).sum::<f64>() / 40.0;
    near(all.e2e_s, turns * turn, 0.5);

    let two = Deployment { kv_tokens: 2 * 1101, ..deployment.clone() };
    let both = run(&two, &load, Setting::NoOffload, 1);
    assert_eq!(both.running_peak, 2.0);
    near(both.output_tok_s, 2.0 * all.output_tok_s, 2.0);
    let capped = Deployment { batch: 1, ..two };
    assert_eq!(run(&capped, &load, Setting::NoOffload, 1), all);
}

#[test]
fn prefill_is_an_m_d_1_queue() {
    for load in [0.3, 0.6, 0.8] {
        let clients = Load {
            requests: 20_000,
            output: 1.0,
            max_output: 1,
            concurrency: 1 << 20,
            rate: load,
            ..EQUAL
        };
        let waits = mean(&SMALL, &clients, Setting::NoOffload, 4).ttft_s - 1.0;
        near(waits, load / (2.0 * (1.0 - load)), 6.0);
    }
    // Saturated: the client's requests wait for each other, and C are under way all the time.
    let closed = Load { requests: 2000, output: 1.0, max_output: 1, concurrency: 12, ..EQUAL };
    let three = Deployment { prefill_instances: 3, ..SMALL };
    let all = run(&three, &closed, Setting::NoOffload, 1);
    near(all.ttft_s, 12.0 / 3.0, 1.0);
    near(all.request_rate, 3.0, 0.1);
}

#[test]
fn a_step_is_the_sum_of_its_parts() {
    let d = Deployment { request_ms: 1.5, ..Deployment::PAPER };
    near(d.step_ms(Setting::NoOffload, 3), d.step_ms + 4.5, 1e-9);
    let bytes = 3.0 * 4.0 * 2048.0 * 79.0 * 1152.0;
    let copy_ms = bytes / (d.link_gbs * 1e6);
    near(d.step_ms(Setting::KvOffload, 3), d.step_ms + 4.5 + copy_ms, 1e-9);
    let stage_one_ms = 4.0 * 79.0 * d.match_us / 1e3;
    let misses = copy_ms * (1.0 - 0.9483);
    near(d.step_ms(Setting::Avsg, 3), d.step_ms + 4.5 + stage_one_ms + misses, 1e-9);
    // 41 requests on 40 cores match in two turns.
    let more = d.step_ms(Setting::Avsg, 41) - d.step_ms(Setting::Avsg, 40);
    near(more, 1.5 + stage_one_ms + misses / 3.0, 1e-6);
}

#[test]
fn avsg_without_hits_is_plain_offload_and_with_hits_alone_it_is_no_offload() {
    let load = Load { requests: 60, rate: 2.0, output: 200.0, max_output: 4000, ..Load::PAPER };
    let free = Deployment { match_us: 0.0, ranks: 4, ..Deployment::PAPER };
    let none = Deployment { hit_rate: 0.0, ..free.clone() };
    assert_eq!(run(&none, &load, Setting::Avsg, 2), run(&none, &load, Setting::KvOffload, 2));
    let all = Deployment { hit_rate: 100.0, kv_tokens: free.offload_kv_tokens, ..free };
    assert_eq!(run(&all, &load, Setting::Avsg, 2), run(&all, &load, Setting::NoOffload, 2));
}

#[test]
fn the_papers_memory_agrees_with_its_tokens() {
    let d = Deployment::PAPER;
    let per_token = |setting| {
        let percent = d.hbm_percent(setting, 0.0);
        (percent / 100.0 * d.hbm_gb - d.weights_gb) * 1e9 / d.capacity(setting) as f64
    };
    // The weights leave 16.22 GB of device memory without offload.
    near(per_token(Setting::NoOffload), 16.22e9 / 145_536.0, 0.5);
    near(per_token(Setting::KvOffload), 79.0 * 256.0, 1e-6);
}

#[test]
fn the_prediction_for_the_paper_is_within_15_percent() {
    for Measured { setting, tpot_ms, e2e_s, output_tok_s, .. } in published().unwrap() {
        let seeds = match (setting, thorough()) {
            (_, true) => super::SEEDS,
            (Setting::Avsg, false) => 1,
            _ => continue,
        };
        let modelled = mean(&Deployment::PAPER, &Load::PAPER, setting, seeds);
        near(modelled.tpot_ms, tpot_ms, 15.0);
        near(modelled.e2e_s, e2e_s, 15.0);
        // Few long outputs decide when a run ends, so the throughput needs the mean of several runs.
        if thorough() {
            near(modelled.output_tok_s, output_tok_s, 15.0);
        }
    }
}

#[test]
fn the_papers_constants_are_those_of_the_calibration() {
    if !thorough() {
        println!(
            "default tier: the calibration of the paper's deployment is left to the thorough tier"
        );
        return;
    }
    let (deployment, load) = (Deployment::PAPER, Load::PAPER);
    let found = calibrate(&deployment, &load, &published().unwrap(), 10, 12, &|| ()).unwrap();
    near(found.deployment.step_ms, deployment.step_ms, 1.0);
    near(found.deployment.link_gbs, deployment.link_gbs, 5.0);
    near(found.deployment.prefill_ms, deployment.prefill_ms, 2.0);
    near(found.deployment.handoff_s, deployment.handoff_s, 10.0);
    near(found.deployment.weights_gb, deployment.weights_gb, 0.1);
    near(found.load.output, load.output, 0.1);
    near(found.load.output_cv, load.output_cv, 15.0);
    near(found.load.prompt_cv, load.prompt_cv, 25.0);
}

#[test]
fn a_calibration_finds_the_constants_of_the_model() {
    let truth = Deployment { ranks: 4, cores: 8, kv_tokens: 100_000, ..Deployment::PAPER };
    let load = Load {
        requests: 80,
        prompt: 20_000.0,
        output: 100.0,
        output_cv: 0.5,
        max_output: 1000,
        max_context: 60_000,
        concurrency: 24,
        ..Load::PAPER
    };
    let figures: Vec<Measured> = [Setting::NoOffload, Setting::KvOffload]
        .map(|setting| {
            let o = mean(&truth, &load, setting, 2);
            Measured {
                setting,
                kv_tokens: truth.capacity(setting),
                hbm_percent: truth.hbm_percent(setting, 0.0),
                ttft_s: o.ttft_s,
                tpot_ms: o.tpot_ms,
                tpot_p99_ms: o.tpot_p99_ms,
                e2e_s: o.e2e_s,
                output_tok_s: o.output_tok_s,
                request_rate: o.request_rate,
            }
        })
        .into();
    let wrong = Deployment {
        step_ms: 60.0,
        link_gbs: 60.0,
        prefill_ms: 150.0,
        weights_gb: 10.0,
        ..truth.clone()
    };
    let found = calibrate(&wrong, &load, &figures, 2, 25, &|| ()).unwrap();
    near(found.deployment.step_ms, truth.step_ms, 2.0);
    near(found.deployment.link_gbs, truth.link_gbs, 6.0);
    near(found.deployment.prefill_ms, truth.prefill_ms, 6.0);
    near(found.deployment.weights_gb, truth.weights_gb, 0.1);
    near(found.load.output, 100.0, 1.0);
    let missing = calibrate(&wrong, &load, &figures[..1], 1, 1, &|| ());
    assert!(missing.err().unwrap().to_string().contains("KV Offload"));
}
