//! Tests of the comparison of rows.

use super::super::{FileShape, write_rows};
use super::*;
use crate::content::fill_row;

#[test]
fn a_wrong_row_is_found_whatever_a_step_does_while_rows_are_read() {
    let shape = FileShape { layers: 2, indexers: 2, rows: 1024, row_bytes: 24 };
    let config = shape.pool(None).unwrap();
    let pool = Arc::new(HostPool::new(&config).unwrap());
    write_rows(&pool).unwrap();
    let ids =
        |first| [(first..first + 8).collect::<Vec<i32>>(), (first..first + 8).collect()].concat();
    for way in [Way::Transfer, Way::HitsFirst, Way::Followers(2), Way::TwoGroups] {
        let work = StepWork { requests: 2, k: 8, slots: 64, compute_us: 1.0, way };
        let mut server = Server::new(Arc::clone(&pool), &config, work).unwrap();
        assert_eq!(server.step(&ids(0)).unwrap().wrong_rows, 0, "{way:?}");
        // The second request has the rows from 512 on.
        let mut row = [0; 24];
        pool.write_row(1, 512 + 9, &row).unwrap();
        assert_eq!(server.step(&ids(4)).unwrap().wrong_rows, 1, "{way:?}");
        fill_row(512 + 9, 1, &mut row);
        pool.write_row(1, 512 + 9, &row).unwrap();
    }
}
