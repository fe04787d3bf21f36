//! The slots that some lifetimes choose, on machines that compare 64 lifetimes to one word of bits.

/// Appends the index of each lifetime that `chosen` sets to `to` from `len` on, until it holds
/// `limit`. Returns the new length. `to` has 64 words more than `limit`. `write_all` writes the
/// numbers of the set bits of a word, counted from its second argument.
///
/// Victims are sparse: few words have more than four. So the first four of a word are written without
/// a branch on their number; what follows the last one is overwritten by the next word's.
#[inline(always)]
pub fn append_chosen(
    to: &mut [i32],
    mut len: usize,
    life: &[i8],
    limit: usize,
    chosen: impl Fn(&[i8; 64]) -> u64,
    write_all: impl Fn(&mut [i32], i32, u64),
) -> usize {
    // A branch over the empty words pays where nearly all are empty, so that it is predicted.
    let few = limit < life.len() / 256;
    for (w, word) in life.as_chunks::<64>().0.iter().enumerate() {
        if len >= limit {
            return limit;
        }
        let set = chosen(word);
        if few && set == 0 {
            continue;
        }
        let (first, count) = ((64 * w) as i32, set.count_ones() as usize);
        if count <= 8 {
            let words = &mut to[len..len + 8];
            let rest = write_four(&mut words[..4], first, set);
            if count > 4 {
                write_four(&mut words[4..], first, rest);
            }
        } else {
            write_all(&mut to[len..len + 64], first, set);
        }
        len += count;
    }
    len.min(limit)
}

/// Writes `first` + the numbers of the four lowest bits of a set, and returns the set without them. A
/// set of fewer bits leaves the last words with a number that means nothing.
#[inline(always)]
fn write_four(to: &mut [i32], first: i32, mut set: u64) -> u64 {
    for word in to {
        *word = first + set.trailing_zeros() as i32;
        set &= set.wrapping_sub(1);
    }
    set
}
