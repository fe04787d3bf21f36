//! Tests of the contenders against models of their definitions, and under the operator's rules.

use avsg_testkit::splitmix::SplitMix64;

use super::*;

fn random_trace(random: &mut SplitMix64, [steps, tokens, k]: [usize; 3], context: usize) -> Trace {
    let mut ids = Vec::new();
    for _ in 0..steps * tokens {
        let mut all: Vec<i32> = (0..context as i32).collect();
        random.shuffle(&mut all);
        ids.extend(&all[..k]);
    }
    Trace::new(ids, None, [steps, tokens, k]).unwrap()
}

/// Returns the misses of CLOCK or SIEVE with one id per step, as a list of rows (an id, and whether it was hit) and a
/// hand. CLOCK puts a new row in the place of the one that it evicts. SIEVE, as its paper's pseudocode, adds it at the
/// head, which is the end of the list, and its hand moves from the tail to the head.
fn list_misses(trace: &Trace, slots: usize, is_clock: bool) -> usize {
    let mut list: Vec<(i32, bool)> = Vec::new();
    let (mut hand, mut misses) = (0, 0);
    for &id in &trace.ids {
        if let Some(row) = list.iter_mut().find(|row| row.0 == id) {
            row.1 = true;
            continue;
        }
        misses += 1;
        if list.len() == slots {
            while list[hand].1 {
                list[hand].1 = false;
                hand = (hand + 1) % slots;
            }
            list.remove(hand);
        }
        if is_clock {
            list.insert(hand, (id, true));
            hand = (hand + 1) % slots;
        } else {
            // The hand stays before the row that followed; at the head it returns to the tail.
            hand %= slots - 1;
            list.push((id, false));
        }
    }
    misses
}

#[test]
fn clock_and_sieve_miss_like_lists() {
    let mut random = SplitMix64::new(31);
    for case in 0..200 {
        let slots = 2 + random.below(12);
        let context = slots + random.below(12);
        let trace = random_trace(&mut random, [200, 1, 1], context);
        let policies = [(SecondChance::clock(slots), true), (SecondChance::sieve(slots), false)];
        for (policy, is_clock) in policies {
            let count = count_hits(&trace, &mut { policy });
            let misses = (count.selected - count.hits) as usize;
            assert_eq!(misses, list_misses(&trace, slots, is_clock), "case {case}, {is_clock}");
        }
    }
}

/// With S = N_q * K every slot is in use at the end of a step, so its last selections all hit.
#[test]
fn rows_of_the_running_step_are_not_evicted() {
    let mut random = SplitMix64::new(32);
    for _ in 0..50 {
        let (tokens, k) = (1 + random.below(3), 1 + random.below(8));
        let trace = random_trace(&mut random, [20, tokens, k], 4 * k);
        for policy in [SecondChance::clock, SecondChance::sieve] {
            let mut policy = policy(tokens * k);
            let mut misses = Vec::new();
            for step in 0..trace.steps {
                policy.begin_step();
                for token in 0..2 * tokens {
                    misses.clear();
                    policy.token(trace.row(step, token % tokens), &mut misses);
                    assert!(token < tokens || misses.is_empty(), "{misses:?}");
                }
            }
        }
    }
}

#[test]
fn hisparse_hits_like_a_list() {
    let mut random = SplitMix64::new(1);
    for case in 0..300 {
        let (tokens, k) = (1 + case % 3, 1 + random.below(5));
        let slots = tokens * k + random.below(6);
        let trace = random_trace(&mut random, [12, tokens, k], k + 12);
        let mut policy = HiSparse::new(slots);
        // Ids, oldest first. Empty slots are the oldest.
        let mut list: Vec<i32> = vec![-1; slots];
        for row in trace.ids.chunks(k) {
            let mut misses = Vec::new();
            policy.token(row, &mut misses);
            let expected: Vec<i32> = row.iter().copied().filter(|id| !list.contains(id)).collect();
            assert_eq!(misses, expected, "case {case}");
            let (hits, others): (Vec<i32>, Vec<i32>) = list.iter().partition(|id| row.contains(id));
            list = [&others[expected.len()..], &expected, &hits].concat();
        }
    }
}

#[test]
fn set_fifo_replaces_in_the_order_of_arrival() {
    // In a single set of 16, id 0 is evicted by the 16th id after it although every step selects it.
    let mut policy = SetFifo::new(16);
    let mut misses = |ids: &[i32]| {
        let mut misses = Vec::new();
        policy.begin_step();
        policy.token(ids, &mut misses);
        misses
    };
    (0..16).for_each(|id| drop(misses(&[0, id])));
    assert_eq!(misses(&[0, 15, 16]), [16]);
    assert_eq!(misses(&[0, 1]), [0]);
}
