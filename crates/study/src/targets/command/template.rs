//! Templates, texts with places for words: `fio --bs={bs}`.
//!
//! A place is a name in braces; other braces are text. Doubled braces around a name are single ones
//! (`{{print}}`). A place whose word has no value is an error, so that no command works on an empty
//! path.
//!
//! | where | a word's value | the path |
//! |---|---|---|
//! | an argument that is only the place | split into arguments, none if empty | one argument |
//! | within an argument, a file, a variable | literal, with its spaces | literal |
//! | text for a shell (`shell`, `sh -c`) | literal, shell syntax included | quoted for its place |
//!
//! A command is split into arguments as a shell would, without one, before places are filled. The
//! value of a word may contain the path, and no other word.

use super::shell::{self, Walk};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The word for the study's path.
pub(super) const PATH: &str = "path";

#[derive(Debug, Default)]
pub(super) struct Values<'a> {
    words: BTreeMap<&'a str, &'a str>,
    /// `None` if the study does not use it.
    path: Option<&'a str>,
}

impl<'a> Values<'a> {
    pub(super) fn new(
        words: impl IntoIterator<Item = (&'a str, &'a str)>,
        path: Option<&'a str>,
    ) -> Values<'a> {
        Values { words: words.into_iter().collect(), path }
    }

    /// True if these values fill every place of a template.
    pub(super) fn fill_all(&self, template: &Template) -> bool {
        self.missing(template).is_none()
    }

    /// Returns a word of a template without a value.
    pub(super) fn missing<'t>(&self, template: &'t Template) -> Option<&'t str> {
        template
            .words()
            .find(|word| if *word == PATH { self.path.is_none() } else { !self.words.contains_key(word) })
    }
}

/// A filled piece of a text.
enum Filled<'a> {
    Text(&'a str),
    Path(&'a str),
}

/// A piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Word(String),
}

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

    /// Returns the names of the places.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Word(name) => Some(name.as_str()),
            Piece::Text(_) => None,
        })
    }

    /// Passes the pieces, filled with these values, to `take`.
    fn expand(&self, values: &Values<'_>, take: &mut impl FnMut(Filled<'_>)) -> Result<(), String> {
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => take(Filled::Text(text)),
                Piece::Word(name) if name == PATH => {
                    take(Filled::Path(values.path.ok_or_else(|| unset(name, "the path is not known here"))?));
                }
                Piece::Word(name) => {
                    let value = values.words.get(name.as_str());
                    let value = value.ok_or_else(|| unset(name, "nothing gives it a value"))?;
                    Template::of_value(value, name)?.expand(values, take)?;
                }
            }
        }
        Ok(())
    }

    /// Parses a value of this word, which may contain the path and no other word.
    fn of_value(value: &str, of: &str) -> Result<Template, String> {
        let template = Template::new(value);
        let other = template.words().find(|word| *word != PATH).map(str::to_string);
        let why = || format!("it is in a value of {{{of}}}, where only {{path}} is filled in");
        other.map_or(Ok(template), |word| Err(unset(&word, &why())))
    }

    /// Returns the text with these values. Fails if a word has no value.
    pub(super) fn fill(&self, values: &Values<'_>) -> Result<String, String> {
        let mut text = String::new();
        self.expand(values, &mut |filled| match filled {
            Filled::Text(plain) | Filled::Path(plain) => text.push_str(plain),
        })?;
        Ok(text)
    }

    /// Returns the pattern of files with these values; the path is taken literally. Fails if
    /// a word has no value.
    pub(super) fn fill_pattern(&self, values: &Values<'_>) -> Result<String, String> {
        let mut text = String::new();
        self.expand(values, &mut |filled| match filled {
            Filled::Text(plain) => text.push_str(plain),
            Filled::Path(path) => text.push_str(&glob::Pattern::escape(path)),
        })?;
        Ok(text)
    }

    /// Returns the text for a shell with these values, the path quoted. Fails if
    /// a word has no value.
    pub(super) fn fill_for_shell(&self, values: &Values<'_>) -> Result<String, String> {
        let (mut text, mut walk) = (String::new(), Walk::new());
        self.expand(values, &mut |filled| match filled {
            Filled::Text(plain) => {
                text.push_str(plain);
                for letter in plain.chars() {
                    walk.take(letter);
                }
            }
            Filled::Path(path) => {
                text.push_str(&shell::quoted(path, walk.quotes()));
                walk.pass();
            }
        })?;
        Ok(text)
    }

    /// Returns its place if it consists of a single one.
    pub(super) fn alone(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Piece::Word(name)] => Some(name),
            _ => None,
        }
    }
}

fn unset(word: &str, why: &str) -> String {
    format!("the word {{{word}}} is not set: {why}; braces that are text are doubled: {{{{{word}}}}}")
}

/// Splits a command into words as a shell does. Fails if a quotation is not closed.
fn split(command: &str) -> Result<Vec<String>, String> {
    shell_words::split(command).map_err(|_| format!("{command}: a quotation is not closed"))
}

/// Rejects a command, or a value that is one, with shell syntax. Fails if it has any, or
/// a quotation is not closed.
pub(super) fn require_plain(command: &str) -> Result<(), String> {
    split(command).and_then(|_| shell::require_none(command))
}

/// Returns the words that are whole arguments: their values are split like commands.
pub(super) fn alone(command: &str) -> Vec<String> {
    let words = split(command).unwrap_or_default();
    words.iter().filter_map(|word| Some(Template::new(word).alone()?.to_string())).collect()
}

/// Returns the arguments of a command with these values, the program first. Fails if a quotation is
/// not closed, a word has no value, or no argument is left.
pub(super) fn arguments(command: &str, values: &Values<'_>) -> Result<Vec<String>, String> {
    let mut arguments: Vec<String> = Vec::new();
    for word in split(command)? {
        let template = Template::new(&word);
        let alone = template.alone().and_then(|name| Some((name, values.words.get(name)?)));
        let Some((name, value)) = alone else {
            let next = next_argument(&arguments, &template, values)?;
            arguments.push(next);
            continue;
        };
        for part in split(value)? {
            let next = next_argument(&arguments, &Template::of_value(&part, name)?, values)?;
            arguments.push(next);
        }
    }
    match arguments.is_empty() {
        true => Err(format!("{command:?}: there is no program to be run")),
        false => Ok(arguments),
    }
}

fn next_argument(before: &[String], template: &Template, values: &Values<'_>) -> Result<String, String> {
    if shell::reads_next(before) { template.fill_for_shell(values) } else { template.fill(values) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values<'a>(words: &[(&'a str, &'a str)]) -> Values<'a> {
        Values::new(words.iter().copied(), Some("/a b"))
    }

    fn filled(text: &str) -> Result<String, String> {
        Template::new(text).fill(&values(&[
            ("bs", "4k"),
            ("rw", "rand read"),
            ("file", "{path}/x"),
            ("bad", "{bs}"),
        ]))
    }

    #[test]
    fn places_are_names_in_braces_and_all_else_is_text() {
        let same = |text: &str, expected: &str| assert_eq!(filled(text).as_deref(), Ok(expected));
        same("--bs={bs} --rw={rw}", "--bs=4k --rw=rand read");
        same(r#"{"a": {bs}}"#, r#"{"a": 4k}"#);
        same("awk '{{print}}' {1,2} {} { bs }", "awk '{print}' {1,2} {} { bs }");
        same("{path}/y {file}", "/a b/y /a b/x");
        assert_eq!(Template::new("{a}{b} {{c}} {a}").words().collect::<Vec<_>>(), ["a", "b", "a"]);
    }

    #[test]
    fn a_word_without_a_value_is_never_an_empty_text() {
        let refused = |text: &str| filled(text).expect_err(text);
        assert_eq!(
            refused("rm {unknown}/x"),
            "the word {unknown} is not set: nothing gives it a value; braces that are text are doubled: {{unknown}}"
        );
        assert!(refused("{bad}").contains("it is in a value of {bad}, where only {path} is filled in"));
        let none = Values::new([("command", "rm -v {path}keep")], None);
        for command in ["{command}", "rm {path}/x", "sh -c 'rm {path}/x'", "echo {command}"] {
            let why = arguments(command, &none).expect_err(command);
            assert!(why.starts_with("the word {path} is not set: the path is not known here"), "{why}");
            assert!(Template::new(command).fill_for_shell(&none).is_err());
            assert!(Template::new(command).fill_pattern(&none).is_err());
        }
    }

    #[test]
    fn only_a_whole_argument_is_split_into_several() {
        let values = values(&[("rw", "rand read"), ("more", "--direct=1 '--name=a b'"), ("none", "")]);
        let split = |command| arguments(command, &values);
        assert_eq!(
            split("fio --rw={rw} {more} {none} 'x y'").expect("whole"),
            ["fio", "--rw=rand read", "--direct=1", "--name=a b", "x y"]
        );
        assert_eq!(split("fio 'x").expect_err("open"), "fio 'x: a quotation is not closed");
        assert_eq!(split("{none}").expect_err("nothing"), "\"{none}\": there is no program to be run");
        assert!(require_plain("fio {rw} > x").expect_err("a shell's").starts_with("> is for a shell"));
        assert_eq!(alone("fio {rw} --x={more} 'a b'"), ["rw"]);
    }

    #[test]
    fn a_path_is_one_argument_quoted_for_a_shell() {
        let values =
            values(&[("command", "rm -f {path}/x {path}"), ("text", "sh -c 'ls {path} \"{path}/y\"'")]);
        let split = |command| arguments(command, &values).expect("whole");
        assert_eq!(split("{command}"), ["rm", "-f", "/a b/x", "/a b"]);
        assert_eq!(split("ls {path} {path}/x"), ["ls", "/a b", "/a b/x"]);
        assert_eq!(split("{text}"), ["sh", "-c", "ls '/a b' \"/a b/y\""]);
        let shell = |text: &str| Template::new(text).fill_for_shell(&values).expect("whole");
        assert_eq!(
            shell("{command} && cat \"{path}/x\" '{path}'/y"),
            "rm -f '/a b'/x '/a b' && cat \"/a b/x\" '/a b'/y"
        );
        let pattern = Values::new([], Some("/a[1]"));
        assert_eq!(Template::new("{path}/*").fill_pattern(&pattern).as_deref(), Ok("/a[[]1[]]/*"));
    }
}
