//! The functions that the emitted text defines: operations that the vector unit of a 910B does not
//! have.
//!
//! Each file here contains a group of them: for each one its definition, from which its text and its
//! effects follow, and a constructor of the calls that the lowering makes. A parameter that is a tensor is taken to be memory of its own.

/// Defines an emitted function: its comment, its name, its parameters with the methods of the builder that
/// add them, and its body.
macro_rules! function {
    (
        $(#[doc = $about:literal])*
        $static:ident = $name:ident($($param:ident: $kind:ident),*), |$f:ident| $body:block
    ) => {
        #[doc = concat!("The function `", stringify!($name), "`.")]
        pub static $static: $crate::ascend::aiv::Function = $crate::ascend::aiv::Function {
            name: stringify!($name),
            about: concat!($("//", $about, "\n"),*),
            definition: std::sync::LazyLock::new(|| {
                $crate::ascend::sync::synchronised($crate::ascend::aiv::Builder::build(|$f| {
                    $(let $param = $f.$kind(stringify!($param));)*
                    $body
                }))
            }),
        };
    };
}

pub mod append;
pub mod life;
pub mod lookup;
pub mod mix;
pub mod scatter;
pub mod search;
pub mod victims;
pub mod words;

use crate::ascend::aiv::{Argument, Call, Function, Node, Tensor, Use, lanes, uses};

/// The functions that search links. No other function uses them.
pub static SEARCH: [&Function; 4] =
    [&search::GATHER_LINKS, &search::SELECT_FIRST_LINK, &search::FIND, &search::FIND_FREE];

/// All functions, in the order in which they are printed: each one refers only to functions before it.
pub static ALL: [&Function; 25] = [
    &words::WRITE_IOTA,
    &words::INDICES,
    &mix::SUM_OF_PRODUCTS,
    &mix::MIX,
    &append::COUNT,
    &append::COMPACT_AFTER_TAIL,
    &append::APPEND,
    &append::APPEND_IN_PLACE,
    &scatter::SCATTER_ALL,
    &scatter::SCATTER_MASKED,
    &life::SET_LIFETIME_ALL,
    &life::SET_LIFETIME_MASKED,
    &life::REFRESH_LIFETIME_ALL,
    &life::REFRESH_LIFETIME_MASKED,
    &life::DECAY_LIFETIMES,
    &life::DECAY_LIFETIMES_FROM,
    &life::MAP_LIFETIMES,
    &victims::COUNT_LE,
    &victims::FIND_THRESHOLD,
    &victims::APPEND_SLOTS,
    &lookup::LOOKUP,
    &search::GATHER_LINKS,
    &search::SELECT_FIRST_LINK,
    &search::FIND,
    &search::FIND_FREE,
];

/// Returns the functions that some statements call, and all that those call, in the order of [`ALL`].
pub fn called(nodes: &[Node]) -> Vec<&'static Function> {
    let used = uses(nodes);
    ALL.into_iter().filter(|function| used.contains(&Use::Function(function))).collect()
}

/// Calls the first function for all live lanes, or the second one for those under a mask.
fn on_lanes(
    [all, masked]: [&'static Function; 2],
    mut args: Vec<Argument>,
    mask: Option<Tensor>,
) -> Call {
    let function = if mask.is_some() { masked } else { all };
    args.extend(mask.map(Argument::from));
    args.push(lanes().into());
    Call::of(function, args)
}
