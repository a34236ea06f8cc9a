//! Text from outside, fit to be printed: a name in a file must not move a terminal's cursor.

use std::borrow::Cow;

/// The text with every control character (ESC, line ends, DEL, C1) in JSON's notation, `\u001b`: what
/// stands in a JSON string stays the same string.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    escape(text, char::is_control)
}

/// The same, but for line ends and tabs, which are the printing program's own.
#[must_use]
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    escape(text, |letter| letter.is_control() && !matches!(letter, '\n' | '\t'))
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
