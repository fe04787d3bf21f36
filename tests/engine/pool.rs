//! The host pool and the device buffer: geometry, roles, sharing, and errors. That rows are read back from chunks is checked by
//! random workloads, whose chunks are small.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use avsg::buffer::BufferConfig;
use avsg::device::params::Params;
use avsg::engine::{Config, Engine};
use avsg::pool::{DESC_BYTES, HostPool, Pages, PoolConfig, Role};
use avsg::rows::RowFormat;
use avsg_testkit::content::fill_row;
use avsg_testkit::fixture;
use avsg_testkit::refusal::expect_error;
use xxhash_rust::xxh3::xxh3_64_with_seed;

fn small(rows: usize) -> PoolConfig {
    let format = RowFormat::segments(&[1024, 128]).unwrap();
    PoolConfig { chunk_bytes: 64 << 10, ..PoolConfig::new(2, rows, format) }
}

#[test]
fn a_pool_can_be_created_from_every_kind_of_pages() {
    let format = RowFormat::single(1152).unwrap();
    let config = |pages| PoolConfig { pages, ..PoolConfig::new(2, 8192, format.clone()) };
    let (mut written, mut read) = ([0; 1152], [1; 1152]);
    fill_row(8191, 1, &mut written);
    for pages in [Pages::Huge1G, Pages::Huge2M, Pages::Thp, Pages::Plain] {
        let pool = HostPool::new(&config(pages)).unwrap();
        println!("{pages}: {}, {} of {} bytes", pool.pages(), pool.huge_bytes(), pool.bytes());
        assert!(pool.pages() != Pages::Caller);
        pool.write_row(1, 8191, &written).unwrap();
        pool.read_row(1, 8191, &mut read).unwrap();
        assert_eq!(read, written);
        pool.read_row(0, 8191, &mut read).unwrap();
        assert_eq!(read, [0; 1152], "a new pool is zeroed");
    }
    expect_error(HostPool::new(&config(Pages::Caller)), &["by a layout"]);
}

#[test]
fn core_dumps_leave_a_pool_out_in_both_processes() {
    let pool = HostPool::new(&small(10)).unwrap();
    let export = pool.export().unwrap();
    let imported = HostPool::import(&export.desc, export.fd, Role::Reader).unwrap();
    let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    for pool in [pool, imported] {
        let start = format!("\n{:x}-", pool.chunks().next().unwrap().ptr().addr());
        let (_, of_pool) = smaps.split_once(&start).expect("the pool begins a range");
        let flags = of_pool.lines().find(|line| line.starts_with("VmFlags:")).unwrap();
        assert!(flags.split(' ').any(|flag| flag == "dd"), "{flags}");
    }
}

/// The other numbers of a pool and of a row are refused by `bindings/c/tests/calls/refusals`.
#[test]
fn indices_and_sizes_out_of_range_are_refused() {
    // A chunk holds 64 rows of 1024 bytes or 512 rows of 128, and the last chunk is partly used.
    let pool = HostPool::new(&small(1000)).unwrap();
    assert_eq!(pool.chunks().len(), 2 * (16 + 2));
    assert!(pool.chunks().all(|chunk| chunk.ptr().addr() % 4096 == 0 && chunk.len() <= 64 << 10));
    let mut bytes = vec![0; 1152];
    expect_error(pool.view(5, 0), &["layer is 5"]);
    expect_error(pool.view(0, 2), &["segment is 2"]);
    let rows = pool.view(1, 1).unwrap();
    assert!(rows.ptr(1000).is_null() && !rows.ptr(999).is_null());

    let (layers, format) = (pool.layers(), pool.format().clone());
    let engine = fixture::engine(Params::wide(16, 1, 64), 3, 1, pool);
    let buffer = engine.buffer();
    let config = BufferConfig { states: 3, layers, slots: 64, format };
    assert_eq!(buffer.bytes(), config.bytes().unwrap());
    assert!(buffer.view(0, 0, 0).unwrap().ptr(64).is_null());
    expect_error(buffer.view(0, 2, 0), &["layer is 2"]);
    expect_error(buffer.slot_bytes(0, 0, 64, &mut bytes), &["slot is 64"]);
    expect_error(buffer.slot_bytes(0, 0, 0, &mut []), &["0 bytes"]);

    expect_error(RowFormat::segments(&[1; 5]), &["segment count is 5"]);
    // More memory than the machine has is refused, too.
    let terabytes = ["1125899906842624 bytes", "available to this process by "];
    let format = RowFormat::single(1024).unwrap();
    for (layers, rows, chunk_bytes, parts) in [
        (1, 1, 0, &["chunk bytes is 0"][..]),
        (1, 1 << 40, 1 << 30, &terabytes),
        (8, usize::MAX / 1024, 1 << 30, &["address space"]),
    ] {
        let config = PoolConfig { chunk_bytes, ..PoolConfig::new(layers, rows, format.clone()) };
        expect_error(HostPool::new(&config), parts);
    }
    let small = HostPool::new(&PoolConfig::new(1, 1, format)).unwrap();
    let huge = Config::new(Params::wide(64, 1, 1 << 15), 1 << 25);
    expect_error(
        Engine::new(huge, small),
        &["device memory is 1", "available to this process by "],
    );
    let config = BufferConfig { states: usize::MAX, ..config };
    expect_error(config.bytes(), &["address space"]);
}

#[test]
fn files_of_other_sizes_or_without_seals_are_refused() {
    let pool = HostPool::new(&small(10)).unwrap();
    let other = HostPool::new(&small(5000)).unwrap();
    let short = pool.export().unwrap().fd;
    let desc = other.export().unwrap().desc;
    expect_error(HostPool::import(&desc, short, Role::Reader), &["this geometry needs"]);

    let file = |bytes: u64| {
        let path = std::env::temp_dir().join(format!("avsg-pool-{}", std::process::id()));
        let file = File::create_new(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        file.set_len(bytes).unwrap();
        OwnedFd::from(file)
    };
    let long_enough = HostPool::plan_bytes(&small(5000)).unwrap() as u64;
    expect_error(HostPool::import(&desc, file(long_enough), Role::Reader), &["sealed"]);
    expect_error(HostPool::import(&desc, file(1 << 40), Role::Reader), &["1099511627776"]);
    let (socket, _peer) = UnixStream::pair().unwrap();
    assert!(HostPool::import(&desc, socket.into(), Role::Writer).is_err());
}

/// Mapping such a file takes memory for every page that it lacks.
#[test]
fn a_sealed_file_without_pages_is_no_more_than_the_memory() {
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
    let rows = 4 * avsg::system::available_memory::bytes().unwrap_or(1 << 50) / 1152;
    let desc = HostPool::new(&small(10)).unwrap().export().unwrap().desc;
    let words = desc.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
    let mut words: Vec<u64> = words.collect();
    // The number of rows, and the checksum of the words around it.
    words[2] = rows as u64;
    let [before, behind] = [&words[..5], &words[6..]]
        .map(|words| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>());
    words[5] = xxh3_64_with_seed(&behind, xxh3_64_with_seed(&before, 0));
    let desc: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let fd = memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    ftruncate(&fd, HostPool::plan_bytes(&small(rows)).unwrap() as u64).unwrap();
    fcntl_add_seals(&fd, SealFlags::SHRINK).unwrap();
    let parts = ["part of the pool file without pages", "available"];
    expect_error(HostPool::import(&desc, fd, Role::Reader), &parts);
}

#[test]
fn descriptors_round_trip_and_any_damaged_byte_is_refused() {
    let export = HostPool::new(&small(10)).unwrap().export().unwrap();
    let (bytes, import) = (export.desc, |desc: &[u8]| {
        HostPool::import(desc, export.fd.try_clone().unwrap(), Role::Reader)
    });
    assert_eq!(import(&bytes).unwrap().export().unwrap().desc, bytes);
    expect_error(import(&bytes[1..]), &["pool descriptor"]);
    for at in 0..DESC_BYTES {
        for value in (0..=255).filter(|&value| value != bytes[at]) {
            let mut damaged = bytes;
            damaged[at] = value;
            expect_error(import(&damaged), &["pool descriptor is"]);
        }
    }
}
