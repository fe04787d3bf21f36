//! Every row copier copies the same bytes as a plain copy, for all sizes and odd alignments, and
//! writes no byte beside them.

use avsg::copy::Copier;
use avsg_testkit::tier::thorough;

const COPIERS: [Copier; 6] = [
    Copier::Plain,
    Copier::Prefetch { ahead: 0 },
    Copier::Prefetch { ahead: 3 },
    Copier::Stream { ahead: 0 },
    Copier::Stream { ahead: 2 },
    Copier::Stream { ahead: usize::MAX },
];
const GUARD: u8 = 0xA5;

/// Copies row i of `from` to slot `order[i]` of a guarded buffer and checks every byte of it.
fn check(copier: Copier, bytes: usize, from_skew: usize, to_skew: usize) {
    const ROWS: usize = 4;
    let order = [2usize, 0, 3, 1];
    // The guard bytes after each slot reveal a tail that is too long.
    let stride = bytes + 7;
    let byte = |i: usize| (i.wrapping_mul(167) >> 3) as u8 ^ 0x5A;
    let from: Vec<u8> = (0..from_skew + ROWS * bytes).map(byte).collect();
    let mut to = vec![GUARD; to_skew + ROWS * stride + 64];
    let mut expected = to.clone();
    for (i, &slot) in order.iter().enumerate() {
        let (row, at) = (from_skew + i * bytes, to_skew + slot * stride);
        expected[at..at + bytes].copy_from_slice(&from[row..row + bytes]);
    }
    let base = to.as_mut_ptr();
    // SAFETY: rows and slots lie inside the two vectors by their lengths above, the slots and the
    // vectors are distinct, and only this function accesses them.
    unsafe {
        copier.copy_rows(
            ROWS,
            bytes,
            |i| from.as_ptr().add(from_skew + i * bytes),
            |i| base.add(to_skew + order[i] * stride),
        );
    }
    assert!(to == expected, "{copier}: {bytes} bytes, source +{from_skew}, target +{to_skew}");
}

#[test]
fn every_size_and_every_target_alignment_are_copied() {
    // The default tier takes all sizes up to some vectors, and then one in seven.
    let sizes = (1..=1300).filter(|n| thorough() || *n <= 320 || n % 7 == 0);
    let sizes = sizes.flat_map(|n| [(n, 1, 3), (n, n % 61, 64 - n % 59)]);
    let lengths = [1, 63, 64, 65, 288, 656, 1152].into_iter();
    let targets = lengths.flat_map(|n| (0..128).map(move |skew| (n, 5, skew)));
    for (bytes, from_skew, to_skew) in sizes.chain(targets) {
        COPIERS.iter().for_each(|&copier| check(copier, bytes, from_skew, to_skew));
    }
}

#[test]
fn the_default_follows_from_the_length_of_a_row() {
    assert_eq!(Copier::for_rows(656), Copier::Prefetch { ahead: 4 });
    assert_eq!(Copier::for_rows(1023), Copier::Prefetch { ahead: 4 });
    assert_eq!(Copier::for_rows(4096), Copier::Stream { ahead: 4 });
    #[cfg(target_arch = "x86_64")]
    let streamed = !is_x86_feature_detected!("avx512f");
    #[cfg(not(target_arch = "x86_64"))]
    let streamed = false;
    assert_eq!(Copier::for_rows(1152) == Copier::Stream { ahead: 4 }, streamed);
}
