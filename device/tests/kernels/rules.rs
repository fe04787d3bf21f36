//! The rules that the project adds where the paper is silent or ambiguous: each test proves one of
//! them.

// The other tests show the unsafe code to Miri; these run the same kernels longer.
#![cfg(not(miri))]

use super::one_request::{OneRequest, Order, Outcome, Step};
use avsg_device::learned::{AFTER_HIT, MAX_VALUE, NEW, part};
use avsg_device::machine::emu::Emu;
use avsg_device::memory::{find_ids, links_end};
use avsg_device::params::{Fault, ID_LIMIT, Lifetime, MAX_SLOTS, MIN_SLOTS, Params, Table};
use avsg_device::request::status;
use avsg_device::state::{DEAD, EMPTY, INVALID, header};
use std::collections::HashSet;

fn ids(range: core::ops::Range<i32>) -> Vec<i32> {
    range.collect()
}

fn wide(k: u32, tokens: u32, slots: u32) -> Params {
    Params { lifetime: Lifetime::Constant(127), ..Params::wide(k, tokens, slots) }
}

impl OneRequest {
    fn tokens(&mut self, tokens: Vec<Vec<i32>>) -> Outcome {
        self.step(Emu::<3>, &tokens.into())
    }
    fn idle(&mut self, steps: usize) -> Outcome {
        (0..steps).map(|_| self.tokens(vec![])).last().expect("at least one")
    }
}

fn missed(o: &Outcome) -> HashSet<i32> {
    o.misses.iter().map(|m| m.id).collect()
}

#[test]
fn a_lifetime_saturates_within_its_field() {
    for p in [Params::paper(32, 1, 64), wide(32, 1, 64), Params::wide(32, 1, 64)] {
        let mut r = OneRequest::new(p);
        let first = r.tokens(vec![ids(0..32)]);
        let mut before = first.life.clone();
        for _ in 0..400 {
            let o = r.idle(1);
            let revived = o.life.iter().zip(&before).any(|(now, then)| now > then);
            assert!(!revived, "a slot was revived");
            assert_eq!(o.link, first.link, "a borrow out of the field changed a link");
            before = o.life;
        }
        assert!(before.iter().all(|&l| l == DEAD));
        // A slot that is hit is not given to a miss of the same token.
        let again = r.tokens(vec![ids(16..48)]);
        let hit: HashSet<i32> = (16..32).zip(&again.slots[0]).map(|(_, &s)| s).collect();
        assert!(again.misses.iter().all(|m| m.id >= 32 || !hit.contains(&m.slot)));
        assert_eq!(again.slots[0].iter().collect::<HashSet<_>>().len(), 32);
    }
}

#[test]
fn a_duplicate_may_take_a_slot_of_its_own_and_the_orphan_ages_out() {
    let mut r = OneRequest::new(wide(32, 1, 64));
    let o = r.tokens(vec![vec![5, 5, 9, 5]]);
    assert_eq!((o.counts[0], o.valid[0]), (4, 4), "every copy is counted");
    let held = [0, 1, 3].map(|i| o.id[o.slots[0][i] as usize]);
    assert_eq!(held, [5; 3], "each slot holds the row");
    let o = r.tokens(vec![vec![5, 5, 9, 5]]);
    assert_eq!(o.counts[0], 0);
    let kept = o.slots[0][0];
    assert_eq!(o.slots[0], [kept, kept, o.slots[0][2], kept]);
    // 60 other ids fill the table. The next ids evict the orphans first, and slots that are used
    // remain.
    let _ = r.tokens(vec![[ids(100..130), vec![5, 9]].concat()]);
    let _ = r.tokens(vec![[ids(130..160), vec![5, 9]].concat()]);
    let o = r.tokens(vec![[ids(160..162), vec![5, 9]].concat()]);
    assert_eq!(o.id.iter().filter(|&&c| c == 5).count(), 1, "an orphan remains");
    assert_eq!(o.slots[0][2], kept);
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
                let _ = r.tokens(vec![ids(g * 64..g * 64 + 64)]);
            }
            r.tokens(vec![ids((steps - 1) * 64..steps * 64)]).counts[0]
        })
        .sum();
    assert!(without_link < 18 * 20, "{} of 64 have no link", f64::from(without_link) / 20.0);
}

#[test]
fn a_new_slot_is_in_use_before_the_next_token() {
    for p in [Params::paper(32, 2, 64), wide(32, 2, 64), Params::wide(32, 2, 64)] {
        let (mut one, mut two) = (OneRequest::new(p), OneRequest::new(p));
        let _ = one.tokens(vec![ids(0..32)]);
        let o = two.tokens(vec![ids(0..32), ids(100..132)]);
        assert!(o.life.iter().all(|&l| l == p.new_life()), "a returned slot is not in use");
        let (one, two) = (one.tokens(vec![ids(0..32)]), two.tokens(vec![ids(0..32)]));
        assert!(missed(&two).is_subset(&missed(&one)), "token 2 took links of token 1");
    }
}

#[test]
fn refresh_is_per_token() {
    let mut r = OneRequest::new(wide(32, 2, 64));
    let _ = r.tokens(vec![ids(0..32)]);
    let _ = r.tokens(vec![ids(32..64)]);
    // Token 1 needs the 32 oldest slots. If the whole request were refreshed first, the ids of
    // token 2 would remain.
    let o = r.tokens(vec![ids(100..132), ids(0..32)]);
    assert_eq!(o.counts, [32, 32]);
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

/// Eq. 2 and the definition of phi before Eq. 3, for every number of bits of a slot.
#[test]
fn the_word_of_a_link_is_the_slot_below_the_fingerprint() {
    for m in MIN_SLOTS.ilog2()..=MAX_SLOTS.ilog2() {
        let all = [Params::paper(2, 1, 1 << m), wide(2, 1, 1 << m), wide(2, 1, (1 << m) / 4 * 3)];
        for p in all.into_iter().filter(|p| p.check().is_ok()) {
            for id in [1, 114_877, ID_LIMIT - 1] {
                let o = OneRequest::new(p).tokens(vec![vec![id, -1]]);
                let used: Vec<i32> = o.link.into_iter().filter(|l| l & INVALID == 0).collect();
                let (slot, bits) = (o.slots[0][0], p.slot_bits());
                assert!(used.len() == 1 && used[0] & ((1 << bits) - 1) == slot, "{p}: {used:?}");
                if p.table != Table::Wide {
                    assert_eq!(used[0] >> bits, id % (1 << (23 - bits)), "the paper's phi");
                }
            }
        }
    }
}

#[test]
fn probe_ignores_the_invalid_bit() {
    for p in [Params::paper(4, 1, 64), wide(4, 1, 64)] {
        let mut r = OneRequest::new(p);
        let o = r.tokens(vec![vec![3]]);
        let end = links_end(&p);
        r.state[end - p.links() as usize..end].iter_mut().for_each(|link| *link |= INVALID);
        let again = r.tokens(vec![vec![3]]);
        assert_eq!((again.counts[0], &again.slots), (0, &o.slots));
    }
}

/// Returns the position of the link that an id takes in an empty table.
fn first_link(p: Params, id: i32) -> usize {
    let o = OneRequest::new(p).tokens(vec![vec![id]]);
    o.link.iter().position(|link| link & INVALID == 0).expect("a miss enters a link")
}

/// In `wide`, a miss whose link a later miss of its token overwrites searches for another link, by
/// every schedule.
#[test]
fn a_miss_whose_link_is_overwritten_searches_once_more() {
    let p = Params { spread: 1, ..wide(3, 1, 64) };
    let at = first_link(p, 0);
    let rival = (1..).find(|&id| first_link(p, id) == at).expect("64 links, and more ids");
    let other = (1..).find(|&id| first_link(p, id) != at).expect("a second link");
    // The other id takes slot 0, which every empty link names.
    let ids = vec![vec![other, 0, rival]];
    for order in [Order::Sequential, Order::VectorCore, Order::Simt] {
        let mut r = OneRequest::new(p);
        r.order = order;
        let o = r.tokens(ids.clone());
        assert_eq!((o.counts[0], o.link[at] & 63), (3, o.slots[0][2]), "the later miss has it");
        assert_eq!(r.tokens(ids.clone()).counts[0], 0, "all are found, {order:?}");
    }
}

/// Returns the ids below a limit that `find_ids` finds in the table of a request, in ascending order.
fn found_in(r: &OneRequest, p: &Params, limit: i32) -> Vec<i32> {
    let mut found = Vec::new();
    find_ids(p, &r.state, 0..limit, |id| found.push(id));
    found.sort_unstable();
    found
}

/// Of two ids with one link between them, both have a slot, and the link names that of the later one.
#[test]
fn an_id_in_a_slot_that_no_link_names_is_not_found() {
    let p = Params { spread: 1, retries: 0, ..wide(2, 1, 64) };
    let at = first_link(p, 0);
    let rival = (1..).find(|&id| first_link(p, id) == at).expect("64 links, and more ids");
    let mut r = OneRequest::new(p);
    assert_eq!(r.tokens(vec![vec![0, rival]]).counts[0], 2);
    let slots = &r.state[header::WORDS..][..64];
    assert!(slots.contains(&0) && slots.contains(&rival));
    let found = found_in(&r, &p, rival + 1);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found_in(&r, &p, 1).len(), usize::from(found == [0]));
    let missed = missed(&r.tokens(vec![vec![0, rival]]));
    assert!(missed.len() == 1 && !missed.contains(&found[0]), "{missed:?} after {found:?}");
}

/// In a full table the ids that `find_ids` finds are those that Probe finds.
#[test]
fn the_ids_of_a_full_table_are_found_as_probe_finds_them() {
    for p in [wide(64, 1, 64), Params { retries: 0, ..wide(64, 1, 64) }, Params::paper(64, 1, 64)] {
        let mut r = OneRequest::new(p);
        let all: Vec<i32> = (0..64).map(|i| i * 71 % 4096).collect();
        r.tokens(vec![all.clone()]);
        let found = found_in(&r, &p, 4096);
        let missed = missed(&r.tokens(vec![all.clone()]));
        assert!(all.iter().all(|id| found.contains(id) != missed.contains(id)), "{found:?}");
    }
}

#[test]
fn a_step_that_could_evict_its_own_slots_is_refused() {
    assert_eq!(wide(33, 2, 64).check(), Err(Fault::StepAboveSlots));
    assert_eq!(Params::paper(64, 2, 64).check(), Err(Fault::StepAboveSlots));
    for p in [wide(32, 2, 64), Params::wide(16, 4, 64), Params::paper(16, 4, 64)] {
        assert_eq!(p.check(), Ok(()));
        let mut r = OneRequest::new(p);
        for from in [0, 1000, 2000] {
            let k = p.k as i32;
            let tokens = (0..p.tokens as i32).map(|g| ids(from + g * k..from + (g + 1) * k));
            let o = r.tokens(tokens.collect());
            let slots: HashSet<i32> = o.slots.concat().into_iter().collect();
            assert_eq!(slots.len(), 64, "a slot was evicted by the request that returned it");
        }
    }
}

#[test]
fn invalidation_at_the_start_removes_every_id_from_stable_len_on() {
    for p in [Params::paper(8, 4, 64), wide(8, 4, 64), Params::wide(8, 4, 64)] {
        let mut r = OneRequest::new(p);
        let draft = Step {
            stable: 100,
            limit: 104,
            ..vec![vec![98, 99, 100, 101, 102, 103, 103, 103]].into()
        };
        let first = r.step(Emu::<3>, &draft);
        assert!(first.misses.iter().all(|m| (m.row < 0) == (m.id >= 100)), "{:?}", first.misses);
        // One draft was accepted: 100 and 101 are final, 102 and the orphans of 103 are not.
        let o = r.step(Emu::<3>, &Step { stable: 102, limit: 106, ..Step::default() });
        assert!(o.id.iter().all(|&c| c < 102));
        for kept in 98..102 {
            assert!(o.id.contains(&kept), "{kept} was final");
        }
        let of = |x| draft.tokens[0].iter().zip(&first.slots[0]).filter(move |(id, _)| **id == x);
        let cleared: Vec<usize> = of(102).chain(of(103)).map(|(_, &s)| s as usize).collect();
        assert_eq!(cleared.len(), 4, "102 and three slots of 103, whatever links they had");
        assert!(cleared.iter().all(|&s| (o.id[s], o.life[s]) == (EMPTY, DEAD)));
        assert_eq!(o.header[header::TOP as usize], 106);
        // A deep rollback empties all slots.
        let o = r.step(Emu::<3>, &Step { stable: 0, limit: 4, ..Step::default() });
        assert!(o.id.iter().all(|&c| c == EMPTY));
    }
}

#[test]
fn ids_without_a_row_are_padding_and_set_a_status_bit() {
    let p = Params { page: 16, ..wide(8, 1, 64) };
    let mut r = OneRequest::new(p);
    let step = Step {
        limit: 100,
        rows: 10,
        blocks: vec![9, 10, -1, i32::MAX, i32::MIN, 0],
        ..vec![vec![3, 16, 32, 48, 64, 80, 96, -1]].into()
    };
    let o = r.step(Emu::<3>, &step);
    let has_slot: Vec<bool> = o.slots[0].iter().map(|&s| s >= 0).collect();
    assert_eq!(has_slot, [true, false, false, false, false, true, false, false]);
    assert_eq!(o.misses.iter().map(|m| m.row).collect::<Vec<_>>(), [9 * 16 + 3, 0]);
    assert_eq!((o.valid[0], o.counts[0], o.status), (2, 2, status::ROW_OUT_OF_POOL));
    let out_of_range =
        Step { tokens: vec![vec![3, 100, i32::MAX, 80, -1, -1, -1, -1]], ..step.clone() };
    let o = r.step(Emu::<3>, &out_of_range);
    assert_eq!((o.valid[0], o.counts[0], o.status), (2, 0, status::ID_OUT_OF_RANGE));
    assert_eq!(o.slots[0][1..3], [-1, -1]);
    let fine = Step { tokens: vec![vec![3, 80, -1]], ..step };
    assert_eq!(r.step(Emu::<3>, &fine).status, 0, "the status bits are those of this step");
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
            let outcome = r.step(Emu::<1>, &Step::from(vec![ids]));
            if step > 10 {
                hits += 640 - outcome.misses.len();
                deferred += r.deferred;
            }
        }
        assert!(hits > 5000 && deferred * 20 > hits * 19, "{deferred} of {hits}, {lifetime:?}");
    }
}
