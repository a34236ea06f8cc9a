//! Foreign text made safe to print: a name in a file must not move a terminal's cursor.

use std::borrow::Cow;

/// Replaces characters that a terminal obeys instead of showing by JSON's notation, `\u001b`. These
/// are control characters (ESC, line ends, DEL, C1) and those that change the direction of text.
/// The content of a JSON string stays the same string.
pub fn visible(text: &str) -> Cow<'_, str> {
    escape(text, is_obeyed)
}

/// Does the same, but keeps line ends and tabs, which the printing program itself wrote.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    escape(text, |letter| is_obeyed(letter) && !matches!(letter, '\n' | '\t'))
}

fn is_obeyed(letter: char) -> bool {
    letter.is_control() || changes_direction(letter)
}

/// True for Unicode's controls of bidirectional text, which make a name read as another one.
pub const fn changes_direction(letter: char) -> bool {
    matches!(letter, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Widest column of text that is padded to its content; longer text extends past it. Formatting
/// panics above a width of 65,535.
pub const COLUMN_MOST: usize = 1000;

/// Returns the text, or its first letters and its length in bytes, so that a message quotes
/// a long text in part.
pub fn cut(text: &str, letters: usize) -> Cow<'_, str> {
    match text.char_indices().nth(letters) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}.. ({} bytes)", &text[..end], text.len())),
    }
}

fn escape(text: &str, escaped: impl Fn(char) -> bool + Copy) -> Cow<'_, str> {
    if !text.contains(escaped) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        if escaped(letter) {
            shown.push_str(&format!("\\u{:04x}", u32::from(letter)));
        } else {
            shown.push(letter);
        }
    }
    Cow::Owned(shown)
}
