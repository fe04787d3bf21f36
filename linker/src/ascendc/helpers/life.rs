//! Lifetimes of slots: set, stepped, aged.

use super::basic::{COMPACT, call};
use crate::aiv::{
    Act, Argument, Asks, BARRIER, Call, Expr, Helper, Length, Outcome, Place, SELECT_SCRATCH,
    Scalar, TO_S, Tensor, Type, Use, s, ub, v,
};
use crate::cost::setting::{Load, Setting, scalars};
use crate::cost::{Unit, Work};

/// One lifetime for slots.
pub static SET_LIFE_ALL: Helper = Helper {
    name: "SetLifeAll",
    text: include_str!("set_life_all.h.in"),
    uses: &[],
    acts: |call| vec![s(&[&call.place(1)], &[&call.place(0)])],
    asks: Asks::Never,
    in_place: false,
};

/// One lifetime for the slots under a mask.
pub static SET_LIFE: Helper = Helper {
    name: "SetLife",
    text: include_str!("set_life.h.in"),
    uses: &[Use::Helper(&SET_LIFE_ALL), Use::Helper(&COMPACT), Use::Buffer("packed")],
    acts: |call| {
        let packed = ub("packed");
        let pack = v(&[&call.place(1), &call.place(3)], &[&packed]);
        vec![pack, TO_S, s(&[&packed], &[&call.place(0)])]
    },
    asks: Asks::Never,
    in_place: false,
};

/// The next lifetime for slots.
pub static STEP_LIFE_ALL: Helper = Helper {
    name: "StepLifeAll",
    text: include_str!("step_life_all.h.in"),
    uses: &[Use::Buffer("stage"), Use::Buffer("lives"), Use::Buffer("rule")],
    acts: |call| step_acts(&call.place(0), &call.place(1)),
    asks: Asks::Never,
    in_place: false,
};

/// The next lifetime for the slots under a mask.
pub static STEP_LIFE: Helper = Helper {
    name: "StepLife",
    text: include_str!("step_life.h.in"),
    uses: &[Use::Helper(&STEP_LIFE_ALL), Use::Helper(&COMPACT), Use::Buffer("packed")],
    acts: |call| {
        let packed = ub("packed");
        let compact = v(&[&call.place(1), &call.place(2)], &[&packed]);
        [vec![compact, BARRIER], step_acts(&call.place(0), &packed)].concat()
    },
    asks: Asks::Never,
    in_place: false,
};

/// All lifetimes fall.
pub static AGE: Helper = Helper {
    name: "Age",
    text: include_str!("age.h.in"),
    uses: &[],
    acts: |call| {
        let life = call.place(0);
        vec![BARRIER, v(&[&life], &[&life]), BARRIER, v(&[&life], &[&life])]
    },
    asks: Asks::Never,
    in_place: false,
};

/// The uses of the last step end.
pub static SETTLE: Helper = Helper {
    name: "Settle",
    text: include_str!("settle.h.in"),
    uses: &[Use::Buffer("scratch"), Use::Buffer("keep"), Use::Pass],
    acts: |call| {
        let (life, keep, scratch) = (call.place(0), ub("keep"), ub("scratch"));
        let choice = v(&[&keep, &scratch, &life], &[&life, &ub(SELECT_SCRATCH)]);
        let run = [BARRIER, v(&[&life], &[&keep, &scratch]), BARRIER, choice];
        [run.clone(), run].concat()
    },
    asks: Asks::Never,
    in_place: false,
};

/// A lifetime as an operand.
pub fn lifetime(n: i8) -> Scalar {
    Scalar::new(i32::from(n), Type::F16)
}

/// `life[slot] = value`, under a mask or for all lanes.
pub fn set(life: String, slot: Tensor, value: i8, mask: Option<Tensor>) -> Call {
    let helper = if mask.is_some() { &SET_LIFE } else { &SET_LIFE_ALL };
    let mut args = vec![Tensor::named(life).into(), slot.into(), Argument::Scalar(lifetime(value))];
    args.extend(mask.map(Argument::from));
    args.push(Argument::Length(Length::Lanes));
    call(helper, args, Outcome::None)
}

/// `life[slot] = rule[life[slot]]`, under a mask or for all lanes.
pub fn step(life: String, slot: Tensor, mask: Option<Tensor>) -> Call {
    let helper = if mask.is_some() { &STEP_LIFE } else { &STEP_LIFE_ALL };
    let mut args = vec![Tensor::named(life).into(), slot.into()];
    args.extend(mask.map(Argument::from));
    args.push(Argument::Length(Length::Lanes));
    call(helper, args, Outcome::None)
}

/// All lifetimes fall by this.
pub fn age(by: Expr) -> Call {
    call(&AGE, vec![Tensor::named("life").into(), by.into()], Outcome::None)
}

/// The uses of the last step end.
pub fn settle() -> Call {
    call(&SETTLE, vec![Tensor::named("life").into()], Outcome::None)
}

/// The lifetimes of these slots are read, looked up and written.
fn step_acts(life: &Place, slot: &Place) -> Vec<Act> {
    let [stage, lives, rule] = ["stage", "lives", "rule"].map(ub);
    let mut acts = vec![v(&[slot], &[&stage])];
    for act in [
        v(&[life, &stage], &[&lives]),
        v(&[&lives], &[&stage]),
        v(&[&stage], &[&stage]),
        v(&[&stage], &[&stage]),
        v(&[&stage, &rule], &[&lives]),
    ] {
        acts.extend([BARRIER, act]);
    }
    acts.extend([TO_S, s(&[slot, &lives], &[life])]);
    acts
}

/// What the mask decides of [`set`].
pub fn set_work(setting: &Setting, load: &Load) -> Work {
    scalars((1.5 + setting.packed()) * load.active as f64 + 0.5 * (load.active % 2) as f64)
}

/// What the mask decides of [`step`].
pub fn step_work(setting: &Setting, load: &Load) -> Work {
    let n = load.active as f64;
    scalars((3.0 + setting.packed()) * n) + Work::of(Unit::Gathers, 2.0 * n)
}

/// Two ops over all slots, and three more where uses end.
pub fn age_work(setting: &Setting, load: &Load, settles: bool) -> Work {
    let falls = setting.passes(load.lanes, setting.slots, 2);
    if settles { falls + setting.passes(load.lanes, setting.pass, 3) } else { falls }
}
