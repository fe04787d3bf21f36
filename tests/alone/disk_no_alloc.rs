//! Appending rows and reading records allocate no memory, on any thread of the process.

use avsg::disk::{PoolFile, Reader};
use avsg::pool::{HostPool, PoolConfig};
use avsg::rows::RowFormat;
use avsg_testkit::allocations::{self, calls};
use avsg_testkit::alone;
use avsg_testkit::scratch::{Scratch, adapted};

#[test]
fn appends_and_reads_allocate_nothing() {
    let _turn = alone::turn();
    allocations::check();
    let folder = Scratch::new();
    for (layers, io_uring, keep) in [(1, true, false), (3, true, true), (3, false, false)] {
        let path = if keep { folder.file("rows") } else { folder.path().to_owned() };
        let file = PoolFile { io_uring, keep, ..PoolFile::new(path) };
        let format = RowFormat::segments(&[1024, 128]).unwrap();
        let config =
            PoolConfig { file: Some(adapted(file)), ..PoolConfig::new(layers, 400, format) };
        let pool = HostPool::new(&config).unwrap();
        let store = pool.store().unwrap();
        let row = [vec![1; 1024], vec![2; 128]];
        let parts = [&row[0][..], &row[1]];
        let appended = calls(|| {
            for row in 0..300 {
                (0..layers).for_each(|layer| store.append(layer, row, &parts).unwrap());
            }
        });
        let len = store.layout().record_bytes(0);
        let mut memory = vec![0u8; 300 * len + 4096];
        let start = memory.as_ptr().align_offset(4096);
        let mut reader = Reader::new(store, 300).unwrap();
        let (mut done, mut right) = (0, 0);
        let read = calls(|| {
            for row in 0..300 {
                let to = memory[start + row * len..][..len].as_mut_ptr();
                // SAFETY: each record has its own place in `memory`, which lives until the end of the run.
                unsafe { reader.push(0, row * 7 % 300, to) }.unwrap();
            }
            reader.run(&mut |_| done += 1).unwrap();
            for at in 0..300 {
                let record = &memory[start + at * len..][..len];
                let row = store.row_in(record, layers - 1, at * 7 % 300).unwrap();
                right += usize::from(row[0] == 1 && row[1151] == 2);
            }
        });
        assert_eq!(
            (appended, read),
            (0, 0),
            "allocator calls of append and of reads, {layers} layers"
        );
        assert_eq!((done, right), (300, 300));
    }
}
