//! Escapes untrusted text for its place in a page.

use plumb_units::{changes_direction, visible_lines};

/// Escapes text for element content and quoted attributes.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in visible_lines(text).chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Escapes JSON in a script element, where only a sequence that ends or nests the element matters.
/// In JSON a `<` occurs only within strings, where its escape has the same meaning.
///
/// Characters that change the direction of text are shown as escapes in a plot, too: the
/// string contains the escape's letters.
pub(super) fn json_in_script(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for letter in json.chars() {
        match letter {
            '<' => escaped.push_str("\\u003c"),
            '>' => escaped.push_str("\\u003e"),
            // JSON escapes C0 alone; a terminal that shows the file obeys C1, too.
            letter if letter >= '\u{7f}' && letter.is_control() => {
                escaped.push_str(&format!("\\u{:04x}", u32::from(letter)));
            }
            letter if changes_direction(letter) => {
                escaped.push_str(&format!("\\\\u{:04x}", u32::from(letter)));
            }
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::{escape, json_in_script};

    #[test]
    fn markup_becomes_text() {
        assert_eq!(escape("/u01/<a>&\"b'\x1b"), "/u01/&lt;a&gt;&amp;&quot;b&#39;\\u001b");
        assert_eq!(escape("a\u{202E}b"), "a\\u202eb");
    }

    #[test]
    fn json_cannot_end_its_script() {
        let json = json_in_script(r#"{"path":"</script><!--"}"#);
        assert!(!json.contains('<'));
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["path"], "</script><!--");
        let json = json_in_script("{\"path\":\"a\u{9b}2J\u{7f}\"}");
        assert!(!json.contains(char::is_control));
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["path"], "a\u{9b}2J\u{7f}");
        let json = json_in_script("{\"path\":\"a\u{202E}b\"}");
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["path"], "a\\u202eb");
    }
}
