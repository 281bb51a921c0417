//! Texts that libzero writes into the caller's memory and may have to write twice: once to tell how long they are.

use std::os::raw::c_char;

use crate::error::{check, Result};

/// The whole text that `write` writes, a function of the form of `zero_describe_library`: it writes at most so many bytes, ends them with
/// a NUL, tells what the whole needs, and returns a status.
pub(crate) fn read(write: impl Fn(*mut c_char, i64, *mut i64) -> i32) -> Result<String> {
    let mut text: Vec<u8> = Vec::new();
    let mut needed = 0;
    loop {
        check(write(text.as_mut_ptr().cast(), text.len() as i64, &mut needed))?;
        if needed as usize <= text.len() {
            text.truncate(needed as usize - 1);
            return Ok(String::from_utf8_lossy(&text).into_owned());
        }
        text.resize(needed as usize, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn a_text_that_grows_meanwhile_is_read_whole() {
        let lengths = std::cell::RefCell::new(vec![9, 5]);
        let text = read(|out, nbytes, needed| {
            let length = lengths.borrow_mut().pop().unwrap_or(9);
            // SAFETY: `out` has `nbytes` bytes, and `needed` is a local of the caller.
            unsafe {
                *needed = length + 1;
                for i in 0..length.min(nbytes - 1) {
                    *out.add(i as usize) = b'x' as _;
                }
            }
            0
        });
        assert_eq!(text.unwrap(), "xxxxxxxxx");
    }
}
