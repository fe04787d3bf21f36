//! Tests of the division of copies.

use super::*;

#[test]
fn a_plan_wakes_a_sleeping_worker_from_15000_ids_on() {
    let shared = |requests: usize, k: usize| {
        let cu_q: Vec<i32> = (0..=requests as i32).collect();
        let state = &cu_q[..requests];
        let batch = Batch { k, cu_q: &cu_q, state, ..Batch::default() };
        [false, true].map(|asleep| is_shared(match_nanoseconds(&batch), asleep))
    };
    assert_eq!(shared(1, 65536), [false, false], "one request is one piece");
    assert_eq!(shared(2, 499), [false, false]);
    assert_eq!(shared(2, 500), [true, false]);
    assert_eq!(shared(8, 1874), [true, false]);
    assert_eq!(shared(8, 1875), [true, true]);
}
