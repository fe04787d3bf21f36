//! The lifetime rules and the numbers of slots that are compared with each other.

use avsg::device::params::{Lifetime, MAX_PAPER_SLOTS, MIN_SLOTS, Params};

/// The constants L.
const CONSTANTS: [i8; 9] = [0, 1, 2, 4, 8, 16, 32, 64, 127];

/// Returns every lifetime rule that the table accepts.
pub fn rules(p: &Params) -> impl Iterator<Item = Lifetime> {
    let all = CONSTANTS.map(Lifetime::Constant).into_iter().chain([Lifetime::Learned]);
    all.filter(|&lifetime| Params { lifetime, ..*p }.check().is_ok())
}

/// Returns the least power of two that is an S for steps of `ids` ids, of which a trace has at most 65536.
pub fn least_slots(ids: usize) -> u32 {
    (ids as u32).max(MIN_SLOTS).next_power_of_two()
}

/// Returns the three smallest powers of two that both tables accept as S for steps of `ids` ids, or fewer if
/// the third is above their limit. A least S above the limit is returned, which the library refuses.
pub fn default_slots(ids: usize) -> Vec<u32> {
    let least = least_slots(ids);
    let fits = |slots: &u32| *slots == least || *slots <= MAX_PAPER_SLOTS;
    [1, 2, 4].map(|times| times * least).into_iter().filter(fits).collect()
}
