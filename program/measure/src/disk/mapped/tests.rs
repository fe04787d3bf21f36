//! Tests of the page cache.

use super::*;

#[test]
fn pages_are_evicted_in_the_order_of_their_last_use() {
    let mut cache = PageCache::new(3);
    assert!(cache.use_pages([1, 2, 3].into_iter()).is_empty());
    assert_eq!(cache.use_pages([1, 4].into_iter()), [2]);
    assert_eq!(cache.use_pages([3, 5, 6].into_iter()), [1, 4]);
    // 3 is the oldest, but this step uses it.
    assert_eq!(cache.use_pages([2, 3].into_iter()), [5]);
}
