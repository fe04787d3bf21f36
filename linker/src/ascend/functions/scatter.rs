//! Writes at computed indices. The scalar unit makes them lane by lane, because a 910B has no
//! scatter.

use super::basic::{COMPACT, call};
use crate::ascend::aiv::{Argument, Call, Function, Length, Outcome, TO_S, Tensor, Use, s, ub, v};
use crate::ascend::cost::Work;
use crate::ascend::cost::setting::{Load, scalars};

/// Scatters all lanes of a value to a column.
pub static SCATTER_ALL: Function = Function {
    name: "ScatterAll",
    text: include_str!("scatter_all.h.in"),
    uses: &[],
    acts: |call| vec![s(&[&call.place(1), &call.place(2)], &[&call.place(0)])],
    in_place: false,
};

/// Scatters all lanes to two columns, where the indices in the first are the values in the second.
pub static SCATTER_BOTH: Function = Function {
    name: "ScatterBoth",
    text: include_str!("scatter_both.h.in"),
    uses: &[Use::Buffer("packed"), Use::Buffer("lane_scratch")],
    acts: |call| {
        let [column, index, value, other, place] = [0, 1, 2, 3, 4].map(|n| call.place(n));
        let (packed, scratch) = (ub("packed"), ub("lane_scratch"));
        let scalar = s(&[&index, &value, &place, &packed, &scratch], &[&column, &other]);
        vec![v(&[&index], &[&packed]), v(&[&place], &[&scratch]), TO_S, scalar]
    },
    in_place: false,
};

/// Scatters the lanes of a value under a mask to a column.
pub static SCATTER_MASKED: Function = Function {
    name: "ScatterMasked",
    text: include_str!("scatter_masked.h.in"),
    uses: &[
        Use::Function(&SCATTER_ALL),
        Use::Function(&COMPACT),
        Use::Buffer("packed"),
        Use::Buffer("lane_scratch"),
    ],
    acts: |call| {
        let [column, index, value, mask] = [0, 1, 2, 3].map(|n| call.place(n));
        let (packed, scratch) = (ub("packed"), ub("lane_scratch"));
        let pack = v(&[&index, &value, &mask], &[&packed, &scratch]);
        vec![pack, TO_S, s(&[&packed, &scratch], &[&column])]
    },
    in_place: false,
};

/// Adds the number of lanes to the arguments.
fn with_lanes(mut tensors: Vec<Argument>) -> Vec<Argument> {
    tensors.push(Argument::Length(Length::Lanes));
    tensors
}

/// Calls `column[index] = value`, under a mask or for all lanes.
pub fn scatter(column: String, index: Tensor, value: Tensor, mask: Option<Tensor>) -> Call {
    let function = if mask.is_some() { &SCATTER_MASKED } else { &SCATTER_ALL };
    let mut args = vec![Tensor::named(column).into(), index.into(), value.into()];
    args.extend(mask.map(Argument::from));
    call(function, with_lanes(args), Outcome::None)
}

/// Joins `column[index] = value` with the scatter `before`, if that one's indices are the values
/// here: one loop does both.
pub fn both(before: &Call, column: &str, index: &Tensor, value: &Tensor) -> Option<Call> {
    let before = before.function().filter(|call| *call.function == SCATTER_ALL)?;
    if before.args[1] != Argument::from(value.clone()) {
        return None;
    }
    let mut args = before.args[..3].to_vec();
    args.extend([Tensor::named(column).into(), index.clone().into()]);
    Some(call(&SCATTER_BOTH, with_lanes(args), Outcome::None))
}

/// Returns the work that depends on the number of lanes under the mask. The acts contain the rest.
pub fn work(load: &Load) -> Work {
    scalars(2.0 * load.active as f64 + (load.active % 2) as f64)
}

/// Returns the work of one of two joined scatters. Both together take three accesses per lane, and
/// five for each lane behind the last group of four.
pub fn work_of_both(load: &Load) -> Work {
    scalars(1.5 * load.active as f64 + (load.active % 4) as f64)
}
