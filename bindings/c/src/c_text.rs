//! Text for C: NUL-terminated, of a fixed length, and formatted without an allocation.

use std::ffi::c_char;
use std::fmt::{self, Display, Write};
use std::mem;

/// Formats a value into `bytes` as a NUL-terminated string, with zeros behind it; characters that do not
/// fit are cut off. It takes a few hundred bytes of the stack, unlike a string that is returned.
#[inline(never)]
pub(crate) fn write_c_text(bytes: &mut [u8], value: &dyn Display) {
    bytes.fill(0);
    // An error of the value's own formatting leaves what it has written.
    let _ = write!(Writer(bytes), "{value}");
}

/// Returns a value as an array of C's characters, as [`write_c_text`] writes it.
pub(crate) fn c_chars<const N: usize>(value: &dyn Display) -> [c_char; N] {
    let mut bytes = [0; N];
    write_c_text(&mut bytes, value);
    bytes.map(|byte| byte as c_char)
}

/// The bytes that are left, of which the last one stays 0.
struct Writer<'a>(&'a mut [u8]);

impl Write for Writer<'_> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let cut = part.floor_char_boundary(self.0.len() - 1);
        let (to, rest) = mem::take(&mut self.0).split_at_mut(cut);
        to.copy_from_slice(&part.as_bytes()[..cut]);
        // Behind a part that was cut nothing is written.
        let left = if cut < part.len() { 1 } else { rest.len() };
        self.0 = &mut rest[..left];
        Ok(())
    }
}

#[cfg(test)]
mod tests;
