//! The refresh that `VectorCore` defers, as `avsg_late.h` makes it on a device. Tests of the linker include this file
//! by its path.

use avsg_device::learned::AFTER_HIT;
use avsg_device::params::{Lifetime, Params};

/// Refreshes the slots of a token, as bytes of a table. New slots are among them: the rule of a hit gives them the
/// lifetime of a new slot. A slot of -1 belongs to an id that is not valid.
pub fn refresh_deferred(p: &Params, life: &mut [i8], slots: &[i32]) {
    for &slot in slots {
        let Some(life) = usize::try_from(slot).ok().and_then(|slot| life.get_mut(slot)) else {
            continue;
        };
        *life = match &p.lifetime {
            Lifetime::Constant(l) => *l,
            Lifetime::Learned => AFTER_HIT[usize::from(life.cast_unsigned() ^ 128)],
        };
    }
}
