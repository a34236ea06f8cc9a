//! Breaks sentences and paths into lines.

/// Splits a text into lines of at most `width` characters at blanks; a longer word is cut. A text
/// that fits is unchanged; an empty one is one empty line. All lines keep the blanks before the
/// first, because these are the level of an operator.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    assert!(width > 0, "a line has room for a character");
    if text.chars().count() <= width && !text.contains('\n') {
        return vec![text.to_string()];
    }
    let indent = (text.len() - text.trim_start_matches(' ').len()).min(width / 2);
    let width = width - indent;
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
    lines.iter_mut().for_each(|line| line.insert_str(0, &" ".repeat(indent)));
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
        assert_eq!(wrap("  one two three", 9), ["  one two", "  three"]);
        assert_eq!(wrap("          one two", 8), ["    one", "    two"]);
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("/a/long/path b", 5), ["/a/lo", "ng/pa", "th b"]);
        assert_eq!(wrap("ab /a/long/path", 5), ["ab", "/a/lo", "ng/pa", "th"]);
    }
}
