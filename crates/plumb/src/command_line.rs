//! The typed command, which a record keeps.

use std::path::Path;

/// Prefixes of commands in a cure that work on a database or on the storage under a path.
const AT_A_PATH: [&str; 8] =
    ["load ", "index ", "check", "drop ", "head ", "export ", "list tables", "list bundles"];

/// Adds the command's `--path` to the quoted commands of a message. Without it
/// they would use another database.
#[must_use]
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

/// Returns the typed command, quoted for a shell.
#[must_use]
pub fn typed() -> String {
    let arguments = std::env::args_os().skip(1).map(|word| quoted(&word.to_string_lossy()));
    std::iter::once("plumb".to_string()).chain(arguments).collect::<Vec<_>>().join(" ")
}

/// Quotes a word for a shell.
#[must_use]
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
}
