//! Tests of grids.

use super::*;

/// Returns the bytes that rows cover, or `None` if two rows do.
fn listed(start: usize, strides: Strides, [count, bytes]: [usize; 2]) -> Option<Vec<usize>> {
    let mut covered: Vec<usize> = (0..count)
        .flat_map(|n| {
            let at = match strides.block_rows {
                0 => n * strides.row,
                rows => n / rows * strides.block + n % rows * strides.row,
            };
            start + at..start + at + bytes
        })
        .collect();
    covered.sort_unstable();
    covered.windows(2).all(|pair| pair[0] < pair[1]).then_some(covered)
}

/// Compares with lists of all bytes: grids are refused if their rows overlap, and what is accepted
/// meets exactly where the lists do.
#[test]
fn grids_meet_where_lists_of_their_bytes_do() {
    let mut word = 1u64;
    let mut below = |n: u64| {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((word >> 33) % n) as usize
    };
    let (mut meet, mut apart, mut refused) = (0, 0, 0);
    let mut last: Vec<(Vec<usize>, Grids)> = Vec::new();
    for _ in 0..20_000 {
        let block_rows = [0, 1, 2, 4][below(4)];
        // Equal strides, which interleave, are frequent.
        let strides = Strides { block_rows, block: [5, 12, 24, 30][below(4)], row: 1 + below(24) };
        let (start, shape) = (below(60), [1 + below(9), 1 + below(4)]);
        let slots = Content::Of("slots", [0, 0]);
        let grids = Grid::of(slots, start, strides, shape);
        let grids = grids.and_then(|grids| check([Ok(grids.clone())].into_iter()).map(|()| grids));
        let Some(list) = listed(start, strides, shape) else {
            assert!(grids.is_err(), "{strides:?} {shape:?}");
            refused += 1;
            continue;
        };
        // Rows that lie between each other in a way that does not nest are refused, too.
        let Ok(grids) = grids else { continue };
        assert_eq!(grids.iter().map(Grid::end).max(), list.last().map(|last| last + 1));
        for (other, others) in &last {
            let common = list.iter().any(|byte| other.binary_search(byte).is_ok());
            let both = [others, &grids].map(|grids| Ok(grids.clone()));
            assert_eq!(check(both.into_iter()).is_err(), common, "{others:?} {grids:?}");
            *(if common { &mut meet } else { &mut apart }) += 1;
        }
        last.insert(0, (list, grids));
        last.truncate(4);
    }
    println!("{meet} pairs meet, {apart} do not, {refused} refused");
    assert!(meet > 10_000 && apart > 10_000 && refused > 1000);
}

#[test]
fn what_wraps_the_address_space_is_refused() {
    let of = |start, row, count| {
        let slots = Content::Of("slots", [3, 1]);
        Grid::of(slots, start, Strides::rows(row), [count, 8]).map(drop)
    };
    of(isize::MAX as usize - 8, 8, 1).unwrap();
    for (start, row, count) in [
        (isize::MAX as usize - 7, 8, 1),
        (usize::MAX - 3, 8, 1),
        (4096, usize::MAX / 2, 2),
        (4096, usize::MAX / 2, 4),
    ] {
        let text = of(start, row, count).unwrap_err().to_string();
        assert!(text.contains("slots of layer 3, segment 1 from"), "{text}");
        assert!(text.contains("address space"), "{text}");
    }
}
