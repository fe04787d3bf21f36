use super::*;
use crate::status::avsg_status::{self, AVSG_INVALID, AVSG_SIZE};

/// Returns the addresses of the segments of a list, or the status of the error.
fn addresses<const N: usize>(list: &[[usize; N]]) -> core::result::Result<Vec<u64>, avsg_status> {
    let mut all = Vec::new();
    let keep = |rows: Option<&[DeviceArray]>| {
        all.extend(rows.unwrap().iter().map(|of| of.address));
        Ok(())
    };
    // SAFETY: each element of the list has as many bytes as the `size` at its beginning, or a `size` that is
    // refused.
    let read = unsafe {
        with_rows::<_, AVSG_MAX_LIST_SEGMENTS>(list.as_ptr().cast(), list.len(), device_rows, keep)
    };
    read.map(|()| all).map_err(|failure| failure.status)
}

/// Returns the words of a struct of this size, with this address in its first segment.
fn words<const WORDS: usize>(size: usize, segments: usize, address: usize) -> [usize; WORDS] {
    let mut all = [0; WORDS];
    (all[0], all[1], all[2], all[3]) = (size, segments, address, address + 1);
    all
}

#[test]
fn a_list_has_the_structs_of_the_callers_version() {
    let own = size_of::<avsg_fresh>();
    assert_eq!(own, 80);
    assert_eq!(addresses::<10>(&[words(own, 2, 8), words(own, 2, 16)]), Ok(vec![8, 9, 16, 17]));
    let later = own + 16;
    assert_eq!(addresses::<12>(&[words(later, 1, 8), words(later, 1, 16)]), Ok(vec![8, 16]));
    assert_eq!(addresses::<12>(&[words(later, 1, 8), words(own, 1, 16)]), Err(AVSG_SIZE));
    assert_eq!(addresses::<10>(&[words(own, 0, 8)]), Err(AVSG_INVALID));
    assert_eq!(
        addresses::<10>(&vec![words(own, 1, 8); AVSG_MAX_LIST_SEGMENTS]).unwrap().len(),
        256
    );
    let many = vec![words(own, 1, 8); AVSG_MAX_LIST_SEGMENTS + 1];
    assert_eq!(addresses::<10>(&many), Err(AVSG_INVALID));
}
