use super::*;

#[test]
fn text_is_cut_between_characters() {
    let mut text = [7; 8];
    write_c_text(&mut text, &"ab\u{e9}\u{e9}\u{e9}");
    assert_eq!(text, *"ab\u{e9}\u{e9}\0\0".as_bytes());
    write_c_text(&mut text[..4], &format_args!("{}{}{}", "ab", "\u{e9}", "c"));
    assert_eq!(&text[..4], b"ab\0\0", "nothing follows what was cut off");
}
