//! Early refreshes are enough: with them alone the victims are those of all refreshes.

use avsg::device::params::Params;
use avsg::splitmix::SplitMix64;

use super::early;

/// The n slots that live least, lowest index first, as CollectDead takes them.
fn victims(life: &[i32], n: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..life.len()).collect();
    order.sort_by_key(|&slot| (life[slot], slot));
    order.truncate(n);
    order.sort_unstable();
    order
}

#[test]
fn what_may_wait_changes_no_victim() {
    let p = Params {
        lifetime: avsg::device::params::Lifetime::Constant(127),
        ..Params::wide(64, 1, 256)
    };
    let mut random = SplitMix64::new(1);
    let mut seen = [0, 0];
    for spread in [3, 20, 120] {
        for misses in [0, 1, 5, 30] {
            let before: Vec<i8> =
                (0..256).map(|_| random.below(spread) as i8 - (spread / 2) as i8).collect();
            // The hits are the first lanes, in slots 3 apart; the misses come behind them.
            let hits = 64 - misses;
            let slots: Vec<i32> = (0..64).map(|lane| (lane * 3 + 5) % 256).collect();
            let lanes: Vec<usize> = (hits..64).collect();
            let n = early(&p, &before, &slots, &lanes) as usize;
            let aged: Vec<i32> = before.iter().map(|&l| (i32::from(l) - 1).max(-128)).collect();
            let mut full = aged.clone();
            slots[..hits].iter().for_each(|&slot| full[slot as usize] = 127);
            // The n hits that live least are refreshed, no other.
            let mut order: Vec<i32> = slots[..hits].to_vec();
            order.sort_by_key(|&slot| aged[slot as usize]);
            let mut some = aged;
            order[..n].iter().for_each(|&slot| some[slot as usize] = 127);
            assert_eq!(victims(&some, misses), victims(&full, misses), "{spread} {misses}: {n}");
            seen[usize::from(n < hits)] += 1;
        }
    }
    assert!(seen[0] + seen[1] == 12 && seen[1] > 6, "some refreshes could wait: {seen:?}");
}
