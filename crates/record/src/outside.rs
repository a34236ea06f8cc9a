//! Untrusted files: those that a user names, and those of a bundle, which may be from any source.
//!
//! Only a regular file is read ([`plumb_host::regular`]), because opening a pipe in a bundle would
//! wait forever. Its length is bounded: a file of gigabytes is no record of this program, and would
//! exhaust the reader's memory.

use std::io;
use std::path::Path;

/// Largest file of text, bytes: some ten times the record of a day with a snapshot a second.
pub const TEXT_MOST: u64 = 256 << 20;
/// Largest trace, bytes: some 400 million requests.
pub const TRACE_MOST: u64 = 4 << 30;
/// Largest file that a study overwrites and restores, bytes.
pub const WRITTEN_MOST: u64 = 1 << 30;

/// Reads a file of text. Fails if the file is missing, not regular, longer
/// than [`TEXT_MOST`], or not UTF-8.
pub fn text(path: &Path) -> io::Result<String> {
    let bytes = plumb_host::regular::read_regular(path, TEXT_MOST)?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        io::Error::new(io::ErrorKind::InvalidData, format!("it is no text: byte {at} is none of UTF-8"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_regular_file_of_text_is_read() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("record.json");
        let refused = |path: &Path| text(path).expect_err("refused").to_string();
        assert_eq!(refused(directory.path()), "it is a directory, expected a regular file");
        assert_eq!(refused(Path::new("/dev/zero")), "it is a device, expected a regular file");
        std::fs::write(&path, b"a\xFFb").expect("written");
        assert_eq!(refused(&path), "it is no text: byte 1 is none of UTF-8");
        std::fs::File::create(&path).and_then(|file| file.set_len(TEXT_MOST + 1)).expect("a long file");
        assert!(refused(&path).starts_with("it is longer than 268435456 bytes"), "{}", refused(&path));
        std::fs::remove_file(&path).expect("removed");
        let made = std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo");
        assert!(made.success());
        assert_eq!(refused(&path), "it is a pipe, expected a regular file");
    }
}
