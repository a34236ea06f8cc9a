//! The typed command, which a record keeps.

use serde_json::Value;
use std::path::Path;

/// Prefixes of commands in a cure that work on a database or on the storage under a path.
const AT_A_PATH: [&str; 8] =
    ["load ", "index ", "check", "drop ", "head ", "export ", "list tables", "list bundles"];

/// Adds the command's `--path` to the quoted commands of a message. Without it
/// they would use another database.
pub fn with_path(message: &str, path: &Path) -> String {
    if path == Path::new(".") {
        return message.to_string();
    }
    let option = format!(" --path {}", quoted(&path.display().to_string()));
    let parts = message.split('`').enumerate().map(|(index, part)| {
        let command = part.strip_prefix("plumb ").filter(|_| index % 2 == 1);
        let lacks = command.is_some_and(|command| {
            AT_A_PATH.iter().any(|begin| command.starts_with(begin)) && !command.contains("--path")
        });
        if lacks { format!("{part}{option}") } else { part.to_string() }
    });
    parts.collect::<Vec<_>>().join("`")
}

/// Returns the typed command, quoted for a shell, without the passwords of addresses.
pub fn typed() -> String {
    let shown = |word: String| if word.contains("://") { without_secret(&word) } else { word };
    words().into_iter().map(|word| quoted(&shown(word))).collect::<Vec<_>>().join(" ")
}

/// Returns the words of the typed command.
pub fn words() -> Vec<String> {
    let arguments = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    std::iter::once("plumb".to_string()).chain(arguments).collect()
}

/// Placeholder of a secret, as in the bundles of studies.
const HIDDEN: &str = "***";
/// Ends of names whose values are secrets, in lower case.
const SECRET_NAMES: [&str; 8] =
    ["password", "passwd", "pwd", "token", "secret", "api-key", "api_key", "passphrase"];

/// Returns words quoted for a shell, without secrets: values of the named variables, values of
/// options and assignments with a name like `password`, and passwords of addresses.
pub fn without_secrets(words: &[String], variables: &[String]) -> String {
    let values = values_of(variables);
    let mut is_value = false;
    let shown = words.iter().map(|word| {
        let hides = std::mem::replace(&mut is_value, word.starts_with('-') && is_secret_name(word));
        let word = if hides { HIDDEN.to_string() } else { without_secret(word) };
        quoted(&values.iter().fold(word, |word, value| word.replace(value, HIDDEN)))
    });
    shown.collect::<Vec<_>>().join(" ").replace("'***'", HIDDEN)
}

fn values_of(variables: &[String]) -> Vec<String> {
    let values = variables.iter().filter_map(|name| std::env::var(name).ok());
    values.filter(|value| !value.is_empty()).collect()
}

/// Hides the values of variables in all texts of a document, because names of files and of
/// processes may have them.
pub fn hide_values(document: &mut Value, variables: &[String]) {
    let values = values_of(variables);
    let mut parts = vec![document];
    while let Some(part) = parts.pop() {
        match part {
            Value::String(text) => {
                *text = values.iter().fold(std::mem::take(text), |text, value| text.replace(value, HIDDEN));
            }
            Value::Array(list) => parts.extend(list),
            Value::Object(fields) => parts.extend(fields.values_mut()),
            _ => {}
        }
    }
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_lowercase();
    SECRET_NAMES.iter().any(|secret| name.ends_with(secret))
}

/// Hides the value of `NAME=value` anywhere in a text, and `user:password@` of an address.
pub fn without_secret(text: &str) -> String {
    const ENDS: [char; 4] = [' ', '&', ';', ','];
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(ENDS).unwrap_or(rest.len());
        let part = &rest[..end];
        let secret = part.split_once('=').filter(|(name, value)| is_secret_name(name) && !value.is_empty());
        rest = &rest[end..];
        if let Some((name, value)) = secret {
            shown.push_str(&format!("{name}={HIDDEN}"));
            // A value in quotes may have blanks.
            if value.starts_with('\'') && !value[1..].contains('\'') {
                rest = rest.split_once('\'').map_or("", |(_, behind)| behind);
            }
        } else {
            shown.push_str(&without_password(part));
        }
        let next = rest.trim_start_matches(ENDS);
        shown.push_str(&rest[..rest.len() - next.len()]);
        rest = next;
    }
    shown
}

/// Hides the password of `SCHEME://USER:PASSWORD@HOST`. It may have an `@` of its own.
fn without_password(part: &str) -> String {
    let address = part.split_once("://").and_then(|(scheme, rest)| {
        let (user, host) = rest.rsplit_once('@')?;
        Some(format!("{scheme}://{}:{HIDDEN}@{host}", user.split_once(':')?.0))
    });
    address.unwrap_or_else(|| part.to_string())
}

/// Quotes a word for a shell.
pub fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "-_=./,:+%@".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_string()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_arguments_are_hidden() {
        let hidden = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| word.to_string()).collect();
            without_secrets(&words, &["PATH".to_string()])
        };
        let path = std::env::var("PATH").expect("a path");
        let cases: [(&[&str], &str); 7] = [
            (&["psql", "--password", "abc", "-c", "x"], "psql --password *** -c x"),
            (&["env", "PGPASSWORD=abc", "psql"], "env 'PGPASSWORD=***' psql"),
            (&["psql", "postgres://me:abc@host/db"], "psql 'postgres://me:***@host/db'"),
            (&["curl", "--api-key=abc"], "curl '--api-key=***'"),
            (&["psql", "host=h password=abc user=u"], "psql 'host=h password=*** user=u'"),
            (&["tool", &path], "tool ***"),
            (&["dd", "if=/dev/zero", "of=pwd"], "dd if=/dev/zero of=pwd"),
        ];
        for (words, expected) in cases {
            assert_eq!(hidden(words), expected);
        }
    }

    #[test]
    fn secrets_in_messages_are_hidden() {
        let cases = [
            (
                "cannot read postgres://a:b@h/d/record.json: no file",
                "cannot read postgres://a:***@h/d/record.json: no file",
            ),
            ("\"postgres://a:p@ss@h/d\": a name", "\"postgres://a:***@h/d\": a name"),
            ("host=h password='a b' user=u", "host=h password=*** user=u"),
            ("postgres://h/d?password=ab&x=1: no file", "postgres://h/d?password=***&x=1: no file"),
            ("postgres://h:5432/d, 12 rows; a=b", "postgres://h:5432/d, 12 rows; a=b"),
        ];
        for (message, expected) in cases {
            assert_eq!(without_secret(message), expected);
        }
    }

    #[test]
    fn a_cure_names_the_path_that_was_given() {
        let message = "table T exists already: remove it with `plumb drop T`, or look at `plumb list settings` and `df`";
        assert_eq!(with_path(message, Path::new(".")), message);
        let shown = with_path(message, Path::new("/u 01"));
        assert!(
            shown.contains("`plumb drop T --path '/u 01'`, or look at `plumb list settings` and `df`"),
            "{shown}"
        );
        let has_one = "`plumb load FILE.csv --table T --path /u01` makes one";
        assert_eq!(with_path(has_one, Path::new("/u01")), has_one);
    }

    #[test]
    fn values_of_variables_are_hidden_in_all_texts_of_a_document() {
        let path = std::env::var("PATH").expect("a path");
        let mut document = serde_json::json!({ "a": [path, 1, null], "b": { "c": format!("x{path}y") } });
        hide_values(&mut document, &["PATH".to_string()]);
        assert_eq!(document, serde_json::json!({ "a": ["***", 1, null], "b": { "c": "x***y" } }));
    }
}
