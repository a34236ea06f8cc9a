//! Hexadecimal text of hashes.

use std::fmt::Write as _;

/// Returns bytes in hexadecimal, two digits each.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}
