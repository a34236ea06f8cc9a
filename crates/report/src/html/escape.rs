//! Text that may hold anything, made safe for the place where it stands.

use plumb_units::visible_lines;

/// For element content and quoted attributes.
pub(crate) fn escape(text: &str) -> String {
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

/// For JSON within a script element, where only the sequence that ends or
/// nests the element matters. In JSON a `<` stands only within strings, where
/// its escape means the same.
pub(super) fn json_in_script(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e")
}

#[cfg(test)]
mod tests {
    use super::{escape, json_in_script};

    #[test]
    fn markup_becomes_text() {
        assert_eq!(escape("/u01/<a>&\"b'\x1b"), "/u01/&lt;a&gt;&amp;&quot;b&#39;\\u001b");
    }

    #[test]
    fn json_cannot_end_its_script() {
        let json = json_in_script(r#"{"path":"</script><!--"}"#);
        assert!(!json.contains('<'));
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["path"], "</script><!--");
    }
}
