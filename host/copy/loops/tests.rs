//! Tests of the copy loops of every width.

use super::super::RowCopier;
use super::*;

/// The tests of `Copier` run the widest loop only; this one runs every loop of this CPU.
#[test]
fn every_width_copies_every_size() {
    let mut loops: Vec<RowCopier> = Vec::new();
    if is_x86_feature_detected!("avx2") {
        loops.extend([avx2::<false> as RowCopier, avx2::<true>]);
    }
    if is_x86_feature_detected!("avx512f") {
        loops.extend([avx512::<false> as RowCopier, avx512::<true>]);
    }
    let from: Vec<u8> = (0..700u32).map(|i| (i * 7 + 1) as u8).collect();
    for copy in loops {
        for bytes in 1..300 {
            let (skew, at) = (bytes % 67, bytes % 71);
            let mut to = vec![0u8; 500];
            let next = (from.as_ptr(), std::ptr::null());
            // SAFETY: 67 + 300 < 700 and 71 + 300 < 500, so the ranges are inside their
            // vectors, which are disjoint; this CPU has the instructions of the loops.
            unsafe { copy(from.as_ptr().add(skew), to.as_mut_ptr().add(at), bytes, next) };
            fence();
            assert_eq!(to[at..at + bytes], from[skew..skew + bytes]);
            assert!(to[..at].iter().chain(&to[at + bytes..]).all(|&byte| byte == 0));
        }
    }
}
