//! Tests of the baseline with the algorithm of vLLM-Ascend's `lru_resident_compact`: a list model,
//! and known values.

use avsg_cli::baseline::resident_lru::{ResidentLru, Selection};
use avsg_testkit::splitmix::SplitMix64;

/// A row's buffer as two lists, searched from front to back.
struct Model {
    request: i64,
    id_at: Vec<i32>,
    order: Vec<i32>,
}

impl Model {
    /// Returns the slots and the misses (id, slot) of one step.
    fn step(
        &mut self,
        ids: &[i32],
        request: i64,
        stable: i32,
        max: i32,
    ) -> (Vec<i32>, Vec<(i32, i32)>) {
        if self.request != request {
            self.id_at.fill(-1);
            self.order = (0..self.id_at.len() as i32).collect();
            self.request = request;
        }
        self.id_at.iter_mut().filter(|id| **id >= stable).for_each(|id| *id = -1);
        let valid = |id: i32| (0..max).contains(&id);
        let selected = |slot: &i32| {
            let id = self.id_at[*slot as usize];
            valid(id) && ids.contains(&id)
        };
        let (hits, others): (Vec<i32>, Vec<i32>) = self.order.iter().partition(|s| selected(s));
        let mut slots: Vec<i32> = ids
            .iter()
            .map(|&id| hits.iter().copied().find(|&s| valid(id) && self.id_at[s as usize] == id))
            .map(|slot| slot.unwrap_or(-1))
            .collect();
        let mut misses = Vec::new();
        for (&id, slot) in ids.iter().zip(&mut slots).filter(|(id, slot)| valid(**id) && **slot < 0)
        {
            *slot = others[misses.len()];
            self.id_at[*slot as usize] = id;
            misses.push((id, *slot));
        }
        let (taken, kept) = others.split_at(misses.len());
        self.order = [kept, taken, &hits].concat();
        (slots, misses)
    }
}

fn listed(column: &[i32], n: usize) -> Vec<i32> {
    assert!(column[n..].iter().all(|&value| value == -1), "a list ends with -1");
    column[..n].to_vec()
}

#[test]
fn it_does_what_two_lists_do_on_any_number_of_threads() {
    const K: usize = 12;
    const SLOTS: usize = 40;
    const MAX: i32 = 90;
    for threads in 1..=3 {
        let mut random = SplitMix64::new(threads as u64);
        let rows = 7;
        let mut lru = ResidentLru::new(rows, K, SLOTS, MAX as usize, threads).unwrap();
        let model = || Model { request: -1, id_at: vec![-1; SLOTS], order: (0..40).collect() };
        let mut models: Vec<Model> = (0..rows).map(|_| model()).collect();
        let mut requests: Vec<i64> = (0..rows as i64).collect();
        for _ in 0..200 {
            let first = random.below(rows);
            let used = 1 + random.below(rows - first);
            let (mut ids, mut stable) = (Vec::new(), Vec::new());
            for request in &mut requests[first..][..used] {
                let mut context: Vec<i32> = (0..MAX + 3).collect();
                random.shuffle(&mut context);
                context[random.below(K)] = -1;
                ids.extend(&context[..K]);
                stable.push(if random.below(3) == 0 { random.below(110) as i32 - 5 } else { MAX });
                *request += 100 * i64::from(random.below(15) == 0);
            }
            let selected = &requests[first..][..used];
            let selection = Selection { ids: &ids, first, requests: selected, stable: &stable };
            lru.step(&selection).unwrap();
            for (row, model) in models[first..][..used].iter_mut().enumerate() {
                let ids = &ids[row * K..][..K];
                let (slots, misses) = model.step(ids, selected[row], stable[row], MAX);
                let found = lru.row(first + row);
                assert_eq!((found.misses, &found.slots), (misses.len(), &slots));
                let (missed, taken): (Vec<i32>, Vec<i32>) = misses.into_iter().unzip();
                assert_eq!(listed(&found.miss_ids, found.misses), missed);
                assert_eq!(listed(&found.miss_slots, found.misses), taken);
                assert_eq!((&found.id_at, &found.order), (&model.id_at, &model.order));
            }
        }
    }
}

#[test]
fn sizes_without_meaning_are_refused() {
    for (rows, k, slots) in [(0, 3, 4), (1, 0, 4), (1, 5, 4)] {
        assert!(ResidentLru::new(rows, k, slots, 16, 1).is_err(), "{rows} {k} {slots}");
    }
}
