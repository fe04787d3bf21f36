use super::*;
use crate::status::avsg_status::AVSG_OK;

#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
struct Grown {
    size: usize,
    old: u64,
    new: u64,
}
// SAFETY: the struct is repr(C), and its fields are three words, `size` first.
unsafe impl SizedStruct for Grown {
    const NAME: &'static str = "grown";
    const FIRST_SIZE: usize = 16;
}

fn read_words(words: &[u64]) -> core::result::Result<Grown, avsg_status> {
    // SAFETY: each case below has as many bytes as its first word, or a first word that is
    // refused.
    unsafe { read(words.as_ptr().cast::<Grown>()) }.map_err(|fail| fail.status)
}

#[test]
fn structs_of_older_and_newer_versions_are_read() {
    assert_eq!(read_words(&[16, 5]), Ok(Grown { size: 16, old: 5, new: 0 }));
    assert_eq!(read_words(&[24, 5, 6]), Ok(Grown { size: 24, old: 5, new: 6 }));
    assert_eq!(read_words(&[32, 5, 6, 0]), Ok(Grown { size: 32, old: 5, new: 6 }));
    assert_eq!(read_words(&[32, 5, 6, 1]), Err(AVSG_SIZE));
    for size in [0, 8, 15, 17, 20, 23, 4097, u64::MAX] {
        assert_eq!(read_words(&[size, 5, 6]), Err(AVSG_SIZE));
    }
}

#[test]
fn results_are_written_as_the_callers_version() {
    let value = Grown { size: 0, old: 5, new: 6 };
    for (size, want) in [(16, [16, 5, 9, 9]), (24, [24, 5, 6, 9]), (32, [32, 5, 6, 0])] {
        let mut words = [size, 9, 9, 9u64];
        // SAFETY: the array has at least as many bytes as its first word.
        let status = unsafe { give_struct(words.as_mut_ptr().cast(), || Ok(value)) };
        assert_eq!((status, words), (AVSG_OK, want));
    }
}
