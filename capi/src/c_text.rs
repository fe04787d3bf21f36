//! Text for C: NUL-terminated, of a fixed length, and formatted without an allocation.

use std::ffi::{CStr, c_char};
use std::fmt::{self, Display, Write};

/// A value as a NUL-terminated string of at most N bytes; characters that do not fit are cut off.
pub(crate) struct CText<const N: usize> {
    bytes: [u8; N],
    len: usize,
    full: bool,
}

impl<const N: usize> CText<N> {
    pub fn new(value: &(impl Display + ?Sized)) -> Self {
        let mut text = Self { bytes: [0; N], len: 0, full: false };
        // An error of the value's own formatting leaves what it has written.
        let _ = write!(text, "{value}");
        text
    }

    /// Returns the string with its NUL, and zeros behind it.
    pub fn bytes(&self) -> &[u8; N] {
        &self.bytes
    }

    /// Returns the string as an array of C's characters.
    pub fn chars(&self) -> [c_char; N] {
        self.bytes.map(|byte| byte as c_char)
    }

    /// Returns the string up to its first NUL.
    pub fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

impl<const N: usize> Write for CText<N> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let room = if self.full { 0 } else { N - 1 - self.len };
        let cut = part.floor_char_boundary(room);
        self.bytes[self.len..][..cut].copy_from_slice(&part.as_bytes()[..cut]);
        self.len += cut;
        self.full |= cut < part.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_between_characters() {
        let text = CText::<8>::new("ab\u{e9}\u{e9}\u{e9}");
        assert_eq!(text.as_c_str().to_str(), Ok("ab\u{e9}\u{e9}"));
        let parts = CText::<4>::new(&format_args!("{}{}{}", "ab", "\u{e9}", "c"));
        assert_eq!(parts.as_c_str().to_str(), Ok("ab"), "nothing follows what was cut off");
    }
}
