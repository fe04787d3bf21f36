//! Tests of the scalars of a launch.

use super::*;

const SEGMENT: Segment = Segment {
    bytes: 1152,
    host_stride: 1152,
    host_gap: 0,
    kv_stride: 1152,
    kv_gap: 0,
    fresh_stride: 1152,
    chunk_shift: 15,
    chunks: 3,
};

fn launch(segments: &[Segment]) -> Launch<'_> {
    Launch {
        requests: 16,
        rows: 64,
        k: 2048,
        ids_stride: 2048,
        block_stride: 0,
        pool_units: 65536,
        states: 16,
        cores: 40,
        copy_cores: 40,
        host_block_shift: 0,
        kv_block_shift: 0,
        kv_blocks: 0,
        slot_base: None,
        segments,
    }
}

#[test]
fn the_bytes_of_a_row_limit_the_rows_that_are_staged() {
    let p = Params::wide(2048, 4, 8192);
    let rows = |bytes: &[u32]| {
        let mut all = [SEGMENT; 3];
        all.iter_mut().zip(bytes).for_each(|(segment, &bytes)| segment.bytes = bytes);
        let tiling = Tiling::new(&p, &launch(&all[..bytes.len()]));
        tiling.map(|t| t.half_rows).map_err(|fault| (fault.what, fault.value))
    };
    assert_eq!(rows(&[1152]), Ok(32));
    assert_eq!(rows(&[7]), Ok(32));
    assert_eq!(rows(&[8192, 33]), Ok(7));
    assert_eq!(rows(&[HALF_BYTES]), Ok(1));
    assert_eq!(rows(&[HALF_BYTES + 1]), Err(("row bytes", u64::from(HALF_BYTES) + 32)));
    assert_eq!(rows(&[0]), Err(("row bytes", 0)));
    assert_eq!(rows(&[]), Err(("segments", 0)));
    assert_eq!(rows(&[1, 1, 1]), Err(("segments", 3)));
}

#[test]
fn the_second_segment_follows_the_first_in_the_chunk_table() {
    let p = Params::wide(2048, 1, 8192);
    let two = [SEGMENT, Segment { bytes: 128, chunk_shift: 18, chunks: 1, ..SEGMENT }];
    let t = Tiling::new(&p, &launch(&two)).unwrap();
    assert_eq!((t.chunk_first, t.chunk_shift, t.chunks), ([0, 3], [15, 18], 4));
    assert_eq!(t.words()[..10], [16, 2048, 2048, 0, 65536, 16, 40, 1, 2048, 2]);
    assert_eq!(t.words()[10..18], [1152, 128, 0, 3, 15, 18, 4, 32]);
    assert_eq!(t.words()[18..24], [1152; 6]);
    assert_eq!(t.words()[24..], [0, 0, 0, 0, 0, 0, 0, -1]);
    let blocked = [Segment { host_gap: -72, kv_gap: 640, ..SEGMENT }];
    let shifts = Launch {
        host_block_shift: 4,
        kv_block_shift: 7,
        kv_blocks: 900,
        slot_base: Some(5),
        ..launch(&blocked)
    };
    let t = Tiling::new(&p, &shifts).unwrap();
    assert_eq!(t.words()[24..], [4, -72, 0, 7, 640, 0, 900, 5]);
    // Each of four requests has ten cores.
    let few = Tiling::new(&p, &Launch { requests: 4, ..launch(&two) }).unwrap();
    assert_eq!((few.sharers, few.share_len), (10, 208));
    let many = [SEGMENT, Segment { chunks: MAX_CHUNKS - 2, ..SEGMENT }];
    let chunks = u64::from(MAX_CHUNKS) + 1;
    let fault = Tiling::new(&p, &launch(&many)).unwrap_err();
    assert_eq!((fault.what, fault.value), ("chunks of a layer", chunks));
}

#[test]
fn quantities_that_a_kernel_cannot_count_are_refused() {
    let p = Params { page: 128, ..Params::wide(2048, 1, 8192) };
    let one = [SEGMENT];
    let fault = |l: Launch<'_>| {
        let fault = Tiling::new(&p, &l).unwrap_err();
        (fault.what, fault.value)
    };
    let l = launch(&one);
    assert_eq!(fault(Launch { rows: 1 << 20, ..l }), ("words of an array", 1 << 31));
    assert_eq!(fault(Launch { pool_units: 1 << 24, ..l }), ("words of an array", 1 << 31));
    assert_eq!(fault(Launch { block_stride: 1 << 27, ..l }), ("words of an array", 1 << 31));
    assert_eq!(fault(Launch { copy_cores: 0, ..l }), ("cores", 0));
    assert_eq!(fault(Launch { k: 2049, ..l }), ("k", 2049));
    assert_eq!(fault(Launch { k: 9, ids_stride: 8, ..l }), ("k", 9));
    let oversized = [Segment { chunk_shift: 31, ..SEGMENT }];
    assert_eq!(fault(Launch { segments: &oversized, ..l }), ("rows of a chunk", 1 << 31));
    assert_eq!(fault(Launch { host_block_shift: 31, ..l }), ("rows of a chunk", 1 << 31));
    assert_eq!(fault(Launch { kv_block_shift: 31, ..l }), ("rows of a chunk", 1 << 31));
    let table = |kv_block_shift| Launch { kv_block_shift, kv_blocks: 1, ..l };
    assert_eq!(fault(table(3)), ("blocks of a state", 1024));
    assert!(Tiling::new(&p, &table(4)).is_ok());
}
