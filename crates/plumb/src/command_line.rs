//! The command as it could be typed again: a record names what made it.

/// What was typed, quoted for a shell.
#[must_use]
pub fn typed() -> String {
    let arguments = std::env::args_os().skip(1).map(|word| {
        let word = word.to_string_lossy().into_owned();
        let plain = |letter: char| letter.is_alphanumeric() || "-_=./,:+%@".contains(letter);
        if !word.is_empty() && word.chars().all(plain) {
            word
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    });
    std::iter::once("plumb".to_string()).chain(arguments).collect::<Vec<_>>().join(" ")
}
