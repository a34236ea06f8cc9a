//! Breaks sentences and paths into lines.

/// Splits a text into lines of at most `width` characters at blanks; a longer word is cut. A text
/// that fits is unchanged; an empty one is one empty line.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    assert!(width > 0, "a line has room for a character");
    if text.chars().count() <= width && !text.contains('\n') {
        return vec![text.to_string()];
    }
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > width {
            lines.push(String::new());
            used = 0;
        }
        for (index, letter) in word.chars().enumerate() {
            if used > 0 && index == 0 {
                push(&mut lines, ' ');
                used += 1;
            }
            if used == width {
                lines.push(String::new());
                used = 0;
            }
            push(&mut lines, letter);
            used += 1;
        }
    }
    lines
}

fn push(lines: &mut [String], letter: char) {
    if let Some(line) = lines.last_mut() {
        line.push(letter);
    }
}

#[cfg(test)]
mod tests {
    use super::wrap;

    #[test]
    fn lines_break_at_blanks_and_long_words_are_cut() {
        assert_eq!(wrap("", 5), [""]);
        assert_eq!(wrap("a  b", 5), ["a  b"]);
        assert_eq!(wrap("a\nb", 5), ["a b"]);
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("/a/long/path b", 5), ["/a/lo", "ng/pa", "th b"]);
        assert_eq!(wrap("ab /a/long/path", 5), ["ab", "/a/lo", "ng/pa", "th"]);
    }
}
