//! Writes at computed indices, lane by lane: a 910B has no scatter.

use super::basic::{COMPACT, call};
use crate::aiv::{Argument, Asks, Call, Helper, Length, Outcome, TO_S, Tensor, Use, s, ub, v};
use crate::cost::Work;
use crate::cost::setting::{Load, scalars};

/// All lanes.
pub static SCATTER_ALL: Helper = Helper {
    name: "ScatterAll",
    text: include_str!("scatter_all.h.in"),
    uses: &[],
    acts: |call| vec![s(&[&call.place(1), &call.place(2)], &[&call.place(0)])],
    asks: Asks::Never,
    in_place: false,
};

/// All lanes of two columns, of which one's index is the other's value.
pub static SCATTER_BOTH: Helper = Helper {
    name: "ScatterBoth",
    text: include_str!("scatter_both.h.in"),
    uses: &[Use::Buffer("packed"), Use::Buffer("stage")],
    acts: |call| {
        let [column, index, value, other, place] = [0, 1, 2, 3, 4].map(|n| call.place(n));
        let (packed, stage) = (ub("packed"), ub("stage"));
        let scalar = s(&[&index, &value, &place, &packed, &stage], &[&column, &other]);
        vec![v(&[&index], &[&packed]), v(&[&place], &[&stage]), TO_S, scalar]
    },
    asks: Asks::Never,
    in_place: false,
};

/// The lanes under a mask.
pub static SCATTER_MASKED: Helper = Helper {
    name: "ScatterMasked",
    text: include_str!("scatter_masked.h.in"),
    uses: &[
        Use::Helper(&SCATTER_ALL),
        Use::Helper(&COMPACT),
        Use::Buffer("packed"),
        Use::Buffer("stage"),
    ],
    acts: |call| {
        let [column, index, value, mask] = [0, 1, 2, 3].map(|n| call.place(n));
        let (packed, stage) = (ub("packed"), ub("stage"));
        let pack = v(&[&index, &value, &mask], &[&packed, &stage]);
        vec![pack, TO_S, s(&[&packed, &stage], &[&column])]
    },
    asks: Asks::Never,
    in_place: false,
};

fn lanes(mut tensors: Vec<Argument>) -> Vec<Argument> {
    tensors.push(Argument::Length(Length::Lanes));
    tensors
}

/// `column[index] = value`, under a mask or for all lanes.
pub fn scatter(column: String, index: Tensor, value: Tensor, mask: Option<Tensor>) -> Call {
    let helper = if mask.is_some() { &SCATTER_MASKED } else { &SCATTER_ALL };
    let mut args = vec![Tensor::named(column).into(), index.into(), value.into()];
    args.extend(mask.map(Argument::from));
    call(helper, lanes(args), Outcome::None)
}

/// One loop instead of two, where `before` scatters at the indices that are the values here:
/// `column[index] = value` with it.
pub fn both(before: &Call, column: &str, index: &Tensor, value: &Tensor) -> Option<Call> {
    let before = before.helper().filter(|call| *call.helper == SCATTER_ALL)?;
    if before.args[1] != Argument::from(value.clone()) {
        return None;
    }
    let mut args = before.args[..3].to_vec();
    args.extend([Tensor::named(column).into(), index.clone().into()]);
    Some(call(&SCATTER_BOTH, lanes(args), Outcome::None))
}

/// What the mask decides; the head is among the acts.
pub fn work(load: &Load) -> Work {
    scalars(2.0 * load.active as f64 + (load.active % 2) as f64)
}

/// Of each of two scatters together: three accesses a lane for both, and five where they are no four.
pub fn work_of_both(load: &Load) -> Work {
    scalars(1.5 * load.active as f64 + (load.active % 4) as f64)
}
