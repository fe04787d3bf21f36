//! Every row copier copies the same bytes as a plain copy, for all sizes and odd alignments, and
//! writes no byte beside them.

use avsg::copy::{Copier, measure_copy};

const COPIERS: [Copier; 6] = [
    Copier::Plain,
    Copier::Prefetch { ahead: 0 },
    Copier::Prefetch { ahead: 3 },
    Copier::Stream { ahead: 0 },
    Copier::Stream { ahead: 2 },
    Copier::Stream { ahead: usize::MAX },
];
const GUARD: u8 = 0xA5;

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i.wrapping_mul(167) >> 3) as u8 ^ 0x5A).collect()
}

/// Copies row i of `from` to slot `order[i]` of a guarded buffer and checks every byte of it.
fn check(copier: Copier, bytes: usize, from_skew: usize, to_skew: usize) {
    const ROWS: usize = 4;
    let order = [2usize, 0, 3, 1];
    // The guard bytes after each slot reveal a tail that is too long.
    let stride = bytes + 7;
    let from = pattern(from_skew + ROWS * bytes);
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
fn every_size_is_copied_at_odd_alignments() {
    for bytes in 1..=1300 {
        for copier in COPIERS {
            check(copier, bytes, 1, 3);
            check(copier, bytes, bytes % 61, 64 - bytes % 59);
        }
    }
}

#[test]
fn rows_are_copied_to_every_target_alignment() {
    for bytes in [1, 63, 64, 65, 288, 656, 1152] {
        for skew in 0..128 {
            for copier in COPIERS {
                check(copier, bytes, 5, skew);
            }
        }
    }
}

#[test]
fn the_default_follows_from_the_length_of_a_row_and_has_a_rate() {
    assert_eq!(Copier::for_rows(656), Copier::Prefetch { ahead: 4 });
    assert_eq!(Copier::for_rows(4095), Copier::Prefetch { ahead: 4 });
    assert_eq!(Copier::for_rows(4096), Copier::Stream { ahead: 4 });
    for bytes in [1, 288, 656, 1152, 1 << 20] {
        assert!(measure_copy(64, bytes, Copier::for_rows(bytes)).unwrap() > 0.0);
    }
    // Sizes that cannot be measured must neither panic nor allocate.
    assert!(measure_copy(0, 1152, Copier::Plain).is_err());
    assert!(measure_copy(1 << 30, 1 << 20, Copier::Plain).is_err());
    assert!(measure_copy(usize::MAX, usize::MAX, Copier::Plain).is_err());
}
