//! Tests of wrapped lines and tables.

use super::*;

#[test]
fn long_lines_are_broken_and_keep_their_column() {
    let text = "label     one two three\nfour five six seven\n  cmake -S a -B b\nunbreakable-word";
    let lines = "label     one two\n          three\nfour five six\nseven\n  cmake -S a -B b\nunbreakable-word\n";
    assert_eq!(wrapped(text, 17), lines);
    assert_eq!(wrapped(text, usize::MAX), format!("{text}\n"));
}

#[test]
fn a_table_is_markdown_whose_numbers_are_aligned_to_the_right() {
    let mut table = Table::new(["policy", "hit rate, %", "note"]);
    table.add_row(["a|b", "98.77", "1, 2"]);
    table.add_row(["c", ""]);
    let mut page = Page::default();
    page.text("first");
    page.table(&table);
    let expected = "first\n\n| policy | hit rate, % | note |\n| ------ | ----------: | ---: |\n\
                    | a\\|b   |       98.77 | 1, 2 |\n| c      |           - |    - |\n";
    assert_eq!(page.shown(None), expected);
}
