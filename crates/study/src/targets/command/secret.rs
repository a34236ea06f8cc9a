//! Variables whose values are in no file of a bundle (`secrets`).
//!
//! ```text
//! study file   environment = { TOKEN = "abc" }     the value goes to the command, and nowhere else
//! bundle       environment = { TOKEN = "***" }     the value is that of the caller's environment
//! ```
//!
//! The study in a bundle has `***` in place of each value. So it is the same study, with the same
//! hash, for every user. If the caller's environment lacks the variable, the study is rejected
//! before anything runs. `plumb study FILE --resume BUNDLE` takes the value from the file again.
//!
//! Limits: a secret must be plain text, because the values of words are in the bundle. A value that
//! also occurs elsewhere in the study is rejected, because a changed study would be another one. In
//! the command's output it is replaced instead ([`job`](super::job)).

use super::template::{Template, Values};
use super::{RawCommand, Sections};
use toml::Spanned;

/// Placeholder for a value in a bundle.
pub(super) const HIDDEN: &str = "***";
/// Bytes of the shortest value searched in a study; shorter ones occur by chance.
const FOUND_MIN: usize = 4;

/// Rejects words in the text of a secret.
pub(super) fn require_text(command: &RawCommand) -> Result<(), String> {
    for name in &command.secrets {
        let text = command.environment.get(name).map_or("", String::as_str);
        if let Some(word) = Template::new(text).words().next() {
            return Err(format!(
                "secrets: {name} has the word {{{word}}} in [command.environment], and the values of words are kept in \
                 the bundle; give {name} by the environment of plumb, or as text alone"
            ));
        }
    }
    Ok(())
}

/// Rejects a secret without a value, or with a value that occurs elsewhere in the study. `kept` is
/// the study's text in its bundle.
pub(super) fn require(command: &RawCommand, kept: &str) -> Result<(), String> {
    for name in &command.secrets {
        let value = value_of(command, name);
        if value.is_none() && is_hidden(command, name) {
            return Err(format!(
                "the value of {name} was in its study file, and no bundle keeps it (secrets): set {name} in the \
                 environment, or name the file too, as in `plumb study FILE.toml --resume BUNDLE`"
            ));
        }
        // As plain text, and as TOML quotes it.
        let quoted = |value: &str| format!("{value:?}").trim_matches('"').to_string();
        let found = |value: &String| kept.contains(value) || kept.contains(&quoted(value));
        if value.is_some_and(|value| value.len() >= FOUND_MIN && found(&value)) {
            return Err(format!(
                "the value of {name} (secrets) is also in another part of the study, which its bundle keeps; \
                 use ${name} there, by a shell"
            ));
        }
    }
    Ok(())
}

/// Returns the sections with secrets hidden, for a bundle.
pub(super) fn left_out(sections: &Sections) -> Sections {
    let mut kept = sections.clone();
    let mut command = kept.command.get_ref().clone();
    for (_, value) in command.environment.iter_mut().filter(|(name, _)| command.secrets.contains(name)) {
        *value = HIDDEN.to_string();
    }
    kept.command = Spanned::new(kept.command.span(), command);
    kept
}

/// Returns the value of a variable of `[command.environment]` for a run.
pub(super) fn value(
    command: &RawCommand,
    name: &str,
    text: &str,
    values: &Values<'_>,
) -> Result<String, String> {
    let caller = || value_of(command, name);
    let hidden = is_hidden(command, name).then(caller).flatten();
    hidden.map_or_else(|| Template::new(text).fill(values), Ok)
}

/// Replaces all values of secrets in a text.
pub(super) fn without(command: &RawCommand, text: &str) -> String {
    let values = command.secrets.iter().filter_map(|name| value_of(command, name));
    values.fold(text.to_string(), |text, value| text.replace(&value, HIDDEN))
}

/// Returns the value of a secret, from the study or from the caller's environment;
/// `None` if neither has one.
fn value_of(command: &RawCommand, name: &str) -> Option<String> {
    let given = command.environment.get(name).filter(|_| !is_hidden(command, name)).cloned();
    given.or_else(|| std::env::var(name).ok()).filter(|value| !value.is_empty())
}

/// True if the study is from a bundle, which lacks the value.
fn is_hidden(command: &RawCommand, name: &str) -> bool {
    let secret = command.secrets.iter().any(|secret| secret == name);
    secret && command.environment.get(name).is_some_and(|text| text == HIDDEN)
}
