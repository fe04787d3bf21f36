//! The part of a file's arrays that is taken as the trace: one layer, one request.

use crate::array::Array;
use crate::checks::require;
use avsg::{Error, Result};

/// What is taken along an axis for layers or requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pick {
    /// The one with this number, from 0.
    One(usize),
    /// Every one.
    All,
}

/// The layer and the request that are taken from arrays with axes for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TracePart {
    /// The layer, from 0, of ids `[steps, layers, ..]`; `None` if the ids have no such axis.
    pub layer: Option<usize>,
    /// The request, from 0, of ids `[steps, requests, ..]`, or of `[steps, layers, requests, ..]` if
    /// a layer is taken too; `None` if the ids have no such axis.
    pub request: Option<usize>,
}

/// Returns part `at` of `parts` of each step, `count` values of each.
fn cut(array: &Array, count: usize, parts: usize, at: usize) -> Vec<i32> {
    let values = array.values.chunks_exact(count.max(1)).skip(at).step_by(parts.max(1));
    values.flatten().copied().collect()
}

impl TracePart {
    /// Returns (option, name of the axis, index) of each axis that is taken, in the array's order.
    fn axes(self) -> impl Iterator<Item = (&'static str, &'static str, usize)> {
        let layer = self.layer.map(|at| ("--layer", "layers", at));
        layer.into_iter().chain(self.request.map(|at| ("--request", "requests", at)))
    }

    /// Returns the part of an array of ids and its shape `[steps, N_q, K]`. The array is `[steps, ..axes that are taken,
    /// N_q, K]`, or without N_q for one token per step.
    pub(super) fn ids(self, array: &Array) -> Result<(Vec<i32>, [usize; 3])> {
        let taken = self.axes().count();
        let (steps, [tokens, k]) = match array.shape.split_first() {
            Some((&steps, rest)) if rest.len() == taken + 1 => (steps, [1, rest[taken]]),
            Some((&steps, rest)) if rest.len() == taken + 2 => {
                (steps, [rest[taken], rest[taken + 1]])
            }
            _ => return Err(self.wrong_rank(array)),
        };
        let (mut parts, mut at) = (1, 0);
        for ((option, name, index), &count) in self.axes().zip(&array.shape[1..]) {
            let limit = format!("array {} has {count} {name}, counted from 0", array.name);
            require(index < count, option, index, limit, "choose one of them")?;
            (parts, at) = (parts * count, at * count + index);
        }
        Ok((cut(array, tokens * k, parts, at), [steps, tokens, k]))
    }

    /// Returns the part of an array of token counts: `[steps]`, or `[steps, requests]` if a request is taken.
    pub(super) fn lengths(self, array: &Array) -> Result<Vec<i32>> {
        match (array.shape.as_slice(), self.request) {
            (&[_], _) => Ok(array.values.clone()),
            (&[_, requests], Some(at)) if at < requests => Ok(cut(array, 1, requests, at)),
            (shape, _) => {
                let value = format!("{shape:?} (array {})", array.name);
                let limit = "it must be [steps], or [steps, requests] if a request is taken";
                Err(Error::invalid("shape", value, limit, "save it with these dimensions"))
            }
        }
    }

    fn wrong_rank(self, array: &Array) -> Error {
        let axes: String = self.axes().map(|(_, name, _)| format!("{name}, ")).collect();
        let value = format!("{:?} (array {})", array.shape, array.name);
        let limit = format!("it must be [steps, {axes}N_q, K] or [steps, {axes}K]");
        let remedy = "reshape it, or take --layer or --request (N, or all in avsg size and avsg compare) of [steps, \
                      layers, requests, ..]";
        Error::invalid("shape", value, limit, remedy)
    }
}
