//! Pools in the hugepages that root has set aside (`vm.nr_hugepages`), of each size that is free.

use std::fs;

use avsg::pool::{HostPool, Pages, PoolConfig, Role};
use avsg::rows::RowFormat;
use avsg_testkit::alone;
use avsg_testkit::content::fill_row;

const ROW: usize = 4096;

#[test]
fn a_pool_and_its_import_have_the_hugepages_that_are_free() {
    let _turn = alone::turn();
    for (pages, page) in [(Pages::Huge2M, 2 << 20), (Pages::Huge1G, 1 << 30)] {
        let path = format!("/sys/kernel/mm/hugepages/hugepages-{}kB/free_hugepages", page >> 10);
        let free = || fs::read_to_string(&path).map_or(0, |text| text.trim().parse().unwrap());
        let format = RowFormat::single(ROW).unwrap();
        let config = PoolConfig { pages, ..PoolConfig::new(1, page / ROW, format) };
        // Another process may take the last one between two lines of this test.
        let made = (free() > 0).then(|| HostPool::new(&config).unwrap());
        let Some(pool) = made.filter(|pool| pool.pages() == pages || free() > 0) else {
            println!("skipped: no {pages} are free (as root, write a number to vm.nr_hugepages)");
            continue;
        };
        assert_eq!((pool.pages(), pool.huge_bytes(), pool.bytes()), (pages, page, page));
        let (mut written, mut read) = ([0; ROW], [1; ROW]);
        pool.read_row(0, 0, &mut read).unwrap();
        assert_eq!(read, [0; ROW], "a new pool is zeroed");
        let last = page / ROW - 1;
        fill_row(last as i32, 0, &mut written);
        pool.write_row(0, last, &written).unwrap();
        let export = pool.export().unwrap();
        drop(pool);
        // The next writer maps the same pages, and may cease to be one.
        let mut next = HostPool::import(&export.desc, export.fd, Role::Writer).unwrap();
        assert_eq!((next.pages(), next.huge_bytes()), (pages, page));
        next.demote().unwrap();
        next.read_row(0, last, &mut read).unwrap();
        assert_eq!(read, written);
        println!("{pages}: a pool of {page} bytes has them");
    }
}
