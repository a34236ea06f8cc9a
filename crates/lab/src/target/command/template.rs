//! Text with places for words: `fio --bs={bs}`.
//!
//! A place is a name in braces; other braces are text, and doubled ones around a name stand for themselves
//! (`{{print}}`). A command is split into its arguments as a shell would, without one, before places are filled: what
//! a level puts into the middle of an argument stays in it, whatever spaces it has. An argument that is a place and
//! nothing else becomes as many arguments as its value has, none at all where it is empty.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The values of words.
pub(super) type Values<'a> = BTreeMap<&'a str, &'a str>;

/// A piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Word(String),
}

/// Text with places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template(Vec<Piece>);

fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.'))
}

impl Template {
    pub(super) fn new(text: &str) -> Template {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            plain.push_str(&rest[..open]);
            rest = &rest[open..];
            let inner = rest[1..].find('}').map(|close| &rest[1..=close]);
            if let Some(name) = inner.and_then(|inner| inner.strip_prefix('{')).filter(|name| is_name(name))
                && rest[name.len() + 2..].starts_with("}}")
            {
                let _ = write!(plain, "{{{name}}}");
                rest = &rest[name.len() + 4..];
            } else if let Some(name) = inner.filter(|name| is_name(name)) {
                pieces.extend((!plain.is_empty()).then(|| Piece::Text(std::mem::take(&mut plain))));
                pieces.push(Piece::Word(name.to_string()));
                rest = &rest[name.len() + 2..];
            } else {
                plain.push('{');
                rest = &rest[1..];
            }
        }
        plain.push_str(rest);
        pieces.extend((!plain.is_empty()).then_some(Piece::Text(plain)));
        Template(pieces)
    }

    /// The names of its places.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Word(name) => Some(name.as_str()),
            Piece::Text(_) => None,
        })
    }

    /// The text with these values; a place without a value is left as it is.
    pub(super) fn fill(&self, values: &Values<'_>) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Word(name) => {
                values.get(name.as_str()).map_or_else(|| format!("{{{name}}}"), |value| (*value).to_string())
            }
        };
        self.0.iter().map(piece).collect()
    }

    /// Its one place, if it is nothing else.
    pub(super) fn alone(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Piece::Word(name)] => Some(name),
            _ => None,
        }
    }
}

/// The arguments of a command with these values, the program first.
///
/// # Errors
/// When a quotation is not closed, or nothing is left to be run.
pub(super) fn arguments(command: &str, values: &Values<'_>) -> Result<Vec<String>, String> {
    let split =
        |text: &str| shell_words::split(text).map_err(|_| format!("{text}: a quotation is not closed"));
    let mut arguments = Vec::new();
    for word in split(command)? {
        let template = Template::new(&word);
        match template.alone().and_then(|name| values.get(name)) {
            Some(value) => arguments.extend(split(value)?),
            None => arguments.push(template.fill(values)),
        }
    }
    match arguments.is_empty() {
        true => Err(format!("{command:?}: there is no program to be run")),
        false => Ok(arguments),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> String {
        Template::new(text).fill(&Values::from([("bs", "4k"), ("rw", "rand read")]))
    }

    #[test]
    fn places_are_names_in_braces_and_all_else_is_text() {
        assert_eq!(filled("--bs={bs} --rw={rw}"), "--bs=4k --rw=rand read");
        assert_eq!(filled(r#"{"a": {bs}}"#), r#"{"a": 4k}"#);
        assert_eq!(filled("awk '{{print}}' {1,2} {} { bs }"), "awk '{print}' {1,2} {} { bs }");
        assert_eq!(filled("{unknown}"), "{unknown}");
        assert_eq!(Template::new("{a}{b} {{c}} {a}").words().collect::<Vec<_>>(), ["a", "b", "a"]);
    }

    #[test]
    fn a_value_stays_in_its_argument_unless_the_argument_is_the_place_alone() {
        let values = Values::from([("rw", "rand read"), ("more", "--direct=1 '--name=a b'"), ("none", "")]);
        let split = |command| arguments(command, &values);
        assert_eq!(
            split("fio --rw={rw} {more} {none} 'x y'").expect("whole"),
            ["fio", "--rw=rand read", "--direct=1", "--name=a b", "x y"]
        );
        assert_eq!(split("fio 'x").expect_err("open"), "fio 'x: a quotation is not closed");
        assert_eq!(split("{none}").expect_err("nothing"), "\"{none}\": there is no program to be run");
    }
}
