//! Lifetimes of slots: writes, refreshes by a rule, and decay.

use super::basic::{COMPACT, call};
use crate::ascend::aiv::{
    Act, Argument, BARRIER, Call, Expr, Function, Length, Outcome, Place, SELECT_SCRATCH, Scalar,
    TO_S, Tensor, Type, Use, s, ub, v,
};
use crate::ascend::cost::setting::{Load, Setting, scalars};
use crate::ascend::cost::{Unit, Work};

/// Writes one lifetime to the slots of all lanes.
pub static SET_LIFETIME_ALL: Function = Function {
    name: "SetLifetimeAll",
    text: include_str!("set_lifetime_all.h.in"),
    uses: &[],
    acts: |call| vec![s(&[&call.place(1)], &[&call.place(0)])],
    in_place: false,
};

/// Writes one lifetime to the slots of the lanes under a mask.
pub static SET_LIFETIME_MASKED: Function = Function {
    name: "SetLifetimeMasked",
    text: include_str!("set_lifetime_masked.h.in"),
    uses: &[Use::Function(&SET_LIFETIME_ALL), Use::Function(&COMPACT), Use::Buffer("packed")],
    acts: |call| {
        let packed = ub("packed");
        let pack = v(&[&call.place(1), &call.place(3)], &[&packed]);
        vec![pack, TO_S, s(&[&packed], &[&call.place(0)])]
    },
    in_place: false,
};

/// Replaces the lifetimes of the slots of all lanes by the rule.
pub static REFRESH_LIFETIME_ALL: Function = Function {
    name: "RefreshLifetimeAll",
    text: include_str!("refresh_lifetime_all.h.in"),
    uses: &[Use::Buffer("lane_scratch"), Use::Buffer("lifetimes"), Use::Buffer("rule")],
    acts: |call| refresh_acts(&call.place(0), &call.place(1)),
    in_place: false,
};

/// Replaces the lifetimes of the slots of the lanes under a mask by the rule.
pub static REFRESH_LIFETIME_MASKED: Function = Function {
    name: "RefreshLifetimeMasked",
    text: include_str!("refresh_lifetime_masked.h.in"),
    uses: &[Use::Function(&REFRESH_LIFETIME_ALL), Use::Function(&COMPACT), Use::Buffer("packed")],
    acts: |call| {
        let packed = ub("packed");
        let compact = v(&[&call.place(1), &call.place(2)], &[&packed]);
        [vec![compact, Act::Count], refresh_acts(&call.place(0), &packed)].concat()
    },
    in_place: false,
};

/// Decreases all lifetimes.
pub static DECAY_LIFETIMES: Function = Function {
    name: "DecayLifetimes",
    text: include_str!("decay_lifetimes.h.in"),
    uses: &[],
    acts: |call| {
        let life = call.place(0);
        vec![BARRIER, v(&[&life], &[&life]), BARRIER, v(&[&life], &[&life])]
    },
    in_place: false,
};

/// Marks the slots that the last step used as unused.
pub static END_STEP_USES: Function = Function {
    name: "EndStepUses",
    text: include_str!("end_step_uses.h.in"),
    uses: &[Use::Buffer("scratch"), Use::Buffer("mask_scratch"), Use::LifeTile],
    acts: |call| {
        let (life, mask, scratch) = (call.place(0), ub("mask_scratch"), ub("scratch"));
        let choice = v(&[&mask, &scratch, &life], &[&life, &ub(SELECT_SCRATCH)]);
        let iteration = [BARRIER, v(&[&life], &[&mask, &scratch]), BARRIER, choice];
        [iteration.clone(), iteration].concat()
    },
    in_place: false,
};

/// Returns a lifetime as a scalar operand.
pub fn lifetime(n: i8) -> Scalar {
    Scalar::new(i32::from(n), Type::F16)
}

/// Calls `life[slot] = value`, under a mask or for all lanes.
pub fn set(life: String, slot: Tensor, value: i8, mask: Option<Tensor>) -> Call {
    let function = if mask.is_some() { &SET_LIFETIME_MASKED } else { &SET_LIFETIME_ALL };
    let mut args = vec![Tensor::named(life).into(), slot.into(), Argument::Scalar(lifetime(value))];
    args.extend(mask.map(Argument::from));
    args.push(Argument::Length(Length::Lanes));
    call(function, args, Outcome::None)
}

/// Calls `life[slot] = rule[life[slot]]`, under a mask or for all lanes.
pub fn refresh(life: String, slot: Tensor, mask: Option<Tensor>) -> Call {
    let function = if mask.is_some() { &REFRESH_LIFETIME_MASKED } else { &REFRESH_LIFETIME_ALL };
    let mut args = vec![Tensor::named(life).into(), slot.into()];
    args.extend(mask.map(Argument::from));
    args.push(Argument::Length(Length::Lanes));
    call(function, args, Outcome::None)
}

/// Decreases all lifetimes by `by`, to -128 at the lowest.
pub fn decay(by: Expr) -> Call {
    call(&DECAY_LIFETIMES, vec![Tensor::named("life").into(), by.into()], Outcome::None)
}

/// Marks the slots that the last step used as unused.
pub fn end_step_uses() -> Call {
    call(&END_STEP_USES, vec![Tensor::named("life").into()], Outcome::None)
}

/// Returns the acts that read the lifetimes of slots, look them up in the rule and write them.
fn refresh_acts(life: &Place, slot: &Place) -> Vec<Act> {
    let [offset, lifetimes, rule] = ["lane_scratch", "lifetimes", "rule"].map(ub);
    let mut acts = vec![v(&[slot], &[&offset])];
    for act in [
        v(&[life, &offset], &[&lifetimes]),
        v(&[&lifetimes], &[&offset]),
        v(&[&offset], &[&offset]),
        v(&[&offset], &[&offset]),
        v(&[&offset, &rule], &[&lifetimes]),
    ] {
        acts.extend([BARRIER, act]);
    }
    acts.extend([TO_S, s(&[slot, &lifetimes], &[life])]);
    acts
}

/// Returns the work of [`set`] that depends on the number of lanes under the mask.
pub fn set_work(setting: &Setting, load: &Load) -> Work {
    scalars((1.5 + setting.packed()) * load.active as f64 + 0.5 * (load.active % 2) as f64)
}

/// Returns the work of [`refresh`] that depends on the number of lanes under the mask.
pub fn refresh_work(setting: &Setting, load: &Load) -> Work {
    let n = load.active as f64;
    scalars((3.0 + setting.packed()) * n) + Work::of(Unit::Gathers, 2.0 * n)
}

/// Returns the work of [`decay`], two instructions over all slots, and of [`end_step_uses`]: a
/// compare, an addition, and a Select with what it runs besides its instruction.
pub fn decay_work(setting: &Setting, load: &Load, ends_uses: bool) -> Work {
    let decay = setting.passes(load.lanes, setting.slots, 2);
    if !ends_uses {
        return decay;
    }
    let iterations = load.lanes.div_ceil(setting.life_tile as usize) as f64;
    let select = (Work::vector(1, 8) + Work::of(Unit::Barriers, 3.0)) * iterations;
    decay + setting.passes(load.lanes, setting.life_tile, 3) + select
}
