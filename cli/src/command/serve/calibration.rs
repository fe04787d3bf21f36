//! The constants that make the model agree with measurements of the settings without AVSG.
//!
//! Every constant follows from one figure. In each round the settings No Offload and KV Offload are
//! simulated, and every constant is multiplied by a power of (measured / modelled). AVSG's own figures
//! are not read.

use anyhow::Result;
use avsg::Error;
use serde::Serialize;

use super::deployment::{Deployment, Load, Setting};
use super::measured::{self, Measured};
use super::outcome::Outcome;
use super::simulation;

/// Number of rounds, with which the figures come within a percent of the measured ones or stay there.
pub const ROUNDS: usize = 32;

type Constant = for<'a> fn(&'a mut Deployment, &'a mut Load) -> &'a mut f64;

/// How a constant follows from a figure.
struct Rule {
    name: &'static str,
    figure: &'static str,
    setting: Setting,
    constant: Constant,
    modelled: fn(&Outcome) -> f64,
    measured: fn(&Measured) -> f64,
    /// The constant is multiplied by (measured / modelled) to this power. It is about the inverse of
    /// the figure's relative change with the constant, and smaller where that amplifies noise.
    power: f64,
}

/// The rules. The figures that they leave out check the model.
const RULES: [Rule; 6] = [
    Rule {
        name: "--step-ms",
        figure: "TPOT",
        setting: Setting::NoOffload,
        constant: |d, _| &mut d.step_ms,
        modelled: |o| o.tpot_ms,
        measured: |m| m.tpot_ms,
        power: 1.0,
    },
    Rule {
        name: "--link-gbs",
        figure: "TPOT",
        setting: Setting::KvOffload,
        constant: |d, _| &mut d.link_gbs,
        modelled: |o| o.tpot_ms,
        measured: |m| m.tpot_ms,
        power: -1.5,
    },
    Rule {
        name: "--prefill-ms",
        figure: "TTFT",
        setting: Setting::KvOffload,
        constant: |d, _| &mut d.prefill_ms,
        modelled: |o| o.ttft_s,
        measured: |m| m.ttft_s,
        power: 0.8,
    },
    Rule {
        name: "--handoff-s",
        figure: "E2E",
        setting: Setting::KvOffload,
        constant: |d, _| &mut d.handoff_s,
        modelled: |o| o.e2e_s,
        measured: |m| m.e2e_s,
        power: 4.0,
    },
    Rule {
        name: "--prompt-cv",
        figure: "output tok/s",
        setting: Setting::NoOffload,
        constant: |_, l| &mut l.prompt_cv,
        modelled: |o| o.output_tok_s,
        measured: |m| m.output_tok_s,
        power: -3.0,
    },
    Rule {
        name: "--output-cv",
        figure: "output tok/s",
        setting: Setting::KvOffload,
        constant: |_, l| &mut l.output_cv,
        modelled: |o| o.output_tok_s,
        measured: |m| m.output_tok_s,
        power: -2.0,
    },
];

/// A constant, and the figure that it follows from.
#[derive(Clone, Debug, Serialize)]
pub struct Fitted {
    /// The option that takes the constant.
    pub option: &'static str,
    /// The constant.
    pub value: f64,
    /// The figure.
    pub figure: &'static str,
    /// The setting of the figure.
    pub setting: &'static str,
    /// The measured figure.
    pub measured: f64,
    /// The figure that the model computes with the constants.
    pub modelled: f64,
}

/// The result of a calibration.
pub struct Calibrated {
    /// The deployment with the constants.
    pub deployment: Deployment,
    /// The load with the constants.
    pub load: Load,
    /// The constants, one by one.
    pub fitted: Vec<Fitted>,
}

/// Returns the constants with which `seeds` runs agree with `figures`, starting from those of
/// `deployment` and `load`. `tick` is called after every round.
pub fn calibrate(
    deployment: &Deployment,
    load: &Load,
    figures: &[Measured],
    seeds: u64,
    rounds: usize,
    tick: &dyn Fn(),
) -> Result<Calibrated> {
    let of = |setting| {
        measured::of(figures, setting).ok_or_else(|| {
            let limit = "a calibration needs the settings no_offload and kv_offload";
            Error::invalid("--measured", setting.name(), limit, "add its figures")
        })
    };
    let [plain, offload] = [of(Setting::NoOffload)?, of(Setting::KvOffload)?];
    let (mut deployment, mut load) = (deployment.clone(), load.clone());
    deployment.kv_tokens = plain.kv_tokens;
    deployment.offload_kv_tokens = offload.kv_tokens;
    deployment.check()?;
    load.output = f64::midpoint(plain.output(), offload.output());
    load.check(deployment.capacity(Setting::NoOffload))?;
    let used = deployment.hbm_percent(Setting::NoOffload, 0.0) / 100.0 * deployment.hbm_gb;
    deployment.weights_gb += plain.hbm_percent / 100.0 * deployment.hbm_gb - used;
    let simulate = |deployment: &Deployment, load: &Load| {
        [plain, offload].map(|column| {
            let load = Load { output: column.output(), ..load.clone() };
            simulation::mean(deployment, &load, column.setting, seeds)
        })
    };
    let pair = |rule: &Rule, [a, b]: &[Outcome; 2]| match rule.setting {
        Setting::NoOffload => ((rule.measured)(plain), (rule.modelled)(a)),
        _ => ((rule.measured)(offload), (rule.modelled)(b)),
    };
    for _ in 0..rounds {
        let outcomes = simulate(&deployment, &load);
        for rule in &RULES {
            let (measured, modelled) = pair(rule, &outcomes);
            let constant = (rule.constant)(&mut deployment, &mut load);
            // A factor near 1 keeps a round from leaving the range of the constant.
            *constant *= (measured / modelled).powf(rule.power).clamp(0.7, 1.4);
            *constant = constant.clamp(1e-3, 1e9);
        }
        for cv in [&mut load.prompt_cv, &mut load.output_cv] {
            *cv = cv.clamp(0.05, 5.0);
        }
        tick();
    }
    let outcomes = simulate(&deployment, &load);
    let fitted = |rule: &Rule| {
        let (measured, modelled) = pair(rule, &outcomes);
        let value = *(rule.constant)(&mut deployment, &mut load);
        let setting = rule.setting.name();
        Fitted { option: rule.name, value, figure: rule.figure, setting, measured, modelled }
    };
    let mut fitted: Vec<Fitted> = RULES.iter().map(fitted).collect();
    let both = "No Offload, KV Offload";
    fitted.push(Fitted {
        option: "--output",
        value: load.output,
        figure: "output tok/s : req/s",
        setting: both,
        measured: load.output,
        modelled: load.output,
    });
    fitted.push(Fitted {
        option: "--weights-gb",
        value: deployment.weights_gb,
        figure: "HBM %",
        setting: Setting::NoOffload.name(),
        measured: plain.hbm_percent,
        modelled: deployment.hbm_percent(Setting::NoOffload, 0.0),
    });
    Ok(Calibrated { deployment, load, fitted })
}
