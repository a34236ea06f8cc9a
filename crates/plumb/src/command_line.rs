//! The command as it could be typed again: a record names what made it.

/// What was typed, quoted for a shell.
#[must_use]
pub fn typed() -> String {
    let arguments = std::env::args_os().skip(1).map(|word| quoted(&word.to_string_lossy()));
    std::iter::once("plumb".to_string()).chain(arguments).collect::<Vec<_>>().join(" ")
}

/// A word as a shell takes it for one.
#[must_use]
pub fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "-_=./,:+%@".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_string()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
