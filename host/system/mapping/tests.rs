//! Tests of mappings.

use super::{Mapping, huge_bytes_in};

#[test]
fn populating_without_the_advice_works() {
    // This is the path of kernels before 5.14, which the test machines do not have.
    let mapping = Mapping::anonymous("test", 3 * 4096).unwrap();
    mapping.read_zeros(4096, 2 * 4096).unwrap();
    // SAFETY: the mapping has 3 pages, and no other thread uses it.
    assert_eq!(unsafe { mapping.ptr().add(8191).read() }, 0);
    mapping.protect("test").unwrap();
    // Memory that cannot be written is an error, not a signal.
    assert!(mapping.read_zeros(0, 4096).is_err());
}

#[test]
fn smaps_lines_count_only_inside() {
    let smaps = "1000-3000 rw-s 00000000 00:01 5 /memfd:avsg (deleted)\n\
                 Size: 8 kB\nShmemPmdMapped:     2048 kB\nVmFlags: rd wr\n\
                 9000-a000 rw-p 00000000 00:00 0\nAnonHugePages: 4096 kB\n";
    assert_eq!(huge_bytes_in(smaps, 0x1000, 0x3000), 2048 << 10);
    assert_eq!(huge_bytes_in(smaps, 0x9000, 0xa000), 4096 << 10);
    assert_eq!(huge_bytes_in(smaps, 0x5000, 0x6000), 0);
}
