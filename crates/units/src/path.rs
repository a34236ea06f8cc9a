//! Paths as text in files: a path need not be UTF-8, and stored text must lead back to it.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Returns the path as text: a byte that is not UTF-8 becomes `\xff`, a backslash two.
pub fn path_text(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        text.push_str(&chunk.valid().replace('\\', "\\\\"));
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
    }
    text
}

/// Returns the path of a text that [`path_text`] made; other escapes are kept unchanged.
pub fn path_of_text(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        let hexadecimal = || u8::from_str_radix(std::str::from_utf8(rest.get(2..4)?).ok()?, 16).ok();
        let (byte, taken) = match rest {
            [b'\\', b'\\', ..] => (b'\\', 2),
            [b'\\', b'x', ..] => hexadecimal().map_or((b'\\', 1), |byte| (byte, 4)),
            _ => (*first, 1),
        };
        bytes.push(byte);
        rest = &behind[taken - 1..];
    }
    PathBuf::from(OsString::from_vec(bytes))
}
