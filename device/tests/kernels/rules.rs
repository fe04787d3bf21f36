//! Rules that the project adds where the paper is silent or ambiguous, and that neither the verification of random
//! workloads (`tests/kit/src/workload/verify.rs`) nor the oracle proves.

// The other tests show the unsafe code to Miri; these run the same kernels longer.
#![cfg(not(miri))]

use super::one_request::{OneRequest, Order, Outcome, SCALAR};
use avsg_device::learned::{AFTER_HIT, MAX_VALUE, NEW, part};
use avsg_device::memory::links_end;
use avsg_device::params::{Lifetime, Params};
use avsg_device::state::{INVALID, header};

fn wide(k: u32, tokens: u32, slots: u32) -> Params {
    Params { lifetime: Lifetime::Constant(127), ..Params::wide(k, tokens, slots) }
}

impl OneRequest {
    fn tokens(&mut self, tokens: Vec<Vec<i32>>) -> Outcome {
        self.step(&tokens.into())
    }
}

#[test]
fn links_to_victims_are_reusable() {
    // All links of the table are valid, so only the links of victims can be replaced. Twenty
    // lengths are tested, because a step that enters no link leaves links that the next step may
    // replace. With one link per slot, about 15 of 64 ids find no link; if links to victims counted
    // as used, it would be 22.
    let without_link: i32 = (30..50)
        .map(|steps| {
            let mut r = OneRequest::new(Params { spread: 1, retries: 7, ..wide(64, 1, 64) });
            for g in 0..steps {
                let _ = r.tokens(vec![(g * 64..g * 64 + 64).collect()]);
            }
            r.tokens(vec![((steps - 1) * 64..steps * 64).collect()]).counts[0]
        })
        .sum();
    assert!(without_link < 18 * 20, "{} of 64 have no link", f64::from(without_link) / 20.0);
}

/// The victims of a token are the slots with the smallest lifetimes, or of learned lifetimes those with the
/// smallest values: first those below the largest of these, then those equal to it, each in the order of
/// their indices.
#[test]
fn the_victims_of_wide_have_the_smallest_values() {
    for p in [wide(16, 1, 64), Params::wide(16, 1, 64)] {
        let mut r = OneRequest::new(p);
        let mut life = vec![i16::from(p.empty_life()); 64];
        for g in 0..200 {
            if g % 10 == 9 {
                r.scramble(g as u32);
            }
            let moves_from = r.state[header::MOVES_FROM as usize] as i16;
            let learned = r.state[links_end(&p)..].to_vec();
            let o = r.tokens(vec![(0..16).map(|i| (g * 5 + i * (1 + g % 3)) % 150).collect()]);
            let (by, from, hit) = match &p.lifetime {
                Lifetime::Constant(l) => (1, -128, [*l; 256]),
                Lifetime::Learned => (16, moves_from, AFTER_HIT),
            };
            let aged = |l: i16| if l >= from { (l - by).max(-128) } else { l };
            life.iter_mut().for_each(|l| *l = aged(*l));
            let value = |l: i16| match p.lifetime {
                Lifetime::Constant(_) => l.into(),
                Lifetime::Learned if l >= NEW.into() => MAX_VALUE + 1,
                Lifetime::Learned => {
                    (learned[part::VALUES + (l + 128) as usize] & 0xFF).min(MAX_VALUE)
                }
            };
            let missed: Vec<usize> = o.misses.iter().map(|m| m.pos as usize).collect();
            for slot in (0..16).filter(|i| !missed.contains(i)).map(|i| o.slots[0][i] as usize) {
                life[slot] = i16::from(hit[(life[slot] + 128) as usize]);
            }
            let mut victims: Vec<usize> = (0..64).collect();
            victims.sort_by_key(|&slot| value(life[slot]));
            victims.truncate(missed.len());
            let most = victims.last().map(|&slot| value(life[slot]));
            victims.sort_by_key(|&slot| (Some(value(life[slot])) == most, slot));
            let chosen: Vec<usize> = o.misses.iter().map(|m| m.slot as usize).collect();
            assert_eq!(chosen, victims, "step {g}");
            life = o.life.iter().map(|&l| l.into()).collect();
        }
    }
}

/// Returns the position of the link that an id takes in an empty table.
fn first_link(p: Params, id: i32) -> usize {
    let o = OneRequest::new(p).tokens(vec![vec![id]]);
    o.link.iter().position(|link| link & INVALID == 0).expect("a miss enters a link")
}

/// In `wide`, a miss whose link a later miss of its token overwrites searches for another link, by
/// either schedule.
#[test]
fn a_miss_whose_link_is_overwritten_searches_once_more() {
    let p = Params { spread: 1, ..wide(3, 1, 64) };
    let at = first_link(p, 0);
    let rival = (1..).find(|&id| first_link(p, id) == at).expect("64 links, and more ids");
    let other = (1..).find(|&id| first_link(p, id) != at).expect("a second link");
    // The other id takes slot 0, which every empty link names.
    let ids = vec![vec![other, 0, rival]];
    for order in [SCALAR, Order::VectorCore] {
        let mut r = OneRequest::new(p);
        r.order = order;
        let o = r.tokens(ids.clone());
        assert_eq!((o.counts[0], o.link[at] & 63), (3, o.slots[0][2]), "the later miss has it");
        assert_eq!(r.tokens(ids.clone()).counts[0], 0, "all are found, {order:?}");
    }
}

#[test]
fn most_hits_are_deferred_if_there_are_more_slots_than_ids() {
    for lifetime in [Lifetime::Constant(127), Lifetime::Learned] {
        let mut r = OneRequest::new(Params { lifetime, ..Params::wide(640, 1, 4096) });
        r.order = Order::VectorCore;
        let (mut hits, mut deferred) = (0, 0);
        for step in 0..20 {
            // A tenth of the selection is new in every step.
            let ids: Vec<i32> = (0..640).map(|i| 64 * step + i).collect();
            let outcome = r.tokens(vec![ids]);
            if step > 10 {
                hits += 640 - outcome.misses.len();
                deferred += r.deferred;
            }
        }
        assert!(hits > 5000 && deferred * 20 > hits * 19, "{deferred} of {hits}, {lifetime:?}");
    }
}
