//! Geometries and configurations out of range are refused when an engine is made.

use avsg::device::params::{Lifetime, Params, Table};
use avsg::engine::{Config, Engine, Indexers};
use avsg::pool::{Chunk, PoolConfig};
use avsg::rows::RowFormat;
use avsg_testkit::fixture;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

use super::{expect_error, format, params, pool_in};

#[test]
fn geometries_out_of_range_are_refused() {
    let wide = Params::wide(64, 1, 64);
    let paper = Params::paper(64, 1, 64);
    let primes = |a1, a2| Params { table: Table::Paper { a1, a2 }, ..paper };
    let bad: &[(Params, &[&str])] = &[
        (Params { k: 65, ..wide }, &["K is 65", "1..=64", "raise S"]),
        (Params { k: 0, ..wide }, &["K is 0", "1..=64"]),
        (Params { tokens: 2, ..wide }, &["N_q*K is 128", "S = 64", "raise S"]),
        (Params { tokens: 0, ..wide }, &["N_q (tokens per request) is 0", "1..=16"]),
        (Params { tokens: 17, k: 1, ..wide }, &["N_q (tokens per request) is 17", "1..=16"]),
        (Params { slots: 100, ..wide }, &["S (slots) is 100", "multiple of 64 in 64..=65536"]),
        (Params { slots: 192, ..paper }, &["S (slots) is 192", "power of two in 64..=32768"]),
        (Params { slots: 32, k: 1, ..wide }, &["S (slots) is 32", "64..=65536"]),
        (Params { slots: (1 << 16) + 64, ..wide }, &["S (slots) is 65600", "65536 or less"]),
        (Params { slots: 1 << 16, ..paper }, &["S (slots) is 65536", "32768 or less"]),
        (Params { slots: 0, ..wide }, &["S (slots) is 0"]),
        (Params { spread: 3, ..wide }, &["spread is 3", "1, 2 or 4"]),
        (Params { spread: 2, ..paper }, &["spread is 2", "paper's table has 1"]),
        (Params { retries: 16, ..wide }, &["R (retries) is 16", "0..=15"]),
        (
            Params { lifetime: Lifetime::Constant(-1), ..wide },
            &["lifetime is constant:-1", "0..=127"],
        ),
        (
            Params { lifetime: Lifetime::Constant(0), ..paper },
            &["lifetime is constant:0", "1..=127"],
        ),
        (Params { lifetime: Lifetime::Learned, ..paper }, &["lifetime is learned", "paper"]),
        (primes(2, 3), &["primes is 2,3", "odd"]),
        (primes(3, 0), &["primes is 3,0", "odd"]),
        (Params { page: 48, ..wide }, &["page is 48", "power of two", "65536"]),
        (Params { page: 1 << 17, ..wide }, &["page is 131072"]),
        (Params { page: 256, ..wide }, &["pool rows is 128", "a block is 256 rows"]),
    ];
    for (params, parts) in bad {
        let pool = || fixture::pool(1, 128, format());
        expect_error(Engine::new(Config::new(*params, 1), pool()), parts);
    }
}

#[test]
fn engine_configurations_out_of_range_are_refused() {
    for (states, cores, parts) in [
        (0, 1, &["states is 0", "1..=2147483647"][..]),
        (1 << 30, 1, &["device memory is"]),
        (1 << 31, 1, &["states is"]),
        (usize::MAX, 1, &["states is"]),
        (1, 0, &["cores is 0", "1..=1024"]),
        (1, 1025, &["cores is 1025", "1..=1024"]),
        (1, usize::MAX, &["cores is 18446744073709551615", "1..=1024"]),
    ] {
        let config = Config { cores, ..Config::new(params(), states) };
        expect_error(Engine::new(config, fixture::pool(1, 128, format())), parts);
    }
}

#[test]
fn indexers_that_do_not_cover_the_layers_are_refused() {
    expect_error(Indexers::of_layers(&[]), &["layers with an indexer is 0"]);
    expect_error(Indexers::of_layers(&[0, 2, 0]), &["indexer of a layer is 1", "without a gap"]);
    expect_error(Indexers::of_layers(&[0, 9]), &["indexer of a layer is 9", "there are 2"]);
    let config = Config { indexers: Indexers::per_layer(2).unwrap(), ..Config::new(params(), 1) };
    let engine = Engine::new(config, fixture::pool(4, 128, format()));
    expect_error(engine, &["is 2", "the pool has 4 layers"]);
    let each = Indexers::per_layer(4).unwrap();
    assert_eq!((each.count(), each.of(3)), (4, 3));
    assert_eq!(Indexers::of_layers(&[0, 1, 2, 3]).unwrap(), each);
    assert_eq!((Indexers::default().count(), Indexers::default().of(3)), (1, 0));
}

/// Kernels address host rows with 32-bit words.
#[test]
fn more_rows_than_a_word_can_count_are_refused() {
    let (rows, lengths) = ((1usize << 31) + 16, 1usize << 32);
    let config = PoolConfig::new(1, rows, RowFormat::single(1).unwrap());
    let (flags, access) = (MapFlags::PRIVATE | MapFlags::NORESERVE, ProtFlags::READ);
    // SAFETY: the operating system chooses the address of the new mapping, so it replaces no other
    // mapping.
    let at = unsafe { mmap_anonymous(std::ptr::null_mut(), lengths, access, flags) }.unwrap();
    for page in [0, 16] {
        // The region is never unmapped. The engine below is refused, so no row is written.
        let pool = pool_in(Chunk::new(at.cast(), lengths).unwrap(), &config, 1);
        assert_eq!(pool.rows(), rows);
        let params = Params { page, ..params() };
        expect_error(
            Engine::new(Config::new(params, 1), pool),
            &["pool rows is 2147483664", "2147483647"],
        );
    }
}
