//! Text from outside, fit to be printed: a name in a file must not move a terminal's cursor.

use std::borrow::Cow;

/// The text with every character that a terminal obeys and does not show in JSON's notation,
/// `\u001b`: control characters (ESC, line ends, DEL, C1) and those that change the direction of
/// text. What stands in a JSON string stays the same string.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    escape(text, is_obeyed)
}

/// The same, but for line ends and tabs, which are the printing program's own.
#[must_use]
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    escape(text, |letter| is_obeyed(letter) && !matches!(letter, '\n' | '\t'))
}

fn is_obeyed(letter: char) -> bool {
    letter.is_control() || changes_direction(letter)
}

/// True for Unicode's controls of bidirectional text: behind one of them a name reads as another
/// one.
#[must_use]
pub const fn changes_direction(letter: char) -> bool {
    matches!(letter, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// The widest that a column of text is made for what is in it: a longer text stands beyond it. The
/// width of a format ends at 65,535 with a panic, and nobody reads so far.
pub const COLUMN_MOST: usize = 1000;

/// The text, or its first letters and how many there are: a message quotes a file, and does not
/// repeat it.
#[must_use]
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
