//! Text for C: NUL-terminated, of a fixed length, and formatted without an allocation.

use std::ffi::c_char;
use std::fmt::{self, Display, Write};

/// Formats a value into `bytes` as a NUL-terminated string, with zeros behind it; characters that do not
/// fit are cut off. It takes a few hundred bytes of the stack, unlike a string that is returned.
#[inline(never)]
pub(crate) fn write_c_text(bytes: &mut [u8], value: &dyn Display) {
    bytes.fill(0);
    // An error of the value's own formatting leaves what it has written.
    let _ = write!(Writer { bytes, len: 0, full: false }, "{value}");
}

/// Returns a value as an array of C's characters, as [`write_c_text`] writes it.
pub(crate) fn c_chars<const N: usize>(value: &dyn Display) -> [c_char; N] {
    let mut bytes = [0; N];
    write_c_text(&mut bytes, value);
    bytes.map(|byte| byte as c_char)
}

struct Writer<'a> {
    bytes: &'a mut [u8],
    len: usize,
    full: bool,
}

impl Write for Writer<'_> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let room = if self.full { 0 } else { self.bytes.len() - 1 - self.len };
        let cut = part.floor_char_boundary(room);
        self.bytes[self.len..][..cut].copy_from_slice(&part.as_bytes()[..cut]);
        self.len += cut;
        self.full |= cut < part.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
