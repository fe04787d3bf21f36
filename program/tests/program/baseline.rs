//! Tests of the baselines against brute force on small traces, set operations and known values, and of
//! the algorithm of vLLM-Ascend's `lru_resident_compact` against a list.

use std::collections::HashSet;

use avsg_cli::baseline::{
    Belady, ExactLru, Matched, Policy, PreviousStep, ResidentLru, count_hits,
};
use avsg_cli::trace::Trace;
use avsg_testkit::content::{check_row, fill_row, tag};
use avsg_testkit::splitmix::SplitMix64;

/// Returns a random trace of rows of distinct ids, some with padding. The context has `min` to
/// `min` + `range` - 1 ids, which is few, so that rows evict each other.
fn random_trace(random: &mut SplitMix64, shape: [usize; 3], (min, range): (usize, usize)) -> Trace {
    let [steps, tokens, k] = shape;
    let context = min + random.below(range);
    let mut ids = Vec::new();
    for _ in 0..steps * tokens {
        let mut pool: Vec<i32> = (0..context as i32).collect();
        random.shuffle(&mut pool);
        if random.below(4) == 0 {
            pool[random.below(k)] = -1;
        }
        ids.extend(&pool[..k]);
    }
    Trace::new(ids, None, shape).unwrap()
}

fn selected(row: &[i32]) -> impl Iterator<Item = i32> + '_ {
    row.iter().copied().filter(|&id| id >= 0)
}

/// Returns the fewest misses from token number `at` on, by trying every set of victims. Bit n of `resident` says whether id
/// n is in the buffer, and that of `used` whether the running step has selected it.
fn fewest_misses(trace: &Trace, at: usize, slots: usize, resident: u32, used: u32) -> u32 {
    if at == trace.steps * trace.tokens {
        return 0;
    }
    let (step, token) = (at / trace.tokens, at % trace.tokens);
    let row = selected(trace.row(step, token)).fold(0, |row, id| row | 1 << id);
    let in_use = if token == 0 { row } else { row | used };
    let all: u32 = resident | row;
    let (evictions, candidates) = (all.count_ones().saturating_sub(slots as u32), all & !in_use);
    let is_choice = |set: &u32| set & !candidates == 0 && set.count_ones() == evictions;
    let choices = (0..=candidates).filter(is_choice);
    let later = choices.map(|set| fewest_misses(trace, at + 1, slots, all & !set, in_use));
    (row & !resident).count_ones() + later.min().unwrap()
}

#[test]
fn belady_has_the_fewest_misses_of_all_choices() {
    let mut random = SplitMix64::new(2);
    for case in 0..120 {
        let tokens = 1 + case % 2;
        let k = 1 + random.below(2);
        let slots = tokens * k + random.below(3);
        let trace = random_trace(&mut random, [6, tokens, k], (k + 1, 5));
        let count = count_hits(&trace, &mut Belady::new(&trace, slots).unwrap());
        let best = fewest_misses(&trace, 0, slots, 0, 0);
        assert_eq!((count.selected - count.hits) as u32, best, "case {case}, {slots} slots");
    }
}

#[test]
fn previous_step_hits_the_intersection_of_two_rows() {
    let mut random = SplitMix64::new(4);
    for _ in 0..100 {
        let k = 1 + random.below(30);
        let trace = random_trace(&mut random, [10, 2, k], (k, 40));
        let rows: Vec<HashSet<i32>> =
            trace.ids.chunks(k).map(|row| selected(row).collect()).collect();
        let hits: usize = rows.windows(2).map(|w| w[0].intersection(&w[1]).count()).sum();
        let mut policy = PreviousStep::new(k).unwrap();
        assert_eq!(count_hits(&trace, &mut policy).hits, hits as u64);
    }
}

/// A way to match the ids of one token.
type Step<'a> = &'a mut dyn FnMut(&[i32], &mut Matched);

/// Misses are written to their slots, and then every slot must contain its id.
#[test]
fn every_slot_holds_its_id() {
    let mut random = SplitMix64::new(5);
    for case in 0..150 {
        let k = 1 + random.below(40);
        let slots = k + random.below(60);
        let mut trace = random_trace(&mut random, [20, 1, k], (k, 100));
        // Repeated ids are legal input.
        for _ in 0..if case % 2 == 0 { 20 } else { 0 } {
            let row = random.below(20) * k;
            trace.ids[row + random.below(k)] = trace.ids[row + random.below(k)];
        }
        let (mut merge, mut lru) = (PreviousStep::new(k).unwrap(), ExactLru::new(slots).unwrap());
        let steps: [Step<'_>; 2] =
            [&mut |ids, out| merge.step(ids, out), &mut |ids, out| lru.step(ids, out)];
        for step in steps {
            let (mut buffer, mut out) = (vec![-1; slots], Matched::default());
            for row in trace.ids.chunks(k) {
                step(row, &mut out);
                out.misses.iter().for_each(|&(id, slot)| buffer[slot as usize] = id);
                let held = |&slot: &i32| if slot < 0 { -1 } else { buffer[slot as usize] };
                assert_eq!(out.slots.iter().map(held).collect::<Vec<i32>>(), row);
            }
        }
    }
}

#[test]
fn empty_padded_repeated_and_too_long_rows_do_not_panic() {
    let too_long = [1, 2, 3, 4, 5, 6, 7, 8, 9];
    let rows = [&[][..], &[-1, -1, -5], &[3, 3, 3], &too_long, &[i32::MIN, 0]];
    let trace = Trace::new(vec![1, 2, 1, 2], None, [2, 1, 2]).unwrap();
    let policies: [&mut dyn Policy; 3] = [
        &mut ExactLru::new(3).unwrap(),
        &mut Belady::new(&trace, 3).unwrap(),
        &mut PreviousStep::new(3).unwrap(),
    ];
    for policy in policies {
        for row in rows.iter().cycle().take(20) {
            policy.begin_step();
            policy.token(row, &mut Vec::new());
        }
    }
}

#[test]
fn row_contents_are_the_splitmix64_stream() {
    assert_eq!(tag(0, 0), 0xE220_A839_7B1D_CDAF);
    let (mut generator, mut row) = (SplitMix64::new(5 << 32 | 7), [0u8; 21]);
    fill_row(5, 7, &mut row);
    let stream: Vec<u8> = (0..3).flat_map(|_| generator.word().to_le_bytes()).collect();
    assert_eq!(row, stream[..21]);
    assert_eq!(tag(5, 7).to_le_bytes(), stream[..8]);
    assert!(check_row(5, 7, &row) && !check_row(5, 8, &row) && !check_row(6, 7, &row));
    for at in 0..row.len() {
        row[at] ^= 1;
        assert!(!check_row(5, 7, &row), "byte {at}");
        row[at] ^= 1;
    }
}

/// The ids of [`list_step`] are below it.
const MAX: i32 = 90;

/// Pairs of a slot and an id, or of an id and a slot.
type Entries = Vec<(i32, i32)>;

/// Returns the slots and the misses (id, slot) of a step of a row whose buffer is a list (slot, id), the least recently used
/// slot first.
fn list_step(list: &mut Entries, ids: &[i32]) -> (Vec<i32>, Entries) {
    let valid = |id: i32| (0..MAX).contains(&id);
    let (hits, mut others): (Entries, Entries) =
        list.iter().partition(|(_, id)| valid(*id) && ids.contains(id));
    let mut misses = Entries::new();
    let slots = ids.iter().map(|&id| match hits.iter().find(|hit| hit.1 == id) {
        _ if !valid(id) => -1,
        Some(&(slot, _)) => slot,
        None => {
            others[misses.len()].1 = id;
            misses.push((id, others[misses.len()].0));
            misses[misses.len() - 1].1
        }
    });
    let slots = slots.collect();
    others.rotate_left(misses.len());
    *list = [others, hits].concat();
    (slots, misses)
}

#[test]
fn lru_resident_compact_does_what_a_list_does_on_any_number_of_threads() {
    const K: usize = 12;
    const SLOTS: i32 = 40;
    for (rows, k, slots) in [(0, 3, 4), (1, 0, 4), (1, 5, 4)] {
        assert!(ResidentLru::new(rows, k, slots, 16, 1).is_err(), "{rows} {k} {slots}");
    }
    for threads in 1..=3 {
        let (mut random, rows) = (SplitMix64::new(threads as u64), 7);
        let mut lru = ResidentLru::new(rows, K, SLOTS as usize, MAX as usize, threads).unwrap();
        let empty: Entries = (0..SLOTS).map(|slot| (slot, -1)).collect();
        let mut lists = vec![empty; rows];
        for _ in 0..200 {
            let first = random.below(rows);
            let used = 1 + random.below(rows - first);
            let mut ids = Vec::new();
            for _ in 0..used {
                let mut context: Vec<i32> = (0..MAX + 3).collect();
                random.shuffle(&mut context);
                context[random.below(K)] = -1;
                ids.extend(&context[..K]);
            }
            lru.step(first, &ids).unwrap();
            for (row, ids) in (first..).zip(ids.chunks(K)) {
                let (slots, misses) = list_step(&mut lists[row], ids);
                let found = lru.row(row);
                assert_eq!((found.misses, &found.slots), (misses.len(), &slots));
                let ends = vec![(-1, -1); K - misses.len()];
                let listed = found.miss_ids.iter().copied().zip(found.miss_slots.iter().copied());
                assert_eq!(listed.collect::<Vec<_>>(), [misses, ends].concat());
                let order = found.order.iter().map(|&slot| (slot, found.id_at[slot as usize]));
                assert_eq!(order.collect::<Vec<_>>(), lists[row]);
            }
        }
    }
}

#[test]
fn exact_lru_evicts_in_the_order_of_the_last_use_and_no_id_of_the_step() {
    let mut lru = ExactLru::new(3).unwrap();
    for (ids, old) in [
        (vec![1, 2, 3], vec![]),
        (vec![1, 4], vec![2]),
        (vec![3, 5, 6], vec![1, 4]),
        (vec![2, 3], vec![5]),
    ] {
        let mut evicted = Vec::new();
        lru.select(&ids, |_, _, id| evicted.extend(id));
        assert_eq!(evicted, old, "{ids:?}");
    }
}
