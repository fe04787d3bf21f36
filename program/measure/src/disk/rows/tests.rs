//! Tests of the comparison of rows.

use super::*;

#[test]
fn a_wrong_byte_is_one_wrong_row() {
    let records = Records { count: 9, row_bytes: 24, layers: 2, stride: 64 };
    let mut record = vec![0; 64];
    fill_row(3, 0, &mut record[..24]);
    fill_row(3, 1, &mut record[24..48]);
    assert_eq!(records.wrong_rows(3, &record), 0);
    assert_eq!(records.wrong_rows(4, &record), 2);
    record[30] ^= 1;
    assert_eq!(records.wrong_rows(3, &record), 1);
}
